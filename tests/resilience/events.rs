//! What hook events do to the stores: failures are noted, and what waits is told.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use policyd::limits::REVIEWED_AT_ONCE_MAX;
use policyd::world::fake::Op;
use policyd::world::{World, WorldError};
use serde_json::{Value, json};

use crate::desk::{Desk, Said};

fn event(desk: &Desk, name: &str, fields: &Value) -> Said {
    let mut payload = json!({"session_id": "s-1", "cwd": "/work", "hook_event_name": name});
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let said = desk.run(&["eval", "--hook", name], payload.to_string().as_bytes());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{name} {fields}");
    said
}

fn turn_fails(desk: &Desk, error: &str) -> Said {
    event(desk, "StopFailure", &json!({"error": error, "last_assistant_message": "API Error"}))
}

fn context(said: &Said) -> String {
    said.json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

/// Appends a drift to the log as `cat >>` does.
fn append_drift(desk: &Desk, fields: &Value, end: &str) {
    let path = "/work/.policyd/signals/DRIFT_DETECTED";
    desk.world.advance(Duration::from_secs(1));
    let mut line = json!({"timestamp": desk.world.now().to_string(), "task_id": "t1",
        "detected_drift": "something else"});
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let before = String::from_utf8(desk.world.get(path).unwrap_or_default()).unwrap();
    desk.world.put(path, format!("{before}{line}{end}"));
}

/// What policyd says of drifts at an event, or in `policyd signal process`.
fn looks(desk: &Desk, at: &str) -> bool {
    let line =
        json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "Go on"}});
    desk.world.put("/t.jsonl", format!("{line}\n"));
    let fields = json!({"prompt": "Go on", "source": "startup", "transcript_path": "/t.jsonl",
        "last_assistant_message": "Done."});
    let said = match at {
        "process" => desk.call("signal process"),
        at => event(desk, at, &fields),
    };
    said.out.contains("DRIFT_DETECTED: ")
}

#[test]
fn a_drift_that_another_program_appends_has_its_effects_once() {
    for at in ["SessionStart", "UserPromptSubmit", "Stop", "process"] {
        let desk = Desk::new();
        let pending = json!({"tasks": [{"task_id": "t1", "task_data": {"title": "Parser"}}]});
        desk.put("queue/pending.json", &pending);
        append_drift(&desk, &json!({"severity": "critical"}), "\n");
        assert!(looks(&desk, at), "{at}");
        let waits = |desk: &Desk| desk.file("queue/pending.json")["tasks"][0]["waits_for"].clone();
        assert!(waits(&desk).is_string(), "{at}: the task waits for a human");
        let asked = || desk.call("escalation list --format json").lines();
        assert_eq!((asked().len(), &asked()[0]["severity"]), (1, &json!("critical")), "{at}");
        assert!(!looks(&desk, at), "{at}: once");
        // Those that policyd appends had their effects.
        desk.words(&["signal", "emit", "DRIFT_DETECTED", "detected_drift=x", "severity=low"]);
        assert!(!looks(&desk, at), "{at}: its own");
        // A line that is still being written waits for its end.
        append_drift(&desk, &json!({"severity": "high", "task_id": "t2"}), "");
        assert!(!looks(&desk, at), "{at}: torn");
        let path = "/work/.policyd/signals/DRIFT_DETECTED";
        let text = String::from_utf8(desk.world.get(path).unwrap()).unwrap();
        desk.world.put(path, text + "\n");
        assert!(looks(&desk, at), "{at}: whole");
    }
}

#[test]
fn appended_drifts_add_up_like_emitted_ones() {
    for at in ["SessionStart", "UserPromptSubmit", "Stop", "process"] {
        let desk = Desk::new();
        for _ in 0..3 {
            append_drift(&desk, &json!({"severity": "medium"}), "\n");
        }
        assert!(looks(&desk, at), "{at}");
        assert!(desk.names("signals").contains(&"CONTEXT_CLEAR_REQUESTED".to_owned()), "{at}");
        let asked = desk.call("escalation list --format json").lines();
        assert_eq!((asked.len(), &asked[0]["severity"]), (1, &json!("medium")), "{at}: the second");
        // Far from the plan is severe, whatever severity it has.
        let desk = Desk::new();
        append_drift(&desk, &json!({"severity": "low", "drift_distance": 2}), "\n");
        append_drift(&desk, &json!({"drift_distance": 3, "task_id": "t2"}), "\n");
        assert!(looks(&desk, at), "{at}");
        let asked = desk.call("escalation list --format json").lines();
        assert_eq!((asked.len(), &asked[0]["severity"]), (1, &json!("high")), "{at}: far");
    }
}

#[test]
fn a_drift_whose_effect_fails_has_it_later() {
    let desk = Desk::new();
    append_drift(&desk, &json!({"severity": "critical"}), "\n");
    desk.world.refuse_always(Op::Write, ".md.tmp", WorldError::Io("no".to_owned()));
    let failed = desk.call("signal process");
    assert!(failed.code != 0 && failed.out.contains("DRIFT_DETECTED: failed"), "{failed:?}");
    desk.world.refuse_nothing();
    let done = desk.call("signal process");
    assert!(done.out.contains("do not continue this task"), "{done:?}");
    assert_eq!(desk.call("escalation list --format json").lines().len(), 1);
}

#[test]
fn api_errors_open_the_breaker_by_their_class() {
    for (error, state) in [
        ("rate_limit", "OPEN"),
        ("overloaded", "OPEN"),
        ("server_error", "OPEN"),
        ("max_output_tokens", "CLOSED"),
    ] {
        let desk = Desk::new();
        for _ in 0..3 {
            assert_eq!(turn_fails(&desk, error).out, "", "nothing is said to a turn that ended");
        }
        let breaker = &desk.file("state/circuit-breakers.json")["api/claude"];
        let stands = breaker["state"].as_str().unwrap_or("CLOSED");
        assert_eq!(stands, state, "{error}: {breaker}");
        let asked = desk.call("escalation list").out;
        assert_eq!(asked, "no open escalations\n", "{error} needs no human");
    }
}

#[test]
fn what_no_waiting_cures_goes_to_a_human_once() {
    for error in
        ["authentication_failed", "billing_error", "model_not_found", "oauth_org_not_allowed"]
    {
        let desk = Desk::new();
        for _ in 0..4 {
            turn_fails(&desk, error);
        }
        let asked = desk.call("escalation list --format json").lines();
        assert_eq!(asked.len(), 1, "{error}: {asked:?}");
        assert_eq!(asked[0]["severity"], "critical", "{error}");
        let counted =
            desk.file("state/circuit-breakers.json")["api/claude"]["failure_count"].as_u64();
        assert!(counted.unwrap_or(0) < 3, "{error} is no flakiness: {counted:?}");
        let tasks = desk.call("dlq list --in all").out;
        assert_eq!(tasks, "no failed tasks\n", "{error} says nothing about the task");
    }
}

#[test]
fn the_end_of_a_supervised_turn_is_left_to_the_run() {
    let own = "- id: mine\n  on: [stop_failure]\n  breaker: api/mine\n  result: failure\n";
    let asked = "- id: asked\n  on: [stop_failure]\n  breaker: api/asked\n  result: failure\n  supervised: true\n";
    for (is_supervised, breakers, tasks) in [
        (false, vec!["api/asked", "api/claude", "api/mine"], false),
        (true, vec!["api/asked"], true),
    ] {
        let desk = Desk::new();
        desk.world.set_env("POLICYD_POLICIES", "/pack");
        desk.world.put("/pack/policyd.yaml", "version: 1\nextends: [builtin]\n");
        desk.world.put("/pack/reactions.yaml", format!("{own}{asked}"));
        if is_supervised {
            desk.world.set_env("POLICYD_RUN", "/work/.policyd/runs/r/1");
        }
        for _ in 0..4 {
            turn_fails(&desk, "unknown");
        }
        let file = desk.file("state/circuit-breakers.json");
        let mut names: Vec<&str> = file.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, breakers, "{is_supervised}");
        let listed = desk.call("dlq list --in all").out;
        assert_eq!(listed == "no failed tasks\n", tasks, "{listed}");
    }
}

#[test]
fn a_breaker_that_opened_closes_when_turns_end_well() {
    let desk = Desk::new();
    for _ in 0..3 {
        turn_fails(&desk, "overloaded");
    }
    desk.world.put("/t.jsonl", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"uuid\":\"u\"}\n");
    for _ in 0..3 {
        desk.advance(1);
        assert_eq!(desk.call("breaker allow api/claude").code, 0);
        event(
            &desk,
            "Stop",
            &json!({"transcript_path": "/t.jsonl", "last_assistant_message": "Done."}),
        );
    }
    let breaker = &desk.file("state/circuit-breakers.json")["api/claude"];
    assert_eq!(breaker["state"], "CLOSED", "{breaker}");
    let log = desk.world.get("/work/.policyd/logs/circuit-recovery.log").unwrap();
    assert!(String::from_utf8(log).unwrap().ends_with("Circuit recovered: api/claude\n"));
}

#[test]
fn tools_of_servers_have_breakers_and_those_of_this_machine_have_none() {
    let desk = Desk::new();
    let failed = |tool: &str, interrupted: bool| json!({"tool_name": tool, "error": "MCP error -32000: Connection closed", "is_interrupt": interrupted});
    for _ in 0..3 {
        event(&desk, "PostToolUseFailure", &failed("Bash", false));
        event(&desk, "PostToolUseFailure", &failed("mcp__db__query", false));
        event(&desk, "PostToolUseFailure", &failed("mcp__db__stop", true));
    }
    let file = desk.file("state/circuit-breakers.json");
    let names: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(names, ["tool/mcp__db__query"]);
    assert_eq!(file["tool/mcp__db__query"]["state"], "OPEN");
}

#[test]
fn a_prompt_that_fails_again_and_again_becomes_a_dead_letter() {
    let desk = Desk::new();
    for _ in 0..4 {
        turn_fails(&desk, "unknown");
    }
    assert!(desk.call("dlq list --in all").out.starts_with("session/s-1/  pending: 4 failed"));
    turn_fails(&desk, "unknown");
    assert!(desk.call("dlq list").out.starts_with("session/s-1/  dead-letter: 5 failed"));
    for _ in 0..9 {
        turn_fails(&desk, "rate_limit");
    }
    assert!(desk.call("dlq list").out.contains("5 failed"), "a rate limit is no attempt");
}

#[test]
fn a_session_begins_with_the_review_that_is_due() {
    let desk = Desk::new();
    assert_eq!(event(&desk, "SessionStart", &json!({"source": "startup"})).out, "");
    let tasks = json!([
        {"task_id": "a", "task_data": {"title": "Old"}, "hints": {"marks": ["scope_obsolete"]}},
        {"task_id": "b", "task_data": {"title": "Rotate passwords"}},
        {"task_id": "c", "task_data": {"title": "Wait"}, "first_failure": "2026-01-01T00:00:00Z"},
    ]);
    desk.put("queue/dead-letter.json", &json!({"tasks": tasks}));
    let said = context(&event(&desk, "SessionStart", &json!({"source": "startup"})));
    assert!(said.contains("- Old: abandoned, scope_obsolete (scope_obsolete)"), "{said}");
    assert!(said.contains("- \"Rotate passwords\": escalated (human_needed)"), "{said}");
    assert!(said.contains("has waited for 588 h"), "{said}");
    assert!(said.contains("wait for a human decision"), "{said}");
    let prompt = context(&event(&desk, "UserPromptSubmit", &json!({"prompt": "Go on"})));
    assert!(prompt.contains("- \"Rotate passwords\": "), "{prompt}");
    assert!(!prompt.contains("given up"), "{prompt}");
    let again = context(&event(&desk, "SessionStart", &json!({"source": "resume"})));
    assert!(!again.contains("given up"), "it is not due again: {again}");
    desk.call("escalation resolve 2026 --decision fine");
    assert_eq!(event(&desk, "UserPromptSubmit", &json!({"prompt": "Go on"})).out, "");
}

/// Dead letters of which each waits, with as many attempts.
fn letters(count: usize, attempts: usize) -> Value {
    let attempt =
        json!({"timestamp": "2026-01-20T12:00:00Z", "approach": "a", "error_message": "e"});
    let task = |number: usize| {
        json!({"task_id": format!("t{number}"), "title": "T", "first_failure": "2026-01-20T12:00:00Z",
            "attempts": vec![attempt.clone(); attempts], "failure_count": attempts})
    };
    json!({"tasks": (0..count).map(task).collect::<Vec<_>>()})
}

#[test]
fn a_review_is_bounded_and_the_next_calls_go_on_with_it() {
    let desk = Desk::new();
    let count = REVIEWED_AT_ONCE_MAX * 2 + 50;
    desk.put("queue/dead-letter.json", &letters(count, 2));
    let mut seen = BTreeSet::new();
    for left in [REVIEWED_AT_ONCE_MAX + 50, 50, 0] {
        let metadata = || desk.file("queue/dead-letter.json")["metadata"].clone();
        assert!(metadata()["last_reviewed"].is_null(), "the round is not over: {}", metadata());
        desk.world.clear_log();
        let said = desk.call("dlq review --if-due --format json");
        let saves = desk
            .world
            .log()
            .iter()
            .filter(|it| it.starts_with("write .policyd/queue/.dead"))
            .count();
        assert_eq!(saves, 1, "one save for all of them");
        let ids = said.lines().into_iter().map(|it| it["task_id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        assert_eq!(seen.len(), count - left);
        assert_eq!(said.err.contains(&format!("next review: {left}\n")), left > 0, "{said:?}");
        assert_eq!(metadata()["review_from"].is_string(), left > 0, "{}", metadata());
    }
    let again = desk.call("dlq review --if-due");
    assert!(again.out.contains("last review is recent"), "{again:?}");
    // Time counts as well.
    let desk = Desk::new();
    desk.put("queue/dead-letter.json", &letters(50, 1));
    desk.world.tick(Duration::from_millis(10));
    let said = desk.call("dlq review --format json");
    assert!((1..20).contains(&said.lines().len()), "{}", said.lines().len());
}

#[test]
fn a_session_start_reviews_no_more_than_one_call_may() {
    let desk = Desk::new();
    desk.put("queue/dead-letter.json", &letters(REVIEWED_AT_ONCE_MAX + 1, 1));
    event(&desk, "SessionStart", &json!({"source": "startup"}));
    let file = || desk.file("queue/dead-letter.json");
    assert_eq!(file()["metadata"]["review_from"], format!("t{REVIEWED_AT_ONCE_MAX}"));
    event(&desk, "SessionStart", &json!({"source": "startup"}));
    assert!(file()["metadata"]["last_reviewed"].is_string(), "{}", file()["metadata"]);
}

#[test]
fn what_cannot_be_noted_fails_nobody() {
    use policyd::world::WorldError;
    use policyd::world::fake::Op;
    let desk = Desk::new();
    for op in [Op::Write, Op::Lock, Op::Append, Op::CreateFolder] {
        desk.world.refuse_always(op, "", WorldError::Io("disk full".to_owned()));
    }
    assert_eq!(turn_fails(&desk, "overloaded").out, "");
    assert_eq!(turn_fails(&desk, "authentication_failed").out, "");
}

#[test]
fn a_reaction_of_a_pack_of_ones_own() {
    let mine = "- id: noticed\n  on: [post_tool_use_failure]\n  when: event.tool == \"Bash\" && event.text.contains(\"No module\")\n  say: \"Install it first: ${event.text}\"\n- {id: api_error, override: true, enabled: false}\n";
    let desk = Desk::new().with_pack("reactions.yaml", mine);
    let failed =
        json!({"tool_name": "Bash", "error": "No module named pytest, token=abc123def456"});
    let said = context(&event(&desk, "PostToolUseFailure", &failed));
    assert_eq!(said, "Install it first: No module named pytest, token=«masked»");
    turn_fails(&desk, "overloaded");
    assert_eq!(desk.file("state/circuit-breakers.json"), Value::Null, "it is switched off");
}

#[test]
fn pending_signals_reach_the_agent_and_a_late_review_becomes_a_dead_letter() {
    let desk = Desk::new();
    desk.words(&["dlq", "add", "task-099", "--title", "Deploy", "--error", "needs keys"]);
    let review = json!({"timestamp": "2026-01-25T11:00:00Z", "reason": "security_decision",
        "task_id": "task-099", "context": "Needs production keys", "severity": "critical", "blocking": true});
    desk.put("signals/HUMAN_REVIEW_NEEDED", &review);
    desk.put("signals/FEATURE_READY_auth", &json!({}));
    desk.advance(1);
    let said = context(&event(&desk, "UserPromptSubmit", &json!({"prompt": "Go on"})));
    assert!(said.contains("Pending signals"), "{said}");
    assert!(said.contains("security_decision") || said.contains("task-099"), "{said}");
    desk.advance(30);
    event(&desk, "SessionStart", &json!({"source": "startup"}));
    let early = desk.call("dlq list --format json").lines();
    assert!(early.is_empty(), "the clock may have jumped: {early:?}");
    desk.advance(1);
    event(&desk, "SessionStart", &json!({"source": "startup"}));
    let dead = desk.call("dlq list --format json").lines();
    assert_eq!(dead[0]["task_id"], "task-099", "{dead:?}");
    let asked = desk.call("escalation list --format json").lines();
    assert!(asked.iter().any(|it| it["task_id"] == "task-099"), "{asked:?}");
    assert!(!desk.names("signals").contains(&"HUMAN_REVIEW_NEEDED".to_owned()));
}

#[test]
fn a_rule_at_a_stop_reports_a_drift() {
    let rule = "- id: on_task\n  category: Focus\n  question: Does the agent work on its task?\n  severity: warning\n  applicable_session_types: [\"*\"]\n  satisfied: files.count == 0\n  details: It edits the schema of the database.\n  emit: DRIFT_DETECTED\n";
    let desk = Desk::new().with_pack("considerations.yaml", rule);
    desk.put(
        "queue/current-task.json",
        &json!({"task_id": "task-042", "title": "Add login endpoint"}),
    );
    let line = |value: Value| format!("{value}\n");
    let mut transcript = line(
        json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "Add login"}}),
    );
    transcript += &line(
        json!({"type": "assistant", "uuid": "a", "message": {"id": "m", "role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "/work/a.sql", "content": "x"}}]}}),
    );
    transcript +=
        &line(json!({"type": "user", "uuid": "r", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}}));
    desk.world.put("/t.jsonl", transcript);
    desk.world.put("/work/a.sql", "x");
    for _ in 0..3 {
        event(
            &desk,
            "Stop",
            &json!({"transcript_path": "/t.jsonl", "last_assistant_message": "Done."}),
        );
    }
    let log = String::from_utf8(desk.world.get("/work/.policyd/signals/DRIFT_DETECTED").unwrap())
        .unwrap();
    let drift: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&drift["task_id"], &drift["original_goal"]),
        (&json!("task-042"), &json!("Add login endpoint"))
    );
    assert_eq!(drift["detected_drift"], "It edits the schema of the database.");
    assert_eq!(log.lines().count(), 3);
    assert!(
        desk.names("signals").contains(&"CONTEXT_CLEAR_REQUESTED".to_owned()),
        "{:?}",
        desk.names("signals")
    );
}

#[test]
fn a_rule_sees_what_waits_and_an_explanation_sees_the_same() {
    let rule = "- id: nobody_waits\n  category: Humans\n  question: Is every question answered?\n  severity: warning\n  applicable_session_types: [\"*\"]\n  satisfied: escalations.blocking.len() == 0 && dead_letter.alarms.len() == 0\n  details: ${escalations.blocking.join(\", \")} waits, ${dead_letter.depth} dead\n";
    let desk = Desk::new().with_pack("considerations.yaml", rule);
    desk.words(&[
        "dlq",
        "add",
        "t",
        "--title",
        "Rotate passwords",
        "--error",
        "E",
        "--immediately",
    ]);
    desk.world.put("/t.jsonl", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"uuid\":\"u\"}\n");
    let said = event(
        &desk,
        "Stop",
        &json!({"transcript_path": "/t.jsonl", "last_assistant_message": "Done."}),
    );
    let notice = said.json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(notice.contains("Rotate passwords waits, 1 dead"), "{notice}");
    let explained = desk.call("explain --format json").json();
    assert_eq!(explained["same"], true, "{explained:#}");
    assert_eq!(desk.call("try escalations.blocking.len()").code, 0);
}

#[test]
fn a_failure_is_kept_while_somebody_holds_the_lists() {
    let desk = Desk::new();
    turn_fails(&desk, "unclassified");
    let attempts = || {
        let lists = ["pending", "dead-letter"].map(|it| format!("queue/{it}.json"));
        let lists =
            lists.iter().filter(|it| desk.world.get(format!("/work/.policyd/{it}")).is_some());
        let tasks: Vec<Value> =
            lists.flat_map(|it| desk.file(it)["tasks"].as_array().unwrap().clone()).collect();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks[0]["attempts"].as_array().unwrap().len()
    };
    assert_eq!(attempts(), 1);

    let late = Path::new("/work/.policyd/queue/late");
    let held = desk.world.lock(Path::new("/work/.policyd/queue/.queue.lock"), Duration::ZERO);
    turn_fails(&desk, "unclassified");
    desk.world.advance(Duration::from_secs(5));
    turn_fails(&desk, "unclassified");
    drop(held);
    let kept: Vec<_> = desk.world.list(late).unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(attempts(), 1);

    // Somebody who died before removing what they took in leaves it to be met again.
    let copies: Vec<_> =
        kept.iter().map(|it| (late.join(it), desk.world.get(late.join(it)).unwrap())).collect();
    desk.world.put(late.join("1-odd.json"), "[");
    turn_fails(&desk, "unclassified");
    copies.into_iter().for_each(|(path, bytes)| desk.world.put(path, bytes));
    turn_fails(&desk, "unclassified");
    assert_eq!(attempts(), 5, "each is counted once");
    let left: Vec<_> = desk.world.list(late).unwrap();
    assert!(left.iter().all(|it| it.contains(".corrupt-")), "{left:?}");
}

#[test]
fn guards_see_what_is_left_alone_and_what_waits_for_humans() {
    let guards = r#"
- id: wait
  on: [user_prompt_submit, pre_tool_use]
  when: breakers["api/claude"].open || escalations.blocking.len() > 0 || signals.awaiting_human > 0
  decision: block
  message: 'open ${breakers["api/claude"].open}, ${escalations.blocking.len()} asked, ${signals.awaiting_human} awaited'
"#;
    let desk = Desk::new().with_pack("guards.yaml", guards);
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let told = || event(&desk, "PreToolUse", &call).out;
    assert_eq!(told(), "");
    desk.words(&["breaker", "trip", "api/claude", "--reason", "a strike"]);
    assert!(told().contains("open true, 0 asked, 0 awaited"), "{}", told());
    desk.call("breaker reset api/claude");
    assert_eq!(told(), "");
    desk.words(&["escalation", "open", "--task", "t", "--reason", "Which one?", "--blocking"]);
    assert!(told().contains("open false, 1 asked, 0 awaited"), "{}", told());
    desk.words(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=keys"]);
    assert!(told().contains("1 awaited"), "{}", told());
}
