//! What each client records of a command's end: the exit code, a run that continues, a refused call.
//! One recorded session for each place where a client states it.

use super::lens;
use policyd::facts::{CommandOutcome, CommandVerdict, Facts};
use serde_json::{Value, json};

fn sample(name: &str) -> Facts {
    fold(&text(name))
}

#[expect(clippy::disallowed_methods, reason = "samples of real clients")]
fn text(name: &str) -> String {
    let path = format!("{}/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

fn fold(lines: &str) -> Facts {
    let lens = lens::builtin();
    let mut facts = Facts::default();
    lines.lines().for_each(|line| facts.ingest_record(line.as_bytes(), &lens));
    facts
}

/// The last command: text, outcome, exit code, verdict.
fn last(facts: &Facts) -> (&str, CommandOutcome, Option<i32>, CommandVerdict) {
    let command = facts.commands.recent.last().unwrap();
    (command.text.as_str(), command.outcome, command.exit_code, command.verdict)
}

fn files(facts: &Facts) -> Vec<(&str, u64)> {
    facts.files.iter().map(|it| (it.path.as_str(), it.edits)).collect()
}

const TEST: &str = "python3 -m unittest -q";

#[test]
fn codex_in_code_mode_is_read_from_its_items() {
    let facts = sample("codex/rollout.code-mode.jsonl");
    assert_eq!(last(&facts), (TEST, CommandOutcome::Failed, Some(1), CommandVerdict::Failed));
    let edited = [("/home/dev/project/calc.py", 1), ("/home/dev/project/test_calc.py", 1)];
    assert_eq!(files(&facts), edited);
    assert_eq!(facts.commands.total, 1);
}

#[test]
fn codex_counts_a_call_and_its_item_once_and_a_polled_test_by_its_end() {
    let facts = sample("codex/rollout.long-test.jsonl");
    let test = "sleep 3; python3 -m unittest -q";
    assert_eq!(last(&facts), (test, CommandOutcome::Failed, Some(1), CommandVerdict::Failed));
    assert_eq!((facts.commands.total, facts.tools.failed), (1, 1));
    assert_eq!(facts.files.iter().map(|it| it.edits).collect::<Vec<_>>(), [1, 1]);
    assert!(facts.pending.is_empty(), "{:?}", facts.pending);
}

/// A Codex call with its outputs, without the items that newer versions record.
fn codex(outputs: &[(&str, &str)]) -> Facts {
    let mut lines = vec![
        r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"cargo test\"}","call_id":"c1"}}"#.to_owned(),
        r#"{"type":"response_item","payload":{"type":"function_call","name":"write_stdin","arguments":"{\"session_id\":7,\"chars\":\"\"}","call_id":"c2"}}"#.to_owned(),
    ];
    lines.extend(outputs.iter().map(|(id, output)| {
        let output = serde_json::to_string(output).unwrap();
        format!(r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"{id}","output":{output}}}}}"#)
    }));
    fold(&lines.join("\n"))
}

#[test]
fn codex_joins_a_running_command_with_the_output_that_ends_it() {
    const RUNS: &str =
        "Chunk ID: 1\nWall time: 0.5 seconds\nProcess running with session ID 7\nOutput:\n";
    const ENDED: &str = "Chunk ID: 2\nProcess exited with code 101\nOutput:\ntest result: FAILED. 1 passed; 1 failed\n";
    let running = codex(&[("c1", RUNS)]);
    assert_eq!(
        last(&running),
        ("cargo test", CommandOutcome::Pending, None, CommandVerdict::Unknown)
    );
    let polled = codex(&[("c1", RUNS), ("c2", RUNS)]);
    assert_eq!(last(&polled).1, CommandOutcome::Pending);
    let ended = codex(&[("c1", RUNS), ("c2", ENDED)]);
    assert_eq!(
        last(&ended),
        ("cargo test", CommandOutcome::Failed, Some(101), CommandVerdict::Failed)
    );
    let blocked = codex(&[("c1", "Command blocked by PreToolUse hook: policyd: no")]);
    assert_eq!(last(&blocked).1, CommandOutcome::Denied);
}

#[test]
fn codex_edits_that_failed_are_no_edits() {
    let call = r#"{"type":"response_item","payload":{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"}}"#;
    let failed = r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c1","output":"apply_patch verification failed: no such line"}}"#;
    assert_eq!(files(&fold(call)), [("a.py", 1)]);
    assert_eq!(files(&fold(&format!("{call}\n{failed}"))), []);
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","id":"exec-1","status":"STATUS","changes":{"/p/a.py":{"type":"update","unified_diff":"@@ -1 +1 @@\n-x\n+y\n","move_path":null}}}}}"#;
    assert_eq!(files(&fold(&item.replace("STATUS", "completed"))), [("/p/a.py", 1)]);
    assert_eq!(files(&fold(&item.replace("STATUS", "failed"))), []);
    assert_eq!(files(&fold(&item.replace("STATUS", "declined"))), []);
}

#[test]
fn gemini_states_the_exit_code_behind_the_output() {
    let facts = sample("gemini/session.exit-code.jsonl");
    assert_eq!(
        last(&facts),
        ("make test", CommandOutcome::Failed, Some(2), CommandVerdict::Failed)
    );
}

#[test]
fn copilot_states_the_exit_code_beside_the_result() {
    let facts = sample("copilot/events.exit-code.jsonl");
    assert_eq!(
        last(&facts),
        ("make test", CommandOutcome::Failed, Some(2), CommandVerdict::Failed)
    );
    let output = &facts.commands.recent.last().unwrap().output;
    assert!(!output.contains("shellId"), "{output}");
    let call = r#"{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"t1","name":"bash","arguments":{"command":"echo x > a.py"}}]}}"#;
    let denied = r#"{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":false,"error":{"message":"Denied by preToolUse hook: policyd: no"}}}"#;
    let facts = fold(&format!("{call}\n{denied}"));
    assert_eq!((last(&facts).1, files(&facts)), (CommandOutcome::Denied, vec![]));
}

#[test]
fn claude_code_reports_the_end_of_a_background_command_later() {
    let test = |seconds: u32| format!("sleep {seconds}; {TEST}");
    let facts = sample("claude-code/transcript.background-pass.jsonl");
    let command = facts.commands.by_kind.get("test").unwrap().last.as_ref();
    assert_eq!(
        (command.text.as_str(), command.verdict),
        (test(2).as_str(), CommandVerdict::Passed)
    );
    let facts = sample("claude-code/transcript.background-test.jsonl");
    let command = facts.commands.by_kind.get("test").unwrap().last.as_ref();
    assert_eq!(
        (command.text.as_str(), command.verdict),
        (test(3).as_str(), CommandVerdict::Failed)
    );
    assert_eq!((command.outcome, command.exit_code), (CommandOutcome::Failed, Some(1)));
    assert!(facts.background.is_empty());
}

/// A background test of Claude Code whose end is reported with a status.
fn background(status: &str) -> Facts {
    let lines = [
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test","run_in_background":true}}]}}"#.to_owned(),
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Command running in background with ID: b1."}]},"toolUseResult":{"stdout":"","stderr":"","backgroundTaskId":"b1"}}"#.to_owned(),
        format!(r#"{{"type":"user","origin":{{"kind":"task-notification"}},"message":{{"content":"<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>t1</tool-use-id>\n{status}\n</task-notification>"}}}}"#),
    ];
    fold(&lines.join("\n"))
}

#[test]
fn a_background_test_that_was_stopped_did_not_pass() {
    let running = background("");
    assert_eq!(last(&running).1, CommandOutcome::Background);
    assert_eq!(running.background.len(), 1);
    let killed = background("<status>killed</status><summary>was stopped</summary>");
    assert_eq!(last(&killed).1, CommandOutcome::Failed);
    let passed = background(
        "<status>completed</status><summary>Background command completed (exit code 0)</summary>",
    );
    assert_eq!(
        last(&passed),
        ("cargo test", CommandOutcome::Succeeded, Some(0), CommandVerdict::Passed)
    );
    assert_eq!(passed.prompts.count, 0, "a notification is not a prompt");
}

#[test]
fn the_output_of_a_background_test_counts_however_it_is_read() {
    let file = "/tmp/tasks/b12ab34.output";
    let start = [
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make test","run_in_background":true}}]}}"#.to_owned(),
        format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","content":"Command running in background with ID: b12ab34. Output is being written to: {file}"}}]}},"toolUseResult":{{"stdout":"","stderr":"","backgroundTaskId":"b12ab34"}}}}"#),
    ];
    let notice = r#"{"type":"user","origin":{"kind":"task-notification"},"message":{"content":"<task-notification>\n<task-id>b12ab34</task-id>\n<status>completed</status>\n<summary>Background command completed (exit code 0)</summary>\n</task-notification>"}}"#;
    let read = |name: &str, input: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t2","name":"{name}","input":{input}}}]}}}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t2","content":"{text}"}}]}}}}"#
        )
    };
    let verdict = |rest: &[String]| {
        let facts = fold(&[&start[..], rest].concat().join("\n"));
        let test = facts.commands.by_kind.get("test").unwrap().last.as_ref().clone();
        (test.text, test.outcome, test.verdict)
    };
    let ok = "Ran 1 test in 0.000s\\n\\nOK";
    let ended = |code: u8, text: &str| {
        format!(
            "<status>completed</status>\\n\\n<exit_code>{code}</exit_code>\\n\\n<output>\\n{text}\\n</output>"
        )
    };
    let task = r#"{"task_id":"b12ab34","block":true}"#;
    let path = format!(r#"{{"file_path":"{file}"}}"#);
    let cat = format!(r#"{{"command":"tail -5 {file}"}}"#);
    let test = "make test".to_owned();
    let passed = (test.clone(), CommandOutcome::Succeeded, CommandVerdict::Passed);
    assert_eq!(verdict(&[read("TaskOutput", task, &ended(0, ok))]), passed);
    assert_eq!(verdict(&[read("BashOutput", r#"{"bash_id":"b12ab34"}"#, &ended(0, ok))]), passed);
    let numbered = "     1\\tRan 1 test in 0.000s\\n     2\\t\\n     3\\tOK";
    assert_eq!(verdict(&[notice.to_owned(), read("Read", &path, numbered)]), passed);
    assert_eq!(verdict(&[notice.to_owned(), read("Bash", &cat, ok)]), passed);
    // A later report of the end changes nothing.
    assert_eq!(verdict(&[read("TaskOutput", task, &ended(0, ok)), notice.to_owned()]), passed);
    let failed = "FAILED (failures=1)\\nmake: *** [test] Error 1";
    assert_eq!(
        verdict(&[read("TaskOutput", task, &ended(2, failed))]),
        (test.clone(), CommandOutcome::Failed, CommandVerdict::Failed)
    );
    // What is read before the end counts by its text only.
    let running = (test.clone(), CommandOutcome::Background, CommandVerdict::Unknown);
    assert_eq!(verdict(&[read("Bash", &cat, "collecting ...")]), running);
    assert_eq!(verdict(&[]), running);
    assert_eq!(
        verdict(&[read("Bash", &cat, ok)]),
        (test, CommandOutcome::Background, CommandVerdict::Passed)
    );
}

#[test]
fn subagents_work_counts_before_their_report() {
    let mut facts = sample("claude-code/transcript.subagent-work.main.jsonl");
    let lens = lens::builtin();
    let mut part = Facts { sidechain: true, ..Facts::default() };
    let lines = text("claude-code/transcript.subagent-work.jsonl");
    lines.lines().for_each(|line| part.ingest_record(line.as_bytes(), &lens));
    let (total, own) = (facts.tools.total, part.tools.total);
    let test_at = part.commands.by_kind.get("test").unwrap().last.seq;
    let prompt_at = facts.prompts.first[0].seq;
    let said_at = facts.messages.last.last().unwrap().seq;
    facts.add_subagents(vec![("aa29748714fe34d8d".to_owned(), part)]);
    assert_eq!(facts.tools.total, total + own);
    assert_eq!(files(&facts).len(), 2);
    let test = &facts.commands.by_kind.get("test").unwrap().last;
    assert!(test.seq > prompt_at && test.seq > test_at, "behind the prompt");
    let said_now = facts.messages.last.last().unwrap().seq;
    assert!(said_now > said_at && test.seq < said_now, "before the agent's answer");
    let seqs: Vec<u64> = facts.commands.recent.iter().map(|it| it.seq).collect();
    assert!(seqs.is_sorted());
}

/// Holds the verdict on what a run of tests printed, with exit status 0, against the expected one.
fn holds(cases: &[(&str, &str, CommandVerdict)]) {
    for (command, output, expected) in cases {
        let call = serde_json::json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command}}]}});
        let result = serde_json::json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t", "content": output}]}});
        let facts = fold(&format!("{call}\n{result}"));
        let kind = facts.commands.by_kind.get("test").unwrap();
        assert_eq!(kind.last.verdict, *expected, "{command}: {output}");
    }
}

#[test]
fn a_run_without_tests_did_not_pass() {
    use CommandVerdict::{Empty, Passed};
    holds(&[
        ("python3 -m unittest", "\n---\nRan 0 tests in 0.000s\n\nOK\n", Empty),
        ("python3 -m unittest", "\n---\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", Empty),
        ("python3 -m unittest", "\n---\nRan 3 tests in 0.000s\n\nOK\n", Passed),
        ("pytest", "collected 0 items\n\n=== no tests ran in 0.01s ===\n", Empty),
        (
            "cargo test",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            Empty,
        ),
        (
            "cargo test",
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n",
            Passed,
        ),
        (
            "cargo nextest run",
            "Starting 0 tests across 1 binary\nSummary 0 tests run: 0 passed, 0 skipped\n",
            Empty,
        ),
        ("go test ./...", "?   \tx/a\t[no test files]\n", Empty),
        ("go test ./...", "ok  \tx/a\t0.01s [no tests to run]\n", Empty),
        ("go test ./...", "?   \tx/a\t[no test files]\nok  \tx/b\t0.01s\n", Passed),
        ("npx jest --passWithNoTests", "No tests found, exiting with code 0\n", Empty),
        ("npx vitest run --passWithNoTests", "No test files found, exiting with code 0\n", Empty),
        ("npx mocha", "  0 passing (1ms)\n", Empty),
        ("npx mocha", "  4 passing (1ms)\n", Passed),
        ("node --test", "# tests 0\n# pass 0\n# fail 0\n", Empty),
        ("node --test", "ℹ tests 2\nℹ pass 2\nℹ fail 0\n", Passed),
        ("deno test", "ok | 0 passed | 0 failed (1ms)\n", Empty),
        ("bun test", " 0 pass\n 0 fail\n", Empty),
        ("rspec", "0 examples, 0 failures\n", Empty),
        ("rspec", "3 examples, 0 failures\n", Passed),
        ("phpunit", "No tests executed!\n", Empty),
        ("ctest", "No tests were found!!!\n", Empty),
        ("ctest", "100% tests passed, 0 tests failed out of 0\n", Empty),
        ("ctest", "100% tests passed, 0 tests failed out of 12\n", Passed),
        ("mvn test", "Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\nBUILD SUCCESS\n", Empty),
        ("mvn test", "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\nBUILD SUCCESS\n", Passed),
        ("gradle test", "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n", Empty),
        ("dotnet test", "No test is available in x.dll.\n", Empty),
        ("swift test", "Executed 0 tests, with 0 failures (0 unexpected)\n", Empty),
        ("swift test", "Executed 2 tests, with 0 failures (0 unexpected)\n", Passed),
        ("mix test", "0 tests, 0 failures\n", Empty),
        ("prove", "Files=0, Tests=0\nResult: NOTESTS\n", Empty),
        ("bats t", "1..0\n", Empty),
        ("lein test", "Ran 0 tests containing 0 assertions.\n0 failures, 0 errors.\n", Empty),
        ("rails test", "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n", Empty),
        ("rails test", "3 runs, 5 assertions, 0 failures, 0 errors, 0 skips\n", Passed),
        ("zig build test", "All 0 tests passed.\n", Empty),
        ("dart test", "No tests ran.\n", Empty),
    ]);
}

#[test]
fn a_module_without_tests_beside_a_tested_one_does_not_count() {
    use CommandVerdict::Passed;
    holds(&[
        (
            "gradle test",
            "> Task :processResources NO-SOURCE\n> Task :test\n\nBUILD SUCCESSFUL in 1s\n",
            Passed,
        ),
        (
            "mvn test",
            "[INFO] No tests to run.\n[INFO] Tests run: 12, Failures: 0, Errors: 0\nBUILD SUCCESS\n",
            Passed,
        ),
        (
            "dotnet test",
            "No test is available in a.dll.\nPassed!  - Failed: 0, Passed: 12, Skipped: 0\n",
            Passed,
        ),
    ]);
}

#[test]
fn a_copilot_command_that_still_runs_did_not_pass() {
    let call = r#"{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"t1","name":"bash","arguments":{"command":"npm test"}}]}}"#;
    let runs = r#"{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"<command with shellId: 0 is still running after 30 seconds. Use read_bash to read more>"}}}"#;
    let facts = fold(&format!("{call}\n{runs}"));
    assert_eq!(
        (last(&facts).1, last(&facts).3),
        (CommandOutcome::Background, CommandVerdict::Unknown)
    );
}

#[test]
fn every_client_shows_the_blocks_since_the_last_prompt_of_the_user() {
    let reason =
        "policyd: not done yet. Checks that did not pass: 1.\n\n- local_testing: no test was run";
    let claude = |text: &str| json!({"type": "user", "isMeta": true, "message": {"content": text}});
    let codex = |text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}})
    };
    let copilot =
        |id: &str, text: &str| json!({"type": "user.message", "id": id, "data": {"content": text}});
    let gemini = |id: &str, text: &str| json!({"id": id, "timestamp": "t", "type": "user", "content": [{"text": text}]});
    let opencode = |id: &str, text: &str, metadata: Value| {
        let parts = json!([{"type": "text", "text": text, "metadata": metadata}]);
        json!({"info": {"id": id, "sessionID": "s", "role": "user"}, "parts": parts})
    };
    let own = json!({"policyd": "stop"});
    let hook = format!("<hook_prompt hook_run_id=\"stop:10:/h.json\">{reason}</hook_prompt>");
    let clients = [
        [
            json!({"type": "user", "promptId": "p", "message": {"content": "do it"}}),
            claude(&format!("Stop hook feedback:\n- [policyd eval]: {reason}")),
        ],
        [codex("do it"), codex(&hook)],
        [copilot("u1", "do it"), copilot("u2", reason)],
        [gemini("u1", "do it"), gemini("u2", reason)],
        [opencode("u1", "do it", Value::Null), opencode("u2", reason, own)],
    ];
    for [prompt, block] in clients {
        let read = |lines: &[&Value]| {
            let facts = fold(&lines.iter().map(|it| format!("{it}\n")).collect::<String>());
            (facts.feedback.blocks, facts.prompts.count)
        };
        assert_eq!(read(&[&prompt]), (0, 1), "{prompt}");
        assert_eq!(read(&[&prompt, &block]).0, 1, "{block}");
        assert_eq!(read(&[&prompt, &block]).1, 1, "no prompt of the user: {block}");
        // A client that writes a message again keeps its id.
        let next = prompt.to_string().replace("u1", "u3");
        let next: Value = serde_json::from_str(&next).unwrap();
        assert_eq!(read(&[&prompt, &block, &next]), (0, 2), "a prompt begins again: {prompt}");
    }
    let other = claude("Stop hook feedback:\nThe loop goes on.");
    assert_eq!(fold(&format!("{other}\n")).feedback.blocks, 0, "the block of another hook");
    let again = gemini("u2", reason);
    assert_eq!(fold(&format!("{again}\n{again}\n")).feedback.blocks, 1, "the same message");
    assert_eq!(sample("claude-code/transcript.background-pass.jsonl").feedback.blocks, 2);
    assert_eq!(sample("copilot/events.loop.jsonl").feedback.blocks, 5);
}
