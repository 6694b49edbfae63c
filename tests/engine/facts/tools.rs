//! What the fold makes of tool calls and their results: each test is one situation of a session.

use super::session::{
    assistant, bash, call, denied, every_kind, facts, failed, output, prompts, result, said, user,
    with,
};
use policyd::facts::{CommandOutcome, CommandVerdict, Facts};
use serde_json::{Value, json};

fn findings(facts: &Facts) -> Vec<(&str, &str)> {
    facts.findings.iter().map(|f| (f.pattern.as_str(), f.excerpt.as_str())).collect()
}

fn todos(facts: &Facts) -> Vec<(&str, &str, &str)> {
    facts
        .todos
        .items
        .iter()
        .map(|t| (t.id.as_str(), t.content.as_str(), t.status.as_str()))
        .collect()
}

#[test]
fn a_session_with_everything() {
    let facts = facts(&every_kind());
    assert_eq!(prompts(&facts), ["fix \u{e4}\u{1f600} it", "/fix a b", "and this"]);
    assert_eq!(facts.prompts.injected_id, "p");
    assert_eq!(facts.lines_skipped, 0);
    let said: Vec<&str> = facts.messages.last.iter().map(|m| m.text.as_str()).collect();
    assert_eq!(said, ["I begin.", "flat", "ok", "running", "Done."]);
    assert_eq!(facts.permission_mode, "acceptEdits");
    assert_eq!((facts.branch.as_str(), facts.folder.as_str()), ("main", "/w"));
    assert_eq!(findings(&facts), [("stub", "raise NotImplementedError")]);
    let files: Vec<_> =
        facts.files.iter().map(|f| (f.path.as_str(), f.edits, f.tool.as_str())).collect();
    assert_eq!(files, [("/w/a.py", 2, "Edit"), ("out.txt", 1, "Bash")]);
    assert_eq!(todos(&facts), [("", "A", "pending"), ("1", "B", "completed")]);
    assert_eq!(facts.skills.keys().map(String::as_str).collect::<Vec<_>>(), ["fix", "review"]);
    assert_eq!(facts.compactions.count, 1);
    assert_eq!((facts.tools.total, facts.tools.failed, facts.tools.denied), (13, 1, 1));
    let pending: Vec<&str> = facts.pending.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(pending, ["bash", "exec_command", "AskUserQuestion"]);
    let outcomes: Vec<_> = facts.commands.recent.iter().map(|c| c.outcome).collect();
    assert_eq!(
        outcomes,
        [
            CommandOutcome::Succeeded,
            CommandOutcome::Denied,
            CommandOutcome::Background,
            CommandOutcome::Failed,
            CommandOutcome::Pending,
            CommandOutcome::Pending
        ]
    );
    let test = &facts.commands.by_kind["test"];
    assert_eq!((test.count, test.failed, test.last.text.as_str()), (3, 1, "cargo test"));
    assert_eq!(facts.commands.by_kind["force_push"].count, 0, "it was denied");
}

#[test]
fn an_edit_that_did_not_happen_is_none() {
    let write = call("w", "Write", json!({"file_path": "a.py", "content": "# TODO x"}));
    let pending = facts(std::slice::from_ref(&write));
    assert_eq!((pending.files.len(), pending.findings.len()), (1, 1));
    for end in [failed("w", "no such folder"), denied("w")] {
        let facts = facts(&[write.clone(), end]);
        assert!(facts.files.is_empty() && facts.findings.is_empty());
    }
    let edit = call(
        "e",
        "Edit",
        json!({"file_path": "a.py", "old_string": "# TODO x", "new_string": "# FIXME"}),
    );
    let lines = [write.clone(), result("w", "ok", false), edit, failed("e", "not found")];
    let after = facts(&lines);
    assert_eq!(findings(&after), [("todo", "# TODO x")]);
    let file = &after.files[0];
    assert_eq!((file.edits, file.last_seq, file.tool.as_str(), file.written), (1, 1, "Write", 1));
}

#[test]
fn edits_of_one_file_that_were_all_refused_are_none_in_any_order() {
    let edit = |id: &str| {
        call(id, "Edit", json!({"file_path": "/work/a.rs", "old_string": "a", "new_string": "b"}))
    };
    let no = |id: &str| result(id, "<tool_use_error>File has not been read yet", true);
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"], ["c", "a", "b"]] {
        let calls = [edit("a"), edit("b"), edit("c")];
        let lines: Vec<_> = calls.into_iter().chain(order.map(no)).collect();
        assert_eq!(facts(&lines).files, [], "{order:?}");
        // One that happened stays, wherever it stands.
        for kept in ["a", "b", "c"] {
            let others = order.into_iter().filter(|it| *it != kept).map(no);
            let calls = [edit("a"), edit("b"), edit("c")];
            let lines: Vec<_> = calls.into_iter().chain(others).collect();
            let files = facts(&lines).files;
            let edits: Vec<u64> = files.iter().map(|it| it.edits).collect();
            assert_eq!(edits, [1], "{order:?} without {kept}");
        }
    }
}

#[test]
fn a_file_is_written_by_the_writes_that_happened() {
    let write = |id: &str| call(id, "Write", json!({"file_path": "/work/a.rs", "content": "x"}));
    let edit = |id: &str| {
        call(id, "Edit", json!({"file_path": "/work/a.rs", "old_string": "a", "new_string": "b"}))
    };
    let yes = |id: &str| result(id, "ok", false);
    let no = |id: &str| result(id, "<tool_use_error>File has not been read yet", true);
    let calls = [write("w"), edit("e")];
    for (answers, expected) in [
        ([no("w"), yes("e")], (1, 0)),
        ([yes("e"), no("w")], (1, 0)),
        ([yes("w"), no("e")], (1, 1)),
        ([no("e"), yes("w")], (1, 1)),
        ([yes("w"), yes("e")], (2, 1)),
    ] {
        let files = facts(&calls.iter().chain(&answers).cloned().collect::<Vec<_>>()).files;
        let found: Vec<_> = files.iter().map(|it| (it.edits, it.written)).collect();
        assert_eq!(found, [expected], "{answers:?}");
    }
    let twice = [write("a"), write("b"), edit("c"), no("b"), yes("a"), yes("c")];
    assert_eq!(facts(&twice).files[0].written, 1);
}

#[test]
fn what_refused_edits_put_in_and_took_out_is_not_there() {
    let edit = |id: &str, old: &str, new: &str| {
        let input = json!({"file_path": "/work/a.rs", "old_string": old, "new_string": new});
        call(id, "Edit", input)
    };
    let no = |id: &str| result(id, "<tool_use_error>File has not been read yet", true);
    assert_eq!(findings(&facts(&[edit("a", "x", "# TODO")])).len(), 1);
    for order in [["a", "b"], ["b", "a"]] {
        let lines = [edit("a", "x", "# TODO"), edit("b", "# TODO", "y")];
        let lines: Vec<_> = lines.into_iter().chain(order.map(no)).collect();
        let facts = facts(&lines);
        assert_eq!((findings(&facts), facts.files.len()), (vec![], 0), "{order:?}");
    }
}

#[test]
fn findings_follow_the_text() {
    let write = |text: &str| call("w", "Write", json!({"file_path": "a.py", "content": text}));
    let edit = |old: &str, new: &str| {
        call("e", "Edit", json!({"file_path": "a.py", "old_string": old, "new_string": new}))
    };
    let first = write("a = 1 # TODO one\nb = 2 # TODO two\n");
    for (next, expected) in [
        (edit("a = 1 # TODO one\n", "a = 1\n"), &[("todo", "b = 2 # TODO two")][..]),
        (edit(" # TODO one", ""), &[("todo", "b = 2 # TODO two")]),
        (edit("one", "three"), &[("todo", "a = 1 # TODO one"), ("todo", "b = 2 # TODO two")]),
        (
            edit("z", "# FIXME"),
            &[("todo", "a = 1 # TODO one"), ("todo", "b = 2 # TODO two"), ("todo", "# FIXME")],
        ),
        (write("clean"), &[]),
        (write("@abstractmethod\nraise NotImplementedError"), &[]),
        (write("raise NotImplementedError"), &[("stub", "raise NotImplementedError")]),
    ] {
        assert_eq!(findings(&facts(&[first.clone(), next.clone()])), expected, "{next}");
    }
    let notes = call("n", "Write", json!({"file_path": "notes.md", "content": "TODO"}));
    assert!(facts(&[notes]).findings.is_empty());
    let many = json!({"file_path": "a.py", "edits": [
        {"old_string": "a = 1 # TODO one", "new_string": "a"}, {"old_string": "b = 2 # TODO two", "new_string": "b"}]});
    let after = facts(&[first, call("m", "MultiEdit", many)]);
    assert!(after.findings.is_empty());
    assert_eq!(after.files[0].edits, 2);
}

#[test]
fn patches_name_their_files() {
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n-x\n+y /* TODO */\n*** Add File: b.md\n+z\n*** End Patch";
    for input in [json!({"input": patch}), json!({"patch": patch}), json!(patch)] {
        let facts = facts(&[call("p", "apply_patch", input)]);
        let paths: Vec<&str> = facts.files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["src/a.rs", "b.md"]);
        assert_eq!(facts.findings.len(), 1);
        assert!(facts.files[0].kinds.contains("code") && facts.files[1].kinds.contains("docs"));
    }
    let heredoc = format!("apply_patch <<'EOF'\n{patch}\nEOF");
    assert_eq!(facts(&[bash("b", &heredoc)]).files.len(), 2);
}

#[test]
fn commands_that_write_files_edit_them() {
    for (command, expected) in [
        ("echo x > a.txt", &["a.txt"][..]),
        ("echo x >> a.txt 2>/dev/null", &["a.txt"]),
        ("cat > src/x.py <<'EOF'\nx\nEOF", &["src/x.py"]),
        ("ls | tee -a log.txt", &["log.txt"]),
        ("sed -i 's/a/b/' x.rs y.rs", &["x.rs", "y.rs"]),
        ("sed -i.bak -e s/a/b/ x.rs", &["x.rs"]),
        ("sed -n 1p x.rs", &[]),
        ("make > /dev/null; echo x > /tmp/y", &[]),
        ("cat < in", &[]),
    ] {
        let facts = facts(&[bash("b", command)]);
        let paths: Vec<&str> = facts.files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, expected, "{command}");
    }
    let refused = [bash("b", "echo x > a"), denied("b")];
    assert!(facts(&refused).files.is_empty());
    let wrote_and_failed = [bash("b", "echo x > a && false"), failed("b", "Exit code 1")];
    assert_eq!(facts(&wrote_and_failed).files.len(), 1);
}

#[test]
fn verdicts() {
    let passed = "running 3\ntest result: ok. 3 passed\n";
    let failure = "x\ntest result: FAILED. 1 passed\nmore\n";
    for (command, end, verdict, quote) in [
        ("cargo test", output("c", ""), CommandVerdict::Passed, ""),
        ("cargo test", output("c", passed), CommandVerdict::Passed, "test result: ok. 3 passed"),
        ("cargo test", failed("c", "Exit code 101\nboom"), CommandVerdict::Failed, "boom"),
        ("cargo test | tail", output("c", ""), CommandVerdict::Unknown, ""),
        (
            "cargo test | tail",
            output("c", passed),
            CommandVerdict::Passed,
            "test result: ok. 3 passed",
        ),
        (
            "cargo test | tail",
            output("c", failure),
            CommandVerdict::Failed,
            "test result: FAILED. 1 passed",
        ),
        (
            "cargo test || true",
            output("c", failure),
            CommandVerdict::Failed,
            "test result: FAILED. 1 passed",
        ),
        ("cargo test", denied("c"), CommandVerdict::Unknown, ""),
        ("git push", output("c", "ok"), CommandVerdict::Passed, "ok"),
        ("git push; true", output("c", ""), CommandVerdict::Unknown, ""),
        ("git push", failed("c", "Exit code 1\nrejected"), CommandVerdict::Failed, "rejected"),
        ("echo 'cargo test'", output("c", passed), CommandVerdict::Unknown, ""),
    ] {
        let facts = facts(&[bash("c", command), end]);
        let found = &facts.commands.recent[0];
        assert_eq!((found.verdict, found.quote.as_str()), (verdict, quote), "{command}");
    }
}

#[test]
fn the_verdict_sees_the_full_output_and_keeps_its_end() {
    let long = format!("test result: FAILED\n{}\u{e4}end", "x\n".repeat(5_000));
    let facts = facts(&[bash("c", "cargo test | cat"), output("c", &long)]);
    let command = &facts.commands.recent[0];
    assert_eq!(command.verdict, CommandVerdict::Failed);
    assert!(command.output.len() <= 2048 && command.output.ends_with("\u{e4}end"));
}

#[test]
fn kinds_never_forget() {
    let mut lines = vec![bash("t", "cargo test"), failed("t", "Exit code 101\nx")];
    for n in 0..150 {
        lines.extend([bash(&format!("l{n}"), "ls"), output(&format!("l{n}"), "a")]);
    }
    lines.extend([bash("d", "pytest"), denied("d")]);
    let facts = facts(&lines);
    assert_eq!((facts.commands.total, facts.commands.recent.len()), (152, 100));
    let kind = &facts.commands.by_kind["test"];
    assert_eq!((kind.count, kind.failed, kind.last_failed_seq), (1, 1, 1));
    let outputs = facts.commands.recent.iter().filter(|c| !c.output.is_empty()).count();
    assert_eq!(outputs, 16);
}

#[test]
fn results_say_how_a_call_ended() {
    let interrupted = with(result("c", "", false), "toolUseResult", json!({"interrupted": true}));
    let list = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]}});
    for (end, outcome, code, text) in [
        (output("c", "hi"), CommandOutcome::Succeeded, None, "hi"),
        (failed("c", "Exit code 2\nboom"), CommandOutcome::Failed, Some(2), "boom"),
        (result("c", "Exit code 3", false), CommandOutcome::Failed, Some(3), ""),
        (result("c", "Exit code 0\nx", false), CommandOutcome::Succeeded, Some(0), "x"),
        (interrupted, CommandOutcome::Failed, None, ""),
        (denied("c"), CommandOutcome::Denied, None, "PreToolUse:Bash hook error: no"),
        (
            with(failed("c", "stop"), "toolDenialKind", json!("interrupted")),
            CommandOutcome::Failed,
            None,
            "stop",
        ),
        (
            result("c", "The user doesn't want to proceed with this tool use. x", true),
            CommandOutcome::Denied,
            None,
            "The user doesn't want to proceed with this tool use. x",
        ),
        (list, CommandOutcome::Succeeded, None, "one\ntwo"),
        (
            json!({"type": "tool_result", "id": "c", "content": "flat"}),
            CommandOutcome::Succeeded,
            None,
            "flat",
        ),
        (
            json!({"role": "tool", "tool_call_id": "c", "content": "ok"}),
            CommandOutcome::Succeeded,
            None,
            "ok",
        ),
        (
            json!({"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": false, "error": {"message": "bad"}}}),
            CommandOutcome::Failed,
            None,
            "bad",
        ),
        (
            json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c",
            "output": "Process exited with code 4\nOutput:\nx"}}),
            CommandOutcome::Failed,
            Some(4),
            "Process exited with code 4\nOutput:\nx",
        ),
        (
            json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c",
            "output": "{\"output\":\"y\",\"metadata\":{\"exit_code\":1}}"}}),
            CommandOutcome::Failed,
            Some(1),
            "y",
        ),
    ] {
        let facts = facts(&[bash("c", "ls"), end.clone()]);
        let found = &facts.commands.recent[0];
        assert_eq!(
            (found.outcome, found.exit_code, found.output.as_str()),
            (outcome, code, text),
            "{end}"
        );
        assert!(facts.pending.is_empty());
    }
}

#[test]
fn branches() {
    for (command, out, expected) in [
        ("git status", "On branch topic/x\nnothing", "topic/x"),
        ("git branch", "  main\n* dev\n", "dev"),
        ("git branch", "* (HEAD detached at 1)\n", "main"),
        ("git checkout -b new", "", "new"),
        ("git switch -c new", "Switched to a new branch 'new'", "new"),
        ("git checkout old", "Switched to branch 'old'", "old"),
        ("echo x", "On branch fake", "main"),
        ("git log", "* abc", "main"),
    ] {
        let facts = facts(&[bash("c", command), output("c", out), bash("d", "ls")]);
        assert_eq!(facts.branch, expected, "{command}");
        assert_eq!(facts.commands.recent[0].branch, "main");
        assert_eq!(facts.commands.recent[1].branch, expected, "records still say `main`");
    }
    let failure = facts(&[bash("c", "git checkout -b new"), failed("c", "Exit code 128\nfatal")]);
    assert_eq!(failure.branch, "main");
    let moved = with(said("m", "x"), "gitBranch", json!("other"));
    assert_eq!(facts(&[bash("c", "git switch -c new"), output("c", ""), moved]).branch, "other");
    assert_eq!(facts(&[with(said("m", "x"), "gitBranch", json!("HEAD"))]).branch, "");
}

#[test]
fn todos_are_replaced_or_changed_one_by_one() {
    let write = |items: Value| call("t", "TodoWrite", json!({"todos": items}));
    let facts_written = facts(&[
        write(json!([{"content": "A", "status": "pending"}])),
        write(
            json!([{"content": "A", "status": "completed"}, {"content": "B", "status": "in_progress"}]),
        ),
    ]);
    assert_eq!(todos(&facts_written), [("", "A", "completed"), ("", "B", "in_progress")]);
    let create = |id: &str, subject: &str| call(id, "TaskCreate", json!({"subject": subject}));
    let facts = facts(&[
        create("a", "one"),
        result("a", "Task #1 created successfully: one", false),
        create("b", "two"),
        with(result("b", "", false), "toolUseResult", json!({"task": {"id": 2}})),
        create("c", "three"),
        failed("c", "no"),
        call("d", "TaskUpdate", json!({"taskId": "2", "status": "in_progress", "subject": "zwei"})),
        call("e", "TaskUpdate", json!({"taskId": "1", "status": "deleted"})),
    ]);
    assert_eq!(todos(&facts), [("2", "zwei", "in_progress")]);
    assert!(facts.todos.seen);
}

#[test]
fn calls_in_one_line_have_positions_of_their_own() {
    let line = assistant(
        "m",
        json!([
        {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "cargo test"}},
        {"type": "tool_use", "id": "b", "name": "Bash", "input": {"command": "git push"}}]),
    );
    let facts = facts(&[line, failed("b", "Exit code 1"), output("a", "")]);
    let shown: Vec<_> = facts.commands.recent.iter().map(|c| (c.seq, c.outcome)).collect();
    assert_eq!(shown, [(1, CommandOutcome::Succeeded), (2, CommandOutcome::Failed)]);
}

#[test]
fn a_skill_named_without_a_slash_is_asked_for() {
    let named = |name: &str| user(&format!("<command-name>{name}</command-name>"));
    let facts =
        facts(&[named("review"), named("/deploy"), user("use <command-name>x</command-name>")]);
    let names = |it: &std::collections::BTreeSet<String>| it.iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(&facts.skills_asked), ["review"], "the client loads what has a slash");
    assert_eq!(facts.skills.keys().collect::<Vec<_>>(), ["deploy"]);
}
