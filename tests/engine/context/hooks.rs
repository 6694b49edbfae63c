//! What hooks say about the context: each tier once, instructions before a compaction, a summary to the
//! context that comes after it.

use std::time::Duration;

use policyd::world::WorldError;
use policyd::world::fake::Op;
use serde_json::{Value, json};

use super::status::{Desk, call, compacted, prompt, transcript};
use crate::support::machine::packed;

/// What a hook of a session answered: what the agent is told, or nothing.
fn told(desk: &Desk, event: &str, session: &str, more: &Value) -> Option<String> {
    let out = answer(desk, event, session, more);
    if out.is_empty() {
        return None;
    }
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|_| json!({}));
    let text = value.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str);
    text.map(str::to_owned)
}

fn answer(desk: &Desk, event: &str, session: &str, more: &Value) -> String {
    let mut payload = json!({"session_id": session, "transcript_path": transcript(session),
        "cwd": "/work", "hook_event_name": event});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (code, out, err) = desk.call(&format!("eval --hook {event}"), &payload.to_string());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    out
}

fn after_tool(desk: &Desk, session: &str) -> Option<String> {
    told(desk, "PostToolUse", session, &json!({"tool_name": "Bash", "tool_input": {}}))
}

fn at_prompt(desk: &Desk, session: &str) -> Option<String> {
    told(desk, "UserPromptSubmit", session, &json!({"prompt": "Go on."}))
}

fn begins(desk: &Desk, session: &str, source: &str) -> Option<String> {
    told(desk, "SessionStart", session, &json!({ "source": source }))
}

fn events(desk: &Desk, kind: &str) -> Vec<Value> {
    let text = desk.world.get("/work/.policyd/logs/events.jsonl").unwrap_or_default();
    let text = String::from_utf8(text).unwrap();
    let all = text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    all.filter(|it| it["type"] == kind).collect()
}

#[test]
fn each_tier_is_told_once_until_the_context_was_emptied() {
    let desk = Desk::new();
    let mut lines = vec![prompt("p1", "Build it.")];
    let mut heard = Vec::new();
    for (number, tokens) in
        [100_000, 111_000, 115_000, 131_000, 139_999, 140_000, 170_000].into_iter().enumerate()
    {
        lines.push(call(&format!("m{number}"), tokens));
        desk.write("s-1", &lines);
        heard.push(after_tool(&desk, "s-1").is_some());
        assert_eq!(after_tool(&desk, "s-1"), None, "told twice at {tokens}");
        assert_eq!(at_prompt(&desk, "s-1"), None, "told again at a prompt at {tokens}");
    }
    assert_eq!(heard, [false, true, false, true, false, true, false]);
    lines.push(compacted());
    desk.write("s-1", &lines);
    assert_eq!(after_tool(&desk, "s-1"), None);
    lines.push(call("n", 150_000));
    desk.write("s-1", &lines);
    let said = at_prompt(&desk, "s-1").unwrap();
    assert!(
        said.contains("The context window is 75% full. Save your state now to HANDOFF.md"),
        "{said}"
    );
}

#[test]
fn what_is_said_tells_the_outlook() {
    let desk = Desk::new();
    let calls = (0..6).map(|it| call(&format!("m{it}"), 106_000 + it * 5_000));
    desk.write("s-1", &std::iter::once(prompt("p1", "Build it.")).chain(calls).collect::<Vec<_>>());
    let said = after_tool(&desk, "s-1").unwrap();
    assert!(
        said.starts_with(
            "The context window is 65% full. Until 70%, calls left: about 2, turns left: about 1."
        ),
        "{said}"
    );
}

#[test]
fn state_is_saved_only_where_it_moves() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 120_000)]);
    assert!(after_tool(&desk, "s-1").is_some());
    let state = desk.world.get("/work/.policyd/sessions/s-1/state.json").unwrap();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 120_000), call("m2", 121_000)]);
    for _ in 0..3 {
        assert_eq!(after_tool(&desk, "s-1"), None);
    }
    assert_eq!(desk.world.get("/work/.policyd/sessions/s-1/state.json").unwrap(), state);
}

#[test]
fn a_tier_that_cannot_be_remembered_is_not_told_at_every_event() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 150_000)]);
    desk.world.refuse_always(Op::Write, "", WorldError::Io("disk full".to_owned()));
    assert_eq!(after_tool(&desk, "s-1"), None);
    desk.world.refuse_nothing();
    assert!(after_tool(&desk, "s-1").is_some());
}

#[test]
fn criterion_a_warning_is_logged_when_the_threshold_is_crossed() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 150_000)]);
    after_tool(&desk, "s-1").unwrap();
    after_tool(&desk, "s-1");
    let found = events(&desk, "loop.context_exhaustion_warning");
    assert_eq!(found.len(), 1);
    let event = &found[0];
    for (field, expected) in [
        ("iteration", json!(1)),
        ("usage_pct", json!(75)),
        ("threshold", json!(70)),
        ("input_tokens", json!(150_000)),
        ("output_tokens", json!(300)),
        ("window", json!(200_000)),
        ("session_id", json!("s-1")),
    ] {
        assert_eq!(event[field], expected, "{field}");
    }
}

#[test]
fn criterion_usage_is_logged_once_in_a_turn() {
    let desk = Desk::new();
    for turn in 1..=3 {
        let lines: Vec<Value> = (1..=turn)
            .flat_map(|it| [prompt(&format!("p{it}"), "Go."), call(&format!("m{it}"), it * 10_000)])
            .collect();
        desk.write("s-1", &lines);
        at_prompt(&desk, "s-1");
        after_tool(&desk, "s-1");
    }
    let found = events(&desk, "loop.context_usage");
    let turns: Vec<_> = found.iter().map(|it| (&it["iteration"], &it["usage_pct"])).collect();
    let expected = [(json!(1), json!(5)), (json!(2), json!(15)), (json!(3), json!(30))];
    assert_eq!(turns, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    for field in ["input_tokens", "output_tokens", "threshold", "occupancy_pct"] {
        assert!(found.iter().all(|it| it[field].is_u64()), "{field}");
    }
}

#[test]
fn a_subagents_events_are_not_the_main_agents() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 150_000)]);
    let more = json!({"tool_name": "Bash", "tool_input": {}, "agent_id": "a1"});
    assert_eq!(told(&desk, "PostToolUse", "s-1", &more), None);
}

#[test]
fn the_pack_moves_tiers_texts_and_meter() {
    let desk = Desk::new();
    let pack = "meter: cumulative\ntiers:\n  - {id: act, override: true, at: 200, say: \"Spent ${context.measured} %.\"}\n";
    packed(&desk.world, "context.yaml", pack);
    let calls = (0..5).map(|it| call(&format!("m{it}"), 90_000));
    desk.write("s-1", &calls.collect::<Vec<_>>());
    assert_eq!(after_tool(&desk, "s-1").as_deref(), Some("Spent 225 %."));
}

#[test]
fn before_a_compaction_whoever_summarises_is_told_what_to_keep() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 150_000)]);
    let out = answer(&desk, "PreCompact", "s-1", &json!({"trigger": "auto"}));
    assert!(out.starts_with("Keep: the goal in the user's words;"), "{out}");
    assert!(serde_json::from_str::<Value>(&out).is_err(), "the client takes it as text");
}

#[test]
fn criterion_a_summary_is_told_to_the_next_context_once() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build the importer."), call("m1", 150_000), compacted()]);
    answer(&desk, "PreCompact", "s-1", &json!({"trigger": "auto"}));
    let said = begins(&desk, "s-1", "compact").unwrap();
    assert!(
        said.starts_with("## Previous Session Context (Summarized)\n# Context Summary"),
        "{said}"
    );
    assert!(said.contains("## Goal\nBuild the importer."), "{said}");
    assert_eq!(said.matches("(Summarized)").count(), 1);
    let kept = desk.world.get("/work/.policyd/sessions/s-1/context-summary.md").unwrap();
    assert!(said.contains(String::from_utf8(kept).unwrap().trim_end()));
    let found = events(&desk, "loop.context_exhaustion_restart");
    assert_eq!((found.len(), &found[0]["restart"]), (1, &json!(1)), "{found:?}");
    assert_eq!(found[0]["prev_iteration"], 1);
}

#[test]
fn after_a_clear_the_session_that_ended_is_told_and_only_once() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build the importer."), call("m1", 50_000)]);
    answer(&desk, "SessionEnd", "s-1", &json!({"reason": "clear"}));
    assert_eq!(begins(&desk, "s-2", "startup"), None, "a fresh start is fresh");
    let said = begins(&desk, "s-3", "clear").unwrap();
    assert!(said.contains("Build the importer."), "{said}");
    assert_eq!(begins(&desk, "s-4", "clear"), None);
    // What the second context begins with does not nest the first one's.
    let goal = format!("Go on.\n\n{said}");
    desk.write("s-3", &[prompt("p2", &goal), call("m2", 60_000)]);
    answer(&desk, "SessionEnd", "s-3", &json!({"reason": "clear"}));
    let next = begins(&desk, "s-5", "clear").unwrap();
    assert_eq!(next.matches("(Summarized)").count(), 1, "{next}");
    assert!(next.contains("## Goal\nGo on.\n"), "{next}");
}

#[test]
fn an_old_summary_is_not_told() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 50_000)]);
    answer(&desk, "SessionEnd", "s-1", &json!({"reason": "clear"}));
    desk.world.advance(Duration::from_secs(25 * 3600));
    assert_eq!(begins(&desk, "s-2", "clear"), None);
}

#[test]
fn after_a_clear_nothing_is_told_of_a_session_that_ended_otherwise() {
    let desk = Desk::new();
    desk.write("other", &[prompt("p1", "Build the importer."), call("m1", 50_000)]);
    for end in [json!({"reason": "logout"}), json!({"reason": "other"}), json!({})] {
        answer(&desk, "SessionEnd", "other", &end);
        assert_eq!(begins(&desk, "new", "clear"), None, "{end}");
    }
    answer(&desk, "SessionEnd", "other", &json!({"reason": "clear"}));
    desk.world.advance(Duration::from_secs(61));
    assert_eq!(begins(&desk, "new", "clear"), None, "it was cleared long before");
}

/// A project whose pack gives a resumed session its summary.
fn injecting_at_resume() -> Desk {
    let desk = Desk::new();
    packed(&desk.world, "context.yaml", "summary: {inject: [clear, compact, resume]}\n");
    desk
}

#[test]
fn a_session_that_is_resumed_holds_its_conversation() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build the importer."), call("m1", 50_000)]);
    assert_eq!(begins(&desk, "s-1", "resume"), None);
    answer(&desk, "PreCompact", "s-1", &json!({"trigger": "manual"}));
    assert!(begins(&desk, "s-1", "compact").is_some());
    assert_eq!(begins(&desk, "s-1", "compact"), None, "exactly this summary was given before");
    assert_eq!(begins(&desk, "s-1", "resume"), None);
}

#[test]
fn a_goal_that_was_given_again_is_not_lost() {
    let lost = |restated: bool| {
        let desk = Desk::new();
        let write = json!({"type": "assistant", "message": {"id": "w", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "/work/a.rs",
                "old_string": "a", "new_string": "b"}}]}});
        let mut lines =
            vec![prompt("p1", "Build the importer for invoices."), write, call("m1", 50_000)];
        desk.write("s-1", &lines);
        if restated {
            answer(&desk, "PreCompact", "s-1", &json!({"trigger": "manual"}));
            assert!(begins(&desk, "s-1", "compact").is_some());
        }
        lines.extend([compacted(), call("m2", 20_000)]);
        desk.write("s-1", &lines);
        answer(&desk, "Stop", "s-1", &json!({"prompt_id": "p1"})).to_string()
    };
    let warning = "the objective may be lost";
    let (without, with) = (lost(false), lost(true));
    assert!(without.contains(warning), "{without}");
    assert!(!with.contains(warning), "{with}");
}

#[test]
fn a_compactor_that_reads_nothing_gets_nothing() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build the importer."), call("m1", 50_000)]);
    let payload = json!({"session_id": "s-1", "transcript_path": transcript("s-1"), "cwd": "/work",
        "trigger": "auto"});
    let said = |client: &str, event: &str| {
        let line = format!("eval --hook {event} --harness {client}");
        let before = desk.world.ran().len();
        let said = desk.call(&line, &payload.to_string()).1;
        (said, desk.world.ran().len() > before)
    };
    let (claude, asked) = said("claude-code", "PreCompact");
    assert!(claude.starts_with("Keep: ") && asked, "{claude}");
    assert_eq!(said("codex", "PreCompact"), ("{}".to_owned(), true));
    // This client reports that before every call of the model: nothing is read, no program started.
    assert_eq!(said("gemini", "PreCompress"), ("{}".to_owned(), false));
}

#[test]
fn a_context_that_is_resumed_again_and_again_is_told_each_turn_once() {
    let desk = injecting_at_resume();
    let mut lines = vec![prompt("p1", "Build the importer."), call("m1", 50_000)];
    desk.write("s-1", &lines);
    let resumes = || {
        let said = begins(&desk, "s-1", "resume").is_some();
        answer(&desk, "SessionEnd", "s-1", &json!({"reason": "prompt_input_exit"}));
        said
    };
    assert_eq!([resumes(), resumes(), resumes()], [true, false, false]);
    lines.extend([prompt("p2", "Go on."), call("m2", 60_000)]);
    desk.write("s-1", &lines);
    assert_eq!([resumes(), resumes()], [true, false], "another turn was made since");
    // What was told to it is told to the context after a clear all the same, and after a compaction.
    answer(&desk, "PreCompact", "s-1", &json!({"trigger": "auto"}));
    assert!(begins(&desk, "s-1", "compact").is_some());
    answer(&desk, "SessionEnd", "s-1", &json!({"reason": "clear"}));
    assert!(begins(&desk, "s-2", "clear").is_some());
}

#[test]
fn a_session_that_was_killed_is_summarised_when_it_is_resumed() {
    let desk = injecting_at_resume();
    desk.write("s-1", &[prompt("p1", "Build the importer."), call("m1", 50_000)]);
    let said = begins(&desk, "s-1", "resume").unwrap();
    assert!(said.contains("Build the importer."), "{said}");
}

#[test]
fn where_nothing_can_be_written_hooks_still_answer() {
    let desk = Desk::new();
    desk.write("s-1", &[prompt("p1", "Build it."), call("m1", 150_000)]);
    desk.world.refuse_always(Op::Write, "", WorldError::Io("read-only".to_owned()));
    answer(&desk, "PreCompact", "s-1", &json!({"trigger": "auto"}));
    answer(&desk, "SessionEnd", "s-1", &json!({}));
    begins(&desk, "s-1", "compact");
    begins(&desk, "s-2", "clear");
    after_tool(&desk, "s-1");
}

#[test]
fn a_fresh_context_is_asked_for_where_something_can_give_it() {
    let signals = |desk: &Desk| desk.call("signal list --format json", "").1;
    let long = "word ".repeat(11_000);
    let lines = [prompt("p1", "Build it."), prompt("p2", &long), call("m1", 20_000)];
    let desk = Desk::new();
    desk.write("s-1", &lines);
    at_prompt(&desk, "s-1");
    assert!(!signals(&desk).contains("CONTEXT_CLEAR_REQUESTED"), "nobody could give it");
    desk.world.set_env("POLICYD_RUN", "1");
    at_prompt(&desk, "s-1");
    let listed = signals(&desk);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("CONTEXT_CLEAR_REQUESTED"), "{listed}");
    at_prompt(&desk, "s-1");
    assert_eq!(signals(&desk).lines().count(), 1, "one at a time");
}

#[test]
fn many_turns_and_an_error_loop_ask_for_it_too() {
    let turns: Vec<Value> = (0..25).map(|it| prompt(&format!("p{it}"), "Go on.")).collect();
    let failing = |id: &str, error: &str| {
        [
            json!({"type": "assistant", "message": {"id": id, "content": [
                {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}}]}}),
            json!({"type": "user", "message": {"content": [{"type": "tool_result",
                "tool_use_id": id, "is_error": true, "content": error}]}}),
        ]
    };
    let stuck = ["a", "b", "c"].map(|id| failing(id, "Exit code 2\nno rule to make `x`")).concat();
    let other = ["a", "b", "c"].map(|id| failing(id, &format!("Exit code 2\nerror {id}"))).concat();
    for (lines, asks) in
        [(turns[..24].to_vec(), false), (turns, true), (stuck, true), (other, false)]
    {
        let desk = Desk::new();
        desk.world.set_env("POLICYD_RUN", "1");
        desk.write("s-1", &lines);
        at_prompt(&desk, "s-1");
        let listed = desk.call("signal list", "").1;
        assert_eq!(listed.contains("CONTEXT_CLEAR_REQUESTED"), asks, "{listed}");
    }
}

#[test]
fn a_stop_in_a_full_context_is_blocked_until_the_state_is_written_down() {
    let desk = Desk::new();
    desk.world.set_env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    let mut lines = vec![prompt("p1", "Build it."), call("m1", 150_000)];
    desk.write("s-1", &lines);
    after_tool(&desk, "s-1").unwrap();
    let out = answer(&desk, "Stop", "s-1", &json!({"prompt_id": "p1"}));
    assert!(
        !out.contains("Save your state to HANDOFF.md now"),
        "finished work needs no notes: {out}"
    );
    let todos =
        json!({"todos": [{"content": "test it", "status": "pending", "activeForm": "testing"}]});
    lines.push(
        json!({"type": "assistant", "message": {"id": "m1b", "content": [{"type": "tool_use",
        "id": "todo", "name": "TodoWrite", "input": todos}]}}),
    );
    lines.push(json!({"type": "user", "message": {"content": [{"type": "tool_result",
        "tool_use_id": "todo", "content": "ok"}]}}));
    desk.write("s-1", &lines);
    let out = answer(&desk, "Stop", "s-1", &json!({"prompt_id": "p1"}));
    assert!(
        out.contains("\"decision\":\"block\"") && out.contains("Save your state to HANDOFF.md now"),
        "{out}"
    );
    lines.push(json!({"type": "assistant", "message": {"id": "m2", "content": [{"type": "tool_use",
        "id": "t", "name": "Write", "input": {"file_path": "/work/HANDOFF.md", "content": "x"}}]}}));
    lines.push(json!({"type": "user", "message": {"content": [{"type": "tool_result",
        "tool_use_id": "t", "content": "ok"}]}}));
    desk.write("s-1", &lines);
    let out = answer(&desk, "Stop", "s-1", &json!({"prompt_id": "p1"}));
    assert!(!out.contains("context_written_down"), "{out}");
}

#[test]
fn a_compaction_that_the_client_tells_of_before_its_transcript_does_re_arms() {
    let desk = Desk::new();
    let mut lines = vec![prompt("p1", "Build it."), call("m1", 150_000)];
    desk.write("s-1", &lines);
    assert!(after_tool(&desk, "s-1").unwrap().starts_with("The context window is 75% full"));
    let over = json!({"trigger": "auto", "compact_summary": "All done."});
    assert_eq!(answer(&desk, "PostCompact", "s-1", &over), "");
    // The transcript is as it was: what it says is of the context that is gone.
    assert_eq!(after_tool(&desk, "s-1"), None);
    let (_, status, _) = desk.call("context status s-1 --format json", "");
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["known"], &status["tier"]), (&json!(false), &json!("")), "{status}");
    lines.push(compacted());
    lines.push(call("m2", 30_000));
    desk.write("s-1", &lines);
    assert_eq!(after_tool(&desk, "s-1"), None);
    lines.push(call("m3", 150_000));
    desk.write("s-1", &lines);
    assert!(after_tool(&desk, "s-1").is_some(), "told again");
    assert_eq!(after_tool(&desk, "s-1"), None);
}

#[test]
fn the_model_that_a_session_begins_with_has_the_window_of_its_variant() {
    let full = [prompt("p1", "Build it."), call("m1", 150_000)];
    for (event, more, percent) in [
        ("SessionStart", json!({"source": "startup", "model": "claude-opus-4-5[1m]"}), 15),
        ("SessionStart", json!({"source": "startup", "model": "claude-opus-4-5"}), 75),
        ("SessionStart", json!({"source": "startup"}), 75),
        // Another model than the one that answers.
        ("SessionStart", json!({"source": "startup", "model": "claude-sonnet-4-5[1m]"}), 75),
        ("PostModelSwitch", json!({"from_model": "x", "to_model": "claude-opus-4-5[1m]"}), 15),
    ] {
        let desk = Desk::new();
        answer(&desk, event, "s-1", &more);
        desk.write("s-1", &full);
        assert_eq!(after_tool(&desk, "s-1").is_some(), percent == 75, "{event} {more}");
        let (_, status, _) = desk.call("context status s-1 --format json", "");
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["percent"], percent, "{event} {more}");
        // What somebody says in the environment comes first.
        desk.world.set_env("ANTHROPIC_MODEL", "opus");
        let (_, status, _) = desk.call("context status s-1 --format json", "");
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["percent"], 75, "{event} {more}");
    }
}

#[test]
fn of_two_sessions_that_are_cleared_at_once_each_goes_on_where_it_was() {
    let cleared = |desk: &Desk, session: &str, goal: &str| {
        desk.write(session, &[prompt(goal, goal), call("m1", 50_000)]);
        answer(desk, "SessionEnd", session, &json!({"reason": "clear"}));
    };
    let desk = Desk::new();
    for (process, session, goal) in
        [("11", "s-1", "Build the importer."), ("22", "s-2", "Fix the docs.")]
    {
        desk.world.set_env("CLAUDE_PID", process);
        cleared(&desk, session, goal);
    }
    for (process, session, goal) in
        [("11", "s-3", "Build the importer."), ("22", "s-4", "Fix the docs.")]
    {
        desk.world.set_env("CLAUDE_PID", process);
        let said = begins(&desk, session, "clear").unwrap();
        assert!(said.contains(goal), "{said}");
    }
    // A client that does not tell its process: what may be another one's is not told.
    let desk = Desk::new();
    cleared(&desk, "s-1", "Build the importer.");
    cleared(&desk, "s-2", "Fix the docs.");
    assert_eq!(begins(&desk, "s-3", "clear"), None);
}
