//! Recorded sessions judged again: what `replay` counts is what `eval` said at the time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::scene::{Called, Scene, TRANSCRIPT};
use crate::support::snapshot;

const EDIT: &str = "edit";
const PASS: &str = "pass";
const FAIL: &str = "fail";

/// Events of a session in short form: words for common ones, anything else is said by the agent.
fn events(words: &str) -> Vec<Value> {
    let run = |output: &str, failed: bool| {
        vec![
            json!({"tool": "Bash", "input": {"command": "cargo test -q"}}),
            json!({"claude_user_tool_result": output, "is_error": failed}),
        ]
    };
    match words {
        EDIT => vec![
            json!({"tool": "Write", "input": {"file_path": "/work/src/parser.rs", "content": "pub fn parse() -> u8 { todo!() }\n"}}),
            json!({"claude_user_tool_result": "File created successfully"}),
        ],
        PASS => run("test result: ok. 3 passed; 0 failed", false),
        FAIL => run("test result: FAILED. 2 passed; 1 failed", true),
        other => match other.strip_prefix("asked: ") {
            Some(prompt) => vec![json!({"user": prompt, "branch": "topic", "folder": "/work"})],
            None => vec![json!({"assistant": other})],
        },
    }
}

/// A session that stopped where `STOP` stands; what `eval` reported at each stop, by the line
/// before it. Where it blocked, the client wrote what the hook said.
fn recorded(scene: &mut Scene, session: &[&str]) -> BTreeMap<u64, Value> {
    let mut stops = BTreeMap::new();
    for word in session {
        if *word != "STOP" {
            scene.events(&events(word));
            continue;
        }
        let line = u64::try_from(scene.lines()).unwrap();
        let report = scene.report();
        if report["decision"] == "block" {
            let feedback = format!("Stop hook feedback:\n{}", report["reason"]);
            scene.raw(
                &json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": feedback}}),
            );
        }
        stops.insert(line, report);
    }
    stops
}

fn replay(scene: &Scene, more: &[&str]) -> Called {
    scene.run(&[&["policyd", "replay", TRANSCRIPT], more].concat(), b"")
}

/// The lines of a count's examples with their details; all of them, or the test is worth nothing.
fn places(count: &Value) -> BTreeMap<u64, String> {
    let examples = count["examples"].as_array().unwrap();
    assert_eq!(count["times"], examples.len(), "every example is shown");
    let place =
        |it: &Value| (it["line"].as_u64().unwrap(), it["details"].as_str().unwrap().to_owned());
    examples.iter().map(place).collect()
}

/// Replays a session and compares it with what `eval` said; how often each status was compared.
fn check(session: &[&str], compared: &mut BTreeMap<String, u64>) {
    let mut scene = Scene::new();
    let said = recorded(&mut scene, session);
    let report = replay(&scene, &["--format", "json", "--examples", "1000"]).json();
    assert_eq!(report["stops"], said.len(), "{session:?}: {report:#}");

    let blocked = said.iter().filter(|(_, it)| it["decision"] == "block").map(|(line, _)| *line);
    let replayed: Vec<u64> = places(&report["blocks"]).into_keys().collect();
    assert_eq!(replayed, blocked.collect::<Vec<_>>(), "{session:?}: blocked at");

    for rule in report["rules"].as_array().unwrap() {
        let id = &rule["id"];
        let (fired, unknown) = (places(&rule["fired"]), places(&rule["unknown"]));
        let mut counted = BTreeMap::from([("satisfied", 0), ("skipped", 0)]);
        for (line, report) in &said {
            let verdicts = report["considerations"].as_array().unwrap();
            let verdict = verdicts.iter().find(|it| it["id"] == *id).unwrap();
            let status = verdict["status"].as_str().unwrap();
            if let Some(why) = unknown.get(line) {
                let untold = why.contains("a recording does not tell");
                assert!(untold || status == "unknown", "{id} at {line}: {why}");
                *compared.entry("not told".to_owned()).or_default() += 1;
                continue;
            }
            *compared.entry(status.to_owned()).or_default() += 1;
            *counted.entry(status).or_default() += 1;
            let details = (status == "unsatisfied").then(|| verdict["details"].as_str().unwrap());
            assert_eq!(fired.get(line).map(String::as_str), details, "{id} at line {line}");
        }
        let numbers = [&rule["silent"], &rule["skipped"]].map(|it| it.as_u64().unwrap());
        assert_eq!(numbers, [counted["satisfied"], counted["skipped"]], "{id}: {session:?}");
    }
}

#[test]
fn a_replayed_stop_comes_to_what_eval_said_there() {
    let mut compared = BTreeMap::new();
    for session in [
        &["asked: What is a parser?", "A reader.", "STOP"] as &[&str],
        &["asked: Add a parser", EDIT, "It is in place.", "STOP", PASS, "Now it works.", "STOP"],
        &[
            "asked: Add a parser",
            EDIT,
            FAIL,
            "Done.",
            "STOP",
            FAIL,
            "Really done.",
            "STOP",
            "Yes.",
            "STOP",
        ],
        &[
            "asked: Add a parser",
            EDIT,
            "Done.",
            "STOP",
            PASS,
            "Tested.",
            "STOP",
            "asked: And now open a pull request",
            "I created a pull request and will now continue with the next steps.",
            "STOP",
        ],
        &[
            "asked: Add a parser",
            PASS,
            EDIT,
            "Should I go on?",
            "STOP",
            "asked: Yes",
            PASS,
            "So.",
            "STOP",
        ],
    ] {
        check(session, &mut compared);
    }
    for status in ["satisfied", "unsatisfied", "skipped", "not told"] {
        assert!(compared.get(status).is_some_and(|it| *it >= 5), "{status}: {compared:?}");
    }
}

/// A pack with a few rules of its own and none of the built-in ones.
fn put_pack(scene: &Scene, folder: &str, name: &str, considerations: &str) {
    let manifest = format!("version: 1\nname: {name}\nextends: []\n");
    scene.world.put(format!("{folder}/policyd.yaml"), manifest);
    scene.world.put(format!("{folder}/considerations.yaml"), considerations);
}

fn rule(id: &str, mode: &str, satisfied: &str) -> String {
    format!(
        "- id: {id}\n  category: Own\n  question: Is it so?\n  severity: blocker\n  mode: {mode}\n  applicable_session_types: [\"*\"]\n  satisfied: {satisfied}\n  details: it is not so\n"
    )
}

/// Two sessions: three stops in one, one in the other.
fn two_sessions() -> Scene {
    let mut scene = Scene::new();
    for word in [
        "asked: Add it",
        EDIT,
        "Done.",
        "asked: Test it",
        PASS,
        "Passed.",
        "asked: More",
        EDIT,
        "Done.",
    ] {
        scene.events(&events(word));
    }
    let line = |it: Value| format!("{it}\n");
    let other = line(json!({"type": "user", "promptId": "q", "message": {"content": "Hello"}}))
        + &*line(
            json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello."}]}}),
        );
    scene.world.put("/t/other.jsonl", other);
    put_pack(&scene, "/shadow", "mild", &rule("no_edits", "shadow", "tools.count(\"Write\") == 0"));
    let strict = rule("no_edits", "enforce", "tools.count(\"Write\") == 0")
        + &*rule("tests", "enforce", "tools.count(\"Bash\") > 0");
    put_pack(&scene, "/strict", "strict", &strict);
    let outside = rule("forge", "enforce", "session.forge != \"\"")
        + &*rule(
            "forge_with_an_edit",
            "enforce",
            "tools.count(\"Write\") == 0 || session.forge == \"\"",
        );
    put_pack(&scene, "/outside", "outside", &outside);
    scene
}

fn call(scene: &Scene, arguments: &[&str]) -> Called {
    scene.run(&[&["policyd", "replay"], arguments].concat(), b"")
}

#[test]
fn what_a_replay_says() {
    let scene = two_sessions();
    for (name, arguments) in [
        ("rule_in_shadow_mode", &["/t", "--policies", "/shadow"] as &[&str]),
        ("another_pack_blocks_more", &["/t", "--policies", "/shadow", "--compare", "/strict"]),
        (
            "another_pack_blocks_less",
            &["/t", "--policies", "/strict", "--compare", "/shadow", "--examples", "1"],
        ),
        ("one_rule_only", &["/t", "--policies", "/strict", "--rule", "tests"]),
        ("what_a_recording_does_not_tell", &["/t", "--policies", "/outside"]),
        (
            "as_json",
            &[
                "/t/session.jsonl",
                "--policies",
                "/shadow",
                "--compare",
                "/strict",
                "--format",
                "json",
                "--examples",
                "1",
            ],
        ),
        ("one_file_is_missing", &["/t/gone.jsonl", "/t/other.jsonl", "--policies", "/shadow"]),
        ("nothing_is_a_transcript", &["/shadow"]),
        ("no_such_rule", &["/t", "--policies", "/strict", "--rule", "no_edit"]),
        ("pack_with_an_error", &["/t", "--policies", "/broken"]),
    ] {
        scene.world.put("/broken/considerations.yaml", "- id: x\n  nonsense: 1\n");
        let called = call(&scene, arguments);
        let shown = format!(
            "policyd replay {}\nexit {}\n--- stdout ---\n{}--- stderr ---\n{}",
            arguments.join(" "),
            called.code,
            called.stdout,
            called.stderr
        );
        snapshot("replay", &format!("replay__{name}"), shown);
    }
}

#[test]
fn a_replay_writes_nothing() {
    let scene = two_sessions();
    scene.world.set_env("POLICYD_NO_CACHE", "1");
    scene.world.clear_log();
    let files = scene.world.files();
    assert_eq!(call(&scene, &["/t", "--compare", "/strict"]).code, 0);
    assert_eq!(scene.world.files(), files);
    let writes = |it: &&String| {
        ["write", "append", "create", "rename", "remove", "lock", "run"]
            .iter()
            .any(|op| it.starts_with(op))
    };
    assert_eq!(scene.world.log().iter().find(writes), None);
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let scene = two_sessions();
    for number in 0..40 {
        let copy = scene.world.get(if number % 3 == 0 { "/t/other.jsonl" } else { TRANSCRIPT });
        scene.world.put(format!("/many/{number}.jsonl"), copy.unwrap());
    }
    let with = |jobs: &str| {
        call(&scene, &["/many", "--compare", "/strict", "--jobs", jobs, "--format", "json"]).stdout
    };
    let alone = with("1");
    assert!(alone.contains("\"sessions\": 40"), "{alone}");
    for jobs in ["2", "7", "64"] {
        assert_eq!(with(jobs), alone, "{jobs} threads");
    }
}

#[test]
fn new_blocks_can_fail_a_build() {
    let scene = two_sessions();
    let code = |one: &str, other: &str| {
        call(&scene, &["/t", "--policies", one, "--compare", other, "--fail-on-new-blocks"]).code
    };
    assert_eq!(code("/shadow", "/strict"), 1);
    assert_eq!(code("/strict", "/shadow"), 0);
}

/// Tool calls of a session, some of which guards have something to say about.
const CALLS: [(&str, &str); 7] = [
    ("Bash", r#"{"command": "cargo test -q"}"#),
    ("Bash", r#"{"command": "rm -rf / --no-preserve-root"}"#),
    ("Bash", r#"{"command": "git push --force origin main", "description": "push"}"#),
    ("Bash", r#"{"command": "rm -r \"$WHERE\""}"#),
    ("Write", r#"{"file_path": "/work/.env", "content": "A=1"}"#),
    ("WebFetch", r#"{"url": "https://example.com", "prompt": "read"}"#),
    ("Read", r#"{"file_path": "/home/dev/.ssh/id_rsa"}"#),
];

#[test]
fn a_replayed_tool_call_comes_to_what_eval_said_of_it() {
    let mut scene = Scene::new();
    scene.world.set_env("HOME", "/home/dev");
    scene.events(&events("asked: Tidy up"));
    let mut said: BTreeMap<String, u64> = BTreeMap::new();
    for (tool, input) in CALLS {
        let input: Value = serde_json::from_str(input).unwrap();
        let payload = json!({"session_id": "session-1", "cwd": "/work", "transcript_path": TRANSCRIPT,
            "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input});
        let report = scene.call("pre-tool-use", &payload.to_string(), &["--format", "json"]).json();
        for (id, guard) in report["guards"].as_object().unwrap() {
            let status = guard["status"].as_str().unwrap();
            *said.entry(format!("{id} {status}")).or_default() += 1;
        }
        let stands = |it: &str| report["decision"] == it;
        *said.entry("stopped".to_owned()).or_default() += u64::from(stands("block"));
        *said.entry("asked".to_owned()).or_default() += u64::from(stands("ask"));
        scene.events(&[
            json!({"tool": tool, "input": input}),
            json!({"claude_user_tool_result": "ok"}),
        ]);
    }
    let report = replay(&scene, &["--format", "json"]).json();
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for guard in report["guards"].as_array().unwrap() {
        let id = guard["id"].as_str().unwrap();
        for (status, times) in [
            ("fired", &guard["fired"]["times"]),
            ("silent", &guard["silent"]),
            ("unknown", &guard["unknown"]["times"]),
        ] {
            counted.insert(format!("{id} {status}"), times.as_u64().unwrap());
        }
    }
    counted.insert("stopped".to_owned(), report["stopped"]["times"].as_u64().unwrap());
    counted.insert("asked".to_owned(), report["asked"]["times"].as_u64().unwrap());
    counted.retain(|_, times| *times > 0);
    assert_eq!(counted, said);
    assert!(said["stopped"] >= 3 && said["asked"] >= 1, "{said:?}");
    assert_eq!(report["guarded"], CALLS.len());
}

#[test]
fn a_pack_that_is_switched_off_says_nothing_to_tool_calls() {
    let mut scene = Scene::new();
    scene.events(&events("asked: Tidy up"));
    scene.events(&[
        json!({"tool": "Bash", "input": {"command": "git push --force"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene.world.put("/off/policyd.yaml", "version: 1\nenabled: false\n");
    scene.world.put("/on/policyd.yaml", "version: 1\n");
    let compared = |one: &str, other: &str| {
        let more = ["--policies", one, "--compare", other, "--format", "json"];
        let report = replay(&scene, &more).json();
        let times = |it: &Value| it["times"].as_u64().unwrap();
        let change = &report["comparison"];
        (
            times(&report["stopped"]),
            times(&change["newly_stopped"]),
            times(&change["no_longer_stopped"]),
        )
    };
    assert_eq!(compared("/on", "/off"), (1, 0, 1));
    assert_eq!(compared("/off", "/on"), (0, 1, 0));
}

/// Claude Code's recordings: one session that pushes by force twice, and one that only talks.
fn recorded_sessions() -> Scene {
    let mut scene = two_sessions();
    for command in
        ["git push --force origin topic", "rm -rf / # token=ghp_abcdefghijklmnop0123456789"]
    {
        scene.events(&[json!({"tool": "Bash", "input": {"command": command}})]);
    }
    scene.world.set_env("HOME", "/home/me");
    for (from, to) in [(TRANSCRIPT, "one"), ("/t/other.jsonl", "two")] {
        let text = scene.world.get(from).unwrap();
        scene.world.put(format!("/home/me/.claude/projects/-work/{to}.jsonl"), text);
    }
    scene
}

#[test]
fn without_a_path_the_sessions_of_all_clients_are_summarized() {
    let scene = recorded_sessions();
    for (columns, name) in [("80", "overview"), ("60", "overview_narrow")] {
        scene.world.set_env("COLUMNS", columns);
        let called = call(&scene, &[]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        let wide: Vec<&str> = called
            .stdout
            .lines()
            .filter(|it| it.chars().count() > columns.parse().unwrap())
            .collect();
        assert!(wide.is_empty(), "{wide:#?}");
        snapshot("replay", &format!("replay__{name}"), called.stdout);
    }
    let json = call(&scene, &["--format", "json"]).json();
    let frequent = json["most_frequent"].as_array().unwrap();
    let first = frequent.iter().find(|it| it["id"] == "rm_recursive").unwrap();
    assert_eq!((&first["effect"], &first["times"]), (&json!("block"), &json!(1)));
    let example = first["examples"][0]["text"].as_str().unwrap();
    assert!(example.starts_with("rm -rf /") && example.contains("«masked»"), "{example}");
    assert_eq!((&json["since"], &json["sessions"]), (&json!("7d"), &json!(2)));
    assert_eq!(json["searched"][0]["sessions"], 2);

    // The turn of an example, without secrets.
    let shown = call(&scene, &["--show", "2"]).stdout;
    snapshot("replay", "replay__shown_turn", shown);
    let none = call(&scene, &["--show", "99"]);
    assert!(none.code == 2 && none.stderr.contains("no example 99"), "{none:?}");

    let full = call(&scene, &["--all-rules"]).stdout;
    assert!(full.contains("never applied") && full.contains("one.jsonl:"), "{full}");
    let one = call(&scene, &["--rule", "rm_recursive"]).stdout;
    assert!(one.contains("rm_recursive") && !one.contains("push"), "{one}");
}

#[test]
fn without_a_recorded_session_the_searched_directories_are_listed() {
    let scene = recorded_sessions();
    scene.world.set_env("CLAUDE_CONFIG_DIR", "/elsewhere");
    scene.world.put("/elsewhere/projects/notes.txt", "no session");
    scene.world.set_env("COLUMNS", "80");
    let called = call(&scene, &[]);
    assert_eq!(called.code, 0, "{called:?}");
    snapshot("replay", "replay__no_recorded_session", called.stdout);
}
