//! Decisions and what is said, as snapshots named by situation; and the laws of a stop.

use serde_json::{Value, json};

use super::scene::{Scene, TRANSCRIPT};
use crate::support::snapshot;

pub(super) fn edit(path: &str, content: &str) -> Vec<Value> {
    vec![
        json!({"tool": "Write", "input": {"file_path": path, "content": content}}),
        json!({"claude_user_tool_result": "File created successfully"}),
    ]
}

pub(super) fn ran(command: &str, output: &str, failed: bool) -> Vec<Value> {
    vec![
        json!({"tool": "Bash", "input": {"command": command}}),
        json!({"claude_user_tool_result": output, "is_error": failed}),
    ]
}

pub(super) fn said(text: &str) -> Vec<Value> {
    vec![json!({"assistant": text})]
}

pub(super) fn asked(text: &str) -> Vec<Value> {
    vec![json!({"user": text})]
}

/// What the caller and a person see of one stop.
fn show(name: &str, parts: &[Vec<Value>]) -> Value {
    let mut scene = Scene::new();
    scene.events(&parts.concat());
    let report = scene.run(
        &["policyd", "eval", "--hook", "stop", "--format", "text", "--dry-run"],
        scene.payload(&json!({})).to_string().as_bytes(),
    );
    let answer = scene.stop();
    let spoken = answer.json();
    let shown = format!(
        "{}\n--- the caller reads ---\n{}",
        report.stdout.trim_end(),
        if answer.stdout.is_empty() { "(nothing)".to_owned() } else { format!("{spoken:#}") }
    );
    snapshot("decisions", &format!("stop__{name}"), shown);
    spoken
}

#[test]
fn situations_of_a_stop() {
    let code = edit("/work/src/parser.rs", "pub fn parse() -> u8 { 1 }\n");
    let passing = ran("cargo test -q", "test result: ok. 3 passed; 0 failed", false);
    let failing =
        ran("cargo test 2>&1 | tail -5", "test result: FAILED. 2 passed; 1 failed", false);
    let ask = asked("Add a parser");
    let done = said("The parser is in place.");

    assert_eq!(show("question_only", &[asked("What is a parser?"), said("A reader.")]), json!({}));
    let blocked = |value: &Value| value["decision"] == "block";
    assert!(blocked(&show("code_without_test", &[ask.clone(), code.clone(), done.clone()])));
    assert!(blocked(&show(
        "tests_failing_behind_a_pipe",
        &[ask.clone(), code.clone(), failing.clone(), done.clone()]
    )));
    assert!(!blocked(&show(
        "tests_passing",
        &[ask.clone(), code.clone(), passing.clone(), done.clone()]
    )));
    assert!(blocked(&show(
        "edit_after_the_tests",
        &[ask.clone(), code.clone(), passing.clone(), code.clone(), done.clone()]
    )));
    assert!(!blocked(&show(
        "failing_then_passing",
        &[ask.clone(), code.clone(), failing, passing.clone(), done.clone()]
    )));
    let todos = json!({"todos": [{"content": "Write it", "status": "completed"}, {"content": "Document it", "status": "in_progress"}]});
    let todo = vec![
        json!({"tool": "TodoWrite", "input": todos}),
        json!({"claude_user_tool_result": "ok"}),
    ];
    assert!(blocked(&show(
        "open_todo",
        &[ask.clone(), code.clone(), passing.clone(), todo, done.clone()]
    )));
    let stub = edit("/work/src/lexer.rs", "fn lex() {\n    todo!()\n}\n");
    assert!(blocked(&show("stub_left", &[ask.clone(), stub, passing.clone(), done])));
    let left = said("The parser works. Next steps:\n- write the docs\n- add more tests");
    assert!(!blocked(&show(
        "words_alone_warn",
        &[ask.clone(), code.clone(), passing.clone(), left]
    )));
    let main = [
        ran("git status", "On branch main", false),
        ran("git commit -am parser", "[main 1] parser", false),
    ]
    .concat();
    assert!(!blocked(&show("commit_on_main_warns", &[ask, code, passing, main])));
}

#[test]
fn the_agent_is_blocked_twice_then_the_user_is_told() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let mut spoken = Vec::new();
    for turn in 0..4 {
        let answer = scene.stop();
        assert_eq!(answer.code, 0);
        spoken.push(answer.json());
        scene.events(&ran(&format!("ls {turn}"), "a.py", false));
    }
    let shown = spoken.iter().map(|it| format!("{it:#}")).collect::<Vec<_>>().join("\n");
    snapshot("decisions", "stop__same_failure_four_times", shown);
    let state = scene.state();
    assert_eq!(
        (state["consecutive_blocks"].as_u64(), state["releases"].as_u64()),
        (Some(2), Some(2))
    );
    assert_eq!(state["revision"], 4);
}

#[test]
fn a_block_that_cannot_be_remembered_is_spoken_if_the_client_tells_of_it() {
    use policyd::world::{WorldError, fake::Op};
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    for op in [Op::Write, Op::SyncFile] {
        let why = WorldError::Io("No space left on device (os error 28)".to_owned());
        scene.world.refuse_always(op, "state.json", why.clone());
        scene.world.refuse_always(op, ".state.json.tmp", why);
    }
    let answer = scene.stop();
    assert_eq!(answer.code, 0);
    snapshot("decisions", "stop__disk_full", format!("{:#}", answer.json()));
    assert_eq!(answer.decision(), "block");
}

#[test]
fn what_is_no_stop_of_the_agent_gets_no_opinion() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let with = |changes: Value| {
        let payload = scene.payload(&changes).to_string();
        scene.call("stop", &payload, &["--dry-run"]).decision()
    };
    assert_eq!(with(json!({})), "block");
    assert_eq!(with(json!({"permission_mode": "plan"})), "approve");
    let running =
        json!([{"id": "b1", "type": "subagent", "status": "running", "description": "d"}]);
    assert_eq!(with(json!({"background_tasks": running})), "approve");
    assert_eq!(with(json!({"session_id": ""})), "approve");
    let internal = scene
        .payload(&json!({"hook_event_name": "SubagentStop", "agent_type": "", "agent_id": "a"}));
    scene.world.clear_log();
    // The client never writes the transcript of such an agent.
    let internal = with_missing_transcript(internal);
    let answer = scene.call("subagent-stop", &internal.to_string(), &[]);
    assert_eq!(answer.stdout, "");
    let log = scene.world.log();
    assert!(!log.iter().any(|it| it.starts_with("sleep")), "nothing is waited for: {log:?}");
}

fn with_missing_transcript(mut payload: Value) -> Value {
    payload["agent_transcript_path"] = "/t/agent-a.jsonl".into();
    payload
}

#[test]
fn a_headless_run_loses_its_background_tasks_and_is_judged() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.world.set_env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    let running = json!([{"id": "b1", "type": "subagent", "status": "running"}]);
    let payload = scene.payload(&json!({"background_tasks": running})).to_string();
    assert_eq!(scene.call("stop", &payload, &[]).decision(), "block");
}

#[test]
fn a_pending_question_to_the_user_is_no_stop() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.events(&[json!({"tool": "AskUserQuestion", "input": {"questions": []}})]);
    assert_eq!(scene.stop().decision(), "approve");
}

#[test]
fn a_notice_of_a_background_task_does_not_begin_a_new_episode() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    assert_eq!(scene.stop().decision(), "block");
    scene.work();
    // The client injects a prompt of its own with a new prompt id.
    scene.raw(&json!({"type": "user", "uuid": "n1", "promptId": "notice", "origin": {"kind": "task-notification"},
        "message": {"role": "user", "content": "<task-notification><status>completed</status></task-notification>"}}));
    let payload = scene.payload(&json!({"prompt_id": "notice"})).to_string();
    scene.call("stop", &payload, &[]);
    assert_eq!(scene.state()["consecutive_blocks"], 2, "the count goes on");
    assert_eq!(scene.state()["episode"], "p1");
}

#[test]
fn a_broken_pack_lets_the_agent_go_and_tells_the_user_where() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.world.put(
        "/work/.policyd/policies/considerations.yaml",
        "- id: mine\n  category: C\n  question: Q?\n  severity: bloker\n  satisfied: \"todos.opn == 0\"\n",
    );
    let answer = scene.stop();
    assert_eq!(answer.code, 0);
    snapshot("decisions", "stop__broken_pack", format!("{:#}", answer.json()));
    // The manifest may ask for a block; it is counted and let go like any other.
    scene.world.put(
        "/work/.policyd/policies/policyd.yaml",
        "version: 1\nextends: [builtin]\non_error: block\n",
    );
    let spoken: Vec<_> = (0..4).map(|_| scene.stop().decision()).collect();
    assert_eq!(spoken, ["block", "approve", "approve", "approve"]);
}

/// The operations so far, without sizes, which change with every word of a message.
fn effects(scene: &Scene) -> String {
    let log = scene.world.log();
    let plain = log.iter().map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end());
    plain.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_order_of_effects_of_a_block() {
    let mut scene = Scene::new();
    scene.world.set_env("POLICYD_NO_CACHE", "1");
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.world.clear_log();
    assert_eq!(scene.stop().decision(), "block");
    snapshot("effects", "stop__first_block", effects(&scene));
    scene.world.clear_log();
    scene.stop();
    snapshot("effects", "stop__second_block", effects(&scene));
    scene.world.clear_log();
    let answer = scene.call("message-display", r#"{"session_id":"s"}"#, &[]);
    assert_eq!(answer.stdout, "");
    snapshot("effects", "event_without_rules", effects(&scene));
    scene.world.clear_log();
    let call = json!({"session_id": "s", "cwd": "/work", "transcript_path": TRANSCRIPT,
        "tool_name": "Bash", "tool_input": {"command": "git status"}});
    assert_eq!(scene.call("pre-tool-use", &call.to_string(), &[]).stdout, "");
    snapshot("effects", "tool_call__nothing_fires", effects(&scene));
}

#[test]
fn a_dry_run_writes_nothing() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let before = scene.world.files();
    let payload = scene.payload(&json!({})).to_string();
    assert_eq!(scene.call("stop", &payload, &["--dry-run"]).decision(), "block");
    assert_eq!(scene.world.files(), before);
}

#[test]
fn every_event_of_the_client_is_answered() {
    let scene = Scene::new();
    for kind in policyd::facts::event::EventKind::ALL {
        let client = kind.client_name();
        let payload = json!({"session_id": "s", "hook_event_name": client}).to_string();
        let answer = scene.call(kind.name(), &payload, &[]);
        assert_eq!((answer.code, answer.decision().as_str()), (0, "approve"), "{client}");
        assert!(answer.stdout.is_empty() || kind.is_stop(), "{client}");
    }
}

#[test]
fn what_is_said_stays_below_the_callers_bound() {
    let mut scene = Scene::new();
    let todos: Vec<_> = (0..150)
        .map(
            |n| json!({"content": format!("{n} {}", "very long ".repeat(50)), "status": "pending"}),
        )
        .collect();
    scene.events(&asked("Do it"));
    scene.events(&[
        json!({"tool": "TodoWrite", "input": {"todos": todos}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    let answer = scene.stop().json();
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.chars().count() <= 9_000);
    assert!(reason.contains("150 of 150 todos"), "the finding comes first");
    assert!(reason.contains("Block 1. "), "and the footer stays");
}

#[test]
fn a_subagent_is_judged_by_its_own_transcript_and_counted_apart() {
    let mut scene = Scene::new();
    scene.events(&asked("Delegate it"));
    let rule = "- id: todos_complete\n  override: true\n  on: [stop, subagent_stop]\n";
    scene.world.put("/work/.policyd/policies/considerations.yaml", rule);
    let todos = json!({"todos": [{"content": "Look", "status": "pending"}]});
    let line = json!({"type": "assistant", "isSidechain": true, "message": {"id": "m", "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": todos}]}});
    scene.world.put("/t/agent-a1.jsonl", format!("{line}\n"));
    let payload = scene.payload(&json!({"hook_event_name": "SubagentStop", "agent_id": "a1",
        "agent_type": "general-purpose", "agent_transcript_path": "/t/agent-a1.jsonl"}));
    let answer = scene.call("subagent-stop", &payload.to_string(), &[]);
    assert_eq!(answer.decision(), "block", "{}", answer.stdout);
    let state = scene.state();
    assert_eq!(state["consecutive_blocks"], 0, "the main agent is not counted");
    assert_eq!(state["agents"]["a1"]["consecutive_blocks"], 1);
    assert_eq!(scene.stop().decision(), "approve", "the main agent has no todos");
}

#[test]
fn a_message_that_had_to_be_cut_says_where_the_whole_is() {
    let mut scene = Scene::new();
    scene.events(&[asked("Do it"), ran("ls", "", false)].concat());
    let rules: String = (0..80)
        .map(|n| {
            format!("- {{id: rule_{n}, category: C, question: Q, severity: blocker, satisfied: 'files.count > 99', applicable_session_types: ['*'], guidance: '{}'}}\n", "do this ".repeat(40))
        })
        .collect();
    scene.world.put("/work/.policyd/policies/considerations.yaml", rules);
    let answer = scene.stop().json();
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.chars().count() <= 9_000);
    assert!(reason.contains("/work/.policyd/logs/decisions.jsonl"), "{reason}");
    let log =
        String::from_utf8(scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap()).unwrap();
    assert!(log.contains("rule_79"), "the log has every finding");
}

#[test]
fn a_broken_pack_is_logged() {
    let mut scene = Scene::new();
    scene.events(&asked("Do it"));
    scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
    scene.stop();
    let log =
        String::from_utf8(scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap()).unwrap();
    assert!(log.contains("the policy pack is broken"), "{log}");
}

#[test]
fn diagnostic_logs_lie_where_the_manifest_says() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let manifest = "version: 1\nextends: [builtin]\npaths: {diagnostics: custom/logs}\n";
    scene.world.put("/work/.policyd/policies/policyd.yaml", manifest);
    assert_eq!(scene.stop().decision(), "block");
    let log = scene.world.get("/work/custom/logs/session-1/diagnostic.jsonl").unwrap();
    assert!(String::from_utf8(log).unwrap().contains("\"operation\": \"state_save\""));
}

#[test]
fn a_wrong_hook_line_never_blocks() {
    let scene = Scene::new();
    let payload = scene.payload(&json!({})).to_string();
    for line in [
        &["policyd"][..],
        &["policyd", "stop"],
        &["policyd", "--hook", "stop"],
        &["policyd", "Eval", "--hook", "stop"],
        &["policyd", "eval"],
        &["policyd", "eval", "stop"],
        &["policyd", "eval", "--hook", "stopp"],
        &["policyd", "eval", "--hook", "stop", "--bogus"],
        &["policyd", "eval", "--format", "hock", "--hook", "stop"],
    ] {
        let called = scene.run(line, payload.as_bytes());
        assert_eq!(called.code, 0, "{line:?}");
        assert!(called.json()["systemMessage"].is_string(), "{line:?}: {}", called.stdout);
        assert_eq!(called.decision(), "approve", "{line:?}");
    }
    assert_eq!(scene.run(&["policyd", "lint", "--bogus"], b"").code, 2);
}

#[test]
fn an_empty_folder_of_policies_is_no_pack() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.world.put_folder("/work/.policyd/policies");
    assert_eq!(scene.stop().decision(), "block");
}

#[test]
fn the_project_may_have_its_own_test_command() {
    let mut scene = Scene::new();
    let text = "commands:\n  test:\n    programs: [./check.sh]\n";
    scene.world.put("/work/.policyd/policies/vocabulary.yaml", text);
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    for command in
        ["./check.sh --fast", "bash ./check.sh", "cd /work && scripts/check.sh", "sh check.sh"]
    {
        scene.events(&edit("/work/a.py", "x = 2\n"));
        assert_eq!(dry(&scene), "block", "the edit is newer");
        scene.events(&ran(command, "all good", false));
        assert_eq!(dry(&scene), "approve", "{command}");
    }
}

fn dry(scene: &Scene) -> String {
    scene.call("stop", &scene.payload(&json!({})).to_string(), &["--dry-run"]).decision()
}

#[test]
fn a_stub_that_is_gone_from_the_disk_is_no_finding() {
    let mut scene = Scene::new();
    scene.events(
        &[asked("Add a lexer"), edit("/work/src/lexer.rs", "fn lex() {\n    todo!()\n}\n")]
            .concat(),
    );
    scene.events(&ran(
        "sed -i 's/todo!()/0/' src/lexer.rs && cargo test",
        "test result: ok. 1 passed; 0 failed",
        false,
    ));
    let stubs = |scene: &Scene| {
        let report = scene.call("stop", &scene.payload(&json!({})).to_string(), &["--dry-run"]);
        report.stdout.contains("no_stubs")
    };
    scene.world.put("/work/src/lexer.rs", "fn lex() {\n    todo!()\n}\n");
    assert!(stubs(&scene), "it stands on the disk");
    scene.world.put("/work/src/lexer.rs", "fn lex() {\n    0\n}\n");
    assert!(!stubs(&scene), "it was mended");
}

#[test]
fn nothing_but_a_human_prompt_begins_an_episode() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let mut blocks = 0;
    for turn in 0..12 {
        // A reminder of the client's own, with a prompt id that no human stands behind.
        scene.raw(&json!({"type": "user", "isMeta": true, "uuid": format!("m{turn}"), "promptId": format!("wake-{turn}"),
            "message": {"role": "user", "content": "Scheduled wake-up"}}));
        scene.events(&edit("/work/a.py", &format!("x = {turn}\n")));
        let payload = scene.payload(&json!({"prompt_id": format!("wake-{turn}")})).to_string();
        blocks += usize::from(scene.call("stop", &payload, &[]).decision() == "block");
    }
    assert!(blocks <= 5, "{blocks} blocks");
}

#[test]
fn a_running_server_does_not_switch_the_gate_off() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let running =
        json!([{"id": "b1", "type": "shell", "status": "running", "command": "npm run dev"}]);
    let payload = scene.payload(&json!({"background_tasks": running})).to_string();
    assert_eq!(scene.call("stop", &payload, &[]).decision(), "block");
}

#[test]
fn a_condition_may_ask_for_preferences_and_probes() {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/considerations.yaml", "- {id: mine, category: C, question: Q, severity: blocker, applicable_session_types: ['*'], when: prefs.strict, satisfied: 'probes.who.text(\"\") == \"me\"', details: 'it is ${probes.who.text(\"\")}'}\n");
    scene.world.put("/work/.policyd/policies/preferences.yaml", "- {id: strict, value: true}\n");
    scene.world.put(
        "/work/.policyd/policies/probes.yaml",
        "- {id: who, command: [whoami], parse: text}\n",
    );
    let output = policyd::world::CommandOutput {
        code: Some(0),
        stdout: b"you\n".to_vec(),
        stderr: vec![],
        truncated: false,
    };
    scene.world.script(&["whoami"], Ok(output), std::time::Duration::ZERO);
    scene.events(&[asked("hello"), ran("ls", "", false)].concat());
    let answer = scene.stop().json();
    assert!(answer["reason"].as_str().unwrap().contains("mine: it is you"), "{answer:#}");
}

/// Output of a test run after an edit -> whether the stop is blocked.
#[test]
fn what_a_test_run_came_to() {
    let cases: &[(&str, &str, bool, bool)] = &[
        // The status is hidden: the output decides.
        ("npx mocha | tail", "  4 passing (5ms)\n  1 failing", false, true),
        ("bats tests | tail", "ok 1 a\nnot ok 2 b", false, true),
        ("dotnet test | tail -5", "Passed! - Failed: 0\nFailed!  - Failed: 1", false, true),
        (
            "cargo test | tail",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nerror: test failed, to rerun pass `--lib`",
            false,
            true,
        ),
        (
            "cargo test 2>&1 | tail -5",
            "   Doc-tests x\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            false,
            true,
        ),
        ("bun test | tail", " 5 pass\n 0 fail", false, false),
        ("cargo test > out 2>&1; echo exit=$?", "exit=0", false, false),
        ("cargo test > out 2>&1; echo exit=$?", "exit=101", false, true),
        ("mypy src; pytest -q", "Found 3 errors in 1 file\n5 passed in 0.1s", false, false),
        // The status tells: words in the output do not.
        ("npm test", "import finished with 2 errors (expected)\nTests: 5 passed", false, false),
        ("pytest -q", "ERROR could not connect, retrying\n3 passed in 1.0s", false, false),
        ("go test -v ./...", "--- PASS: TestParse/2_errors\nok  \tx/y\t0.01s", false, false),
        (
            "npm test && git commit -am 'Fix 3 errors in parser'",
            "5 passed\n[b 1] Fix 3 errors in parser",
            false,
            false,
        ),
        ("pytest -q", "3 failed, 12 passed in 1.0s", false, true),
        ("pytest -q", "Exit code 1\n1 failed", true, true),
        // Nothing ran.
        (
            "cargo test nosuch",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out",
            false,
            true,
        ),
        ("npx jest", "No tests found, exiting with code 0", false, true),
        ("go test ./...", "?   \tx/y\t[no test files]", false, true),
        // Ways to run them.
        ("./run_tests.sh", "all good", false, false),
        ("python3.11 -W ignore -m pytest", "3 passed", false, false),
        ("mvn -q clean test", "", false, false),
        ("./gradlew :app:testDebugUnitTest", "BUILD SUCCESSFUL in 3s", false, false),
        ("coverage run -m pytest", "3 passed", false, false),
        ("cmake --build build --target test", "100% tests passed", false, false),
        ("sed -i 's/1/2/' a.py && pytest -q", "3 passed in 0.1s", false, false),
        ("echo 'cargo test'", "cargo test", false, true),
    ];
    for (command, output, error, blocked) in cases {
        let mut scene = Scene::new();
        scene.events(
            &[asked("Add a parser"), edit("/work/a.py", "x = 1\n"), ran(command, output, *error)]
                .concat(),
        );
        let spoken = dry(&scene);
        assert_eq!(spoken == "block", *blocked, "{command}: {output}");
    }
}

#[test]
fn todos_of_an_earlier_task_do_not_hold_an_answer() {
    let mut scene = Scene::new();
    let todos = json!({"todos": [{"content": "A", "status": "pending"}, {"content": "B", "status": "cancelled"}]});
    scene.events(
        &[
            asked("Do it"),
            vec![
                json!({"tool": "TodoWrite", "input": todos}),
                json!({"claude_user_tool_result": "ok"}),
            ],
        ]
        .concat(),
    );
    let answer = scene.stop().json();
    assert!(answer["reason"].as_str().unwrap().contains("1 of 2 todos"), "{answer:#}");
    scene.events(&[asked("Forget that. What is 2 + 2?"), said("4")].concat());
    assert_eq!(dry(&scene), "approve");
}

#[test]
fn what_stood_in_a_file_before_is_not_the_agents_doing() {
    let mut scene = Scene::new();
    let change = json!({"file_path": "/work/a.py", "old_string": "# TODO old\nx = 1", "new_string": "# TODO old\nx = 2"});
    scene.events(&asked("Set x to 2"));
    scene.events(&[
        json!({"tool": "Edit", "input": change}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene.events(&ran("pytest -q", "3 passed", false));
    assert_eq!(dry(&scene), "approve");
}

#[test]
fn scratch_files_are_not_the_projects_code() {
    let mut scene = Scene::new();
    scene.world.set_env("HOME", "/home/me");
    scene.events(&asked("Try it"));
    scene.events(&edit("/tmp/scratch.py", "x = 1  # TODO: later\n"));
    scene.events(&edit("/home/me/.claude/hooks/x.sh", "true\n"));
    assert_eq!(dry(&scene), "approve");
    scene.events(&edit("/work/a.py", "x = 1\n"));
    assert_eq!(dry(&scene), "block");
}

#[test]
fn unsafe_settings_stand_in_the_log() {
    let mut scene = Scene::new();
    scene.world.set_env("AMPLIHACK_PS_NO_FSYNC", "1");
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    assert_eq!(scene.stop().decision(), "block");
    let log =
        String::from_utf8(scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap()).unwrap();
    assert!(log.contains("durable, unsafe: no fsync"), "{log}");
    assert!(!scene.world.log().iter().any(|it| it.starts_with("sync_file")));
}
