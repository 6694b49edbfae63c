//! `policyd context status` and `line`.

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::machine::machine;
use crate::support::{self, console};

/// A machine with a project in `/work` whose client keeps its transcripts in its own folder.
pub(crate) struct Desk {
    pub(crate) world: FakeWorld,
}

/// Where the client keeps the transcript of a session.
pub(crate) fn transcript(session: &str) -> String {
    format!("/home/me/.claude/projects/-work/{session}.jsonl")
}

impl Desk {
    pub(crate) fn new() -> Self {
        let world = machine();
        world.set_env("CLAUDE_PROJECT_DIR", "/work");
        Self { world }
    }

    /// Code, output and complaints of a call.
    pub(crate) fn call(&self, line: &str, stdin: &str) -> (u8, String, String) {
        let said = console::call(
            &self.world,
            &line.split_whitespace().collect::<Vec<_>>(),
            stdin.as_bytes(),
        );
        (said.code, said.out, said.err)
    }

    pub(crate) fn write(&self, session: &str, lines: &[Value]) {
        let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
        self.world.put(transcript(session), text);
    }
}

pub(crate) fn prompt(id: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": id, "promptId": id, "origin": {"kind": "human"},
        "message": {"role": "user", "content": text}})
}

/// An API call with so many tokens before it, 20 of them fresh.
pub(crate) fn call(id: &str, occupied: u64) -> Value {
    json!({"type": "assistant", "uuid": id, "message": {"id": id, "role": "assistant",
        "model": "claude-opus-4-5", "content": [{"type": "text", "text": "Going on."}],
        "usage": {"input_tokens": 20, "cache_read_input_tokens": occupied - 20,
            "cache_creation_input_tokens": 0, "output_tokens": 300}}})
}

pub(crate) fn compacted() -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "uuid": "c"})
}

fn growing() -> Vec<Value> {
    let mut lines = vec![prompt("p1", "Build it.")];
    lines.extend((0..5).map(|it| call(&format!("m{it}"), 100_000 + it * 6_000)));
    lines
}

#[test]
fn what_is_shown_of_a_session() {
    let desk = Desk::new();
    desk.write("s-1", &growing());
    let (code, text, _) = desk.call("context status", "");
    assert_eq!(code, 0);
    support::snapshot("context", "status__growing", &text);
    let (_, line, _) = desk.call("context status s- --format compact", "");
    support::snapshot("context", "status__one_line", &line);
    let (_, json, _) = desk.call("context status --format json", "");
    let json: Value = serde_json::from_str(&json).unwrap();
    support::snapshot("context", "status__json", format!("{json:#}"));
}

#[test]
fn from_act_on_the_exit_code_tells() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 140_000)]);
    let (code, text, _) = desk.call("context status", "");
    assert_eq!((code, text.contains("act (")), (1, true), "{text}");
    desk.world.set_env("CONTEXT_EXHAUSTION_THRESHOLD", "90");
    assert_eq!(desk.call("context status", "").0, 0);
    desk.world.set_env("CONTEXT_WINDOW_TOKENS", "150000");
    let (code, text, _) = desk.call("context status", "");
    assert_eq!((code, text.contains("93 %")), (1, true), "{text}");
    desk.world.set_env("CONTEXT_WINDOW_TOKENS", "0");
    let (code, text, _) = desk.call("context status", "");
    assert_eq!((code, text.contains("no window is known")), (0, true), "{text}");
    desk.world.set_env("CONTEXT_WINDOW_TOKENS", "many");
    let (code, _, err) = desk.call("context status", "");
    assert_eq!((code, err.contains("CONTEXT_WINDOW_TOKENS is `many`")), (0, true), "{err}");
}

#[test]
fn after_a_compaction_nothing_is_known_until_the_next_call() {
    let desk = Desk::new();
    let mut lines = vec![prompt("p1", "Build it."), call("m1", 180_000), compacted()];
    desk.write("s-1", &lines);
    let (code, text, _) = desk.call("context status", "");
    assert_eq!((code, text.contains("since it was compacted")), (0, true), "{text}");
    lines.push(call("m2", 30_000));
    desk.write("s-1", &lines);
    let (_, text, _) = desk.call("context status", "");
    assert!(text.contains("30 000 of 200 000 tokens, 15 %"), "{text}");
}

#[test]
fn side_chains_and_repeated_blocks_are_not_counted() {
    let desk = Desk::new();
    let mut side = call("m9", 190_000);
    side["isSidechain"] = json!(true);
    let mut repeated = call("m1", 50_000);
    repeated["message"]["usage"]["output_tokens"] = json!(500);
    desk.write("s-1", &[call("m1", 50_000), repeated.clone(), repeated, side]);
    let (_, json, _) = desk.call("context status --format json", "");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["tokens"], &json["calls"]), (&json!(50_000), &json!(1)));
    // The last block of a message tells all of its output.
    assert_eq!(json["spent"]["output_tokens"], 500);
    assert_eq!(json["spent"]["input_tokens"], 50_000);
}

#[test]
fn the_status_line_of_the_client_says_more_than_its_transcript() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 100_000)]);
    let told = json!({"session_id": "s-1", "transcript_path": transcript("s-1"),
        "model": {"id": "claude-opus-4-5[1m]", "display_name": "Opus"}});
    let (code, line, _) = desk.call("context line", &told.to_string());
    assert_eq!((code, line.as_str()), (0, "█░░░░░░░░░ 10 % $0.06\n"));
    let told = json!({"transcript_path": transcript("s-1"),
        "context_window": {"context_window_size": 125_000}});
    let (_, line, _) = desk.call("context line", &told.to_string());
    assert!(line.contains("80 % act"), "{line}");
    for odd in ["", "{}", "[1]", r#"{"transcript_path": "/nowhere.jsonl"}"#] {
        let (code, line, _) = desk.call("context line", odd);
        assert_eq!((code, line.lines().count()), (0, 1), "{odd}: {line}");
    }
}

#[test]
fn without_a_session_the_fix_is_named() {
    let desk = Desk::new();
    let (code, _, err) = desk.call("context status", "");
    assert_eq!((code, err.contains("help: pass the path of a transcript")), (3, true), "{err}");
    let (code, _, err) = desk.call("context status abc", "");
    assert_eq!((code, err.contains("`abc`")), (3, true), "{err}");
}

#[test]
fn watching_prints_what_changed() {
    let desk = Desk::new();
    desk.write("s-1", &growing());
    let line = "context status --watch --every 1s --for 5s --format compact";
    let (code, out, _) = desk.call(line, "");
    assert_eq!((code, out.lines().count()), (0, 1), "{out}");
}

#[test]
fn the_status_line_shows_what_the_client_measured() {
    let desk = Desk::new();
    let line = |used: Value, cost: f64| {
        let told = json!({"session_id": "s-1", "transcript_path": transcript("s-1"),
            "model": {"id": "claude-opus-4-5"}, "cost": {"total_cost_usd": cost},
            "context_window": {"context_window_size": 200_000, "used_percentage": used}});
        let (code, line, complaint) = desk.call("context line", &told.to_string());
        assert_eq!((code, complaint.as_str()), (0, ""));
        line
    };
    assert_eq!(line(Value::Null, 0.0), "context 0%\n", "the client wrote no transcript yet");
    let early = line(json!(3), 0.0);
    assert!(early.contains("3 %") && !early.contains("no such file"), "{early}");
    desk.write("s-1", &growing());
    let later = line(json!(65), 1.25);
    assert!(later.contains("65 %") && later.contains("$1.25"), "{later}");
}
