//! `policyd dlq` and `policyd escalation` as people call them.

use policyd::world::fake::Op;
use policyd::world::{CommandOutput, WorldError};
use serde_json::json;

use crate::desk::Desk;
use crate::support::snapshot;

/// A session at the command line, as text.
fn session(desk: &Desk, lines: &[&[&str]]) -> String {
    let mut text = String::new();
    for words in lines {
        let said = desk.words(words);
        text.push_str(&format!("$ policyd {}\n{}{}", words.join(" "), said.out, said.err));
        if said.code != 0 {
            text.push_str(&format!("(exit {})\n", said.code));
        }
    }
    text
}

#[test]
fn a_task_that_fails_five_times_is_put_aside_and_comes_back() {
    let desk = Desk::new();
    let mut text = String::new();
    for number in 1..=5 {
        let error = format!("parser_test failed: case {number}");
        text += &session(
            &desk,
            &[&[
                "dlq",
                "add",
                "t-7",
                "--title",
                "Write a parser",
                "--type",
                "test_failure",
                "--approach",
                "by hand",
                "--error",
                &error,
            ]],
        );
        desk.advance(1);
    }
    text += &session(
        &desk,
        &[
            &["dlq", "add", "t-7", "--type", "rate_limit", "--error", "429"],
            &["dlq", "list"],
            &["dlq", "show", "t-7"],
            &["dlq", "review", "--dry-run"],
            &["dlq", "review"],
            &["dlq", "retry", "t-7", "--approach", "with a library"],
            &["dlq", "list", "--in", "all"],
            &["dlq", "add", "t-7", "--approach", "with a library", "--error", "no such crate"],
            &["dlq", "resolve", "t-7"],
            &["dlq", "list", "--in", "all"],
            &["dlq", "stats"],
            &["dlq", "show", "t-9"],
        ],
    );
    snapshot("resilience", "dlq__five_failures_and_back", text);
}

#[test]
fn a_security_task_goes_to_a_human_before_it_is_given_up() {
    let desk = Desk::new();
    let mut text = String::new();
    for number in 1..=12 {
        let error = format!("rotation {number} failed");
        let words = [
            "dlq",
            "add",
            "t-9",
            "--title",
            "Rotate credentials",
            "--error",
            &error,
            "--approach",
            "vault",
        ];
        let said = desk.words(&words);
        if number == 5 {
            text += &said.out;
        }
    }
    let id =
        desk.call("escalation list --format json").lines()[0]["id"].as_str().unwrap().to_owned();
    text += &session(
        &desk,
        &[
            &["escalation", "list"],
            &["escalation", "show", &id],
            &["dlq", "review"],
            &["dlq", "retry", "t-9", "--fix-commit", "abc"],
            &["escalation", "resolve", "2026", "--decision", "Use the staging vault"],
            &["escalation", "resolve", &id, "--decision", "Changed my mind", "--reject"],
            &["dlq", "list", "--in", "all"],
            &["escalation", "list", "--all"],
        ],
    );
    snapshot("resilience", "escalation__a_security_task", text);
}

#[test]
fn the_seeds_literal_order_is_one_line() {
    let desk = Desk::new()
        .with_pack("dead_letter.yaml", "order: [human, wait, retry, abandon, escalate]\n");
    let attempts: Vec<_> = (1..=10)
        .map(|number| json!({"attempt_number": number, "error_message": format!("E{number}")}))
        .collect();
    desk.put(
        "queue/dead-letter.json",
        &json!({"tasks": [{"task_id": "t", "attempts": attempts,
        "task_data": {"title": "Rotate credentials"}}]}),
    );
    assert_eq!(desk.call("dlq review").out, "t: abandoned, max_attempts (max_attempts)\n");
}

#[test]
fn redriving_has_a_rate_and_no_poison_loop() {
    let desk =
        Desk::new().with_pack("dead_letter.yaml", "redrive: {rate: 2, per: 1h, max_times: 2}\n");
    for id in ["a", "b", "c"] {
        desk.words(&["dlq", "add", id, "--error", "E", "--immediately"]);
        desk.advance(1);
    }
    let mut text = session(&desk, &[&["dlq", "redrive", "--dry-run"], &["dlq", "redrive"]]);
    desk.advance(1);
    text += &session(&desk, &[&["dlq", "redrive"]]);
    for _ in 0..2 {
        desk.words(&["dlq", "add", "a", "--error", "E", "--immediately"]);
        desk.advance(1);
        text += &session(&desk, &[&["dlq", "redrive"]]);
    }
    text += &session(&desk, &[&["dlq", "retry", "a"], &["dlq", "retry", "a", "--force"]]);
    snapshot("resilience", "dlq__redrive_with_a_rate", text);
}

#[test]
fn every_store_works_on_a_file_system_that_does_not_sync() {
    for (words, file) in [
        (
            &["breaker", "record", "api/x", "failure", "--error", "E"][..],
            "state/circuit-breakers.json",
        ),
        (&["dlq", "add", "t", "--error", "E"], "queue/pending.json"),
        (&["signal", "emit", "DRIFT_DETECTED", "detected_drift=x"], "signals/DRIFT_DETECTED"),
        (&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=r"], "signals/HUMAN_REVIEW_NEEDED"),
        (&["escalation", "open", "--gate", "g", "--reason", "r"], "escalations/index.json"),
    ] {
        let desk = Desk::new();
        for op in [Op::SyncFile, Op::SyncFolder] {
            desk.world.refuse_always(op, "", WorldError::Unsupported);
        }
        let said = desk.words(words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        assert_eq!(
            said.err.matches("a loss of power may undo it").count(),
            1,
            "{words:?}: {}",
            said.err
        );
        assert!(!desk.file(file).is_null(), "{words:?}");
        let desk = Desk::new();
        desk.world.refuse_always(Op::SyncFile, "", WorldError::Io("I/O error".to_owned()));
        assert_ne!(desk.words(words).code, 0, "{words:?}: a disk that fails is another matter");
    }
}

#[test]
fn a_dependency_is_noticed_by_itself() {
    let desk = Desk::new();
    desk.words(&["dlq", "add", "schema", "--error", "E"]);
    desk.put(
        "queue/dead-letter.json",
        &json!({"tasks": [{"task_id": "api", "recovery_strategy": "dependency_blocked",
        "task_data": {"dependencies": ["schema"]}}]}),
    );
    assert_eq!(desk.call("dlq review").out, "api: unchanged, no rule applies\n");
    desk.call("dlq resolve schema");
    assert_eq!(desk.call("dlq review").out, "api: requeued to pending (dependency_available)\n");
    assert_eq!(
        desk.file("queue/pending.json")["tasks"][0]["recovery_strategy"],
        "dependency_resolved"
    );
}

#[test]
fn a_dependency_that_no_queue_knows_is_neither_available_nor_lost() {
    let desk = Desk::new();
    let waiting = json!({"tasks": [{"task_id": "api", "recovery_strategy": "dependency_blocked",
        "task_data": {"dependencies": ["schema", "scheme"]}}]});
    desk.put("queue/dead-letter.json", &waiting);
    let unknown = |names: &str| {
        format!("api: unchanged, no rule applies; in no queue and not known to be done: {names}\n")
    };
    assert_eq!(desk.call("dlq review").out, unknown("`schema`, `scheme`"));
    assert!(desk.call("dlq show api").out.contains(&unknown("`schema`, `scheme`")));
    desk.put("queue/completed.json", &json!({"tasks": [{"id": "schema"}]}));
    assert_eq!(desk.call("dlq review").out, unknown("`scheme`"));
    // What is done can fail again.
    desk.put("queue/completed.json", &json!(["schema", "scheme"]));
    desk.words(&["dlq", "add", "schema", "--error", "E"]);
    assert_eq!(desk.call("dlq review").out, "api: unchanged, no rule applies\n");
    desk.call("dlq resolve schema");
    assert_eq!(desk.file("queue/dead-letter.json")["metadata"]["resolved"], json!(["schema"]));
    assert_eq!(desk.call("dlq review").out, "api: requeued to pending (dependency_available)\n");
}

#[test]
fn failures_that_a_file_only_counts_are_failures() {
    let desk = Desk::new();
    let attempt = json!({"attempt_number": 1, "error_message": "E1"});
    let task = |id: &str, failures: u32, attempts: &[serde_json::Value]| {
        json!({"task_id": id, "failure_count": failures, "attempts": attempts,
            "task_data": {"title": "Rotate credentials"}})
    };
    let tasks = [task("five", 5, std::slice::from_ref(&attempt)), task("none", 5, &[])];
    desk.put("queue/dead-letter.json", &json!({"tasks": tasks}));
    let list = desk.call("dlq list").out;
    assert_eq!(list.matches("5 failed attempts").count(), 2, "{list}");
    let reviewed = desk.call("dlq review").out;
    assert_eq!(reviewed.matches("escalated").count(), 2, "{reviewed}");
    let documents = desk.names("escalations");
    let texts = documents.iter().filter(|it| it.ends_with(".md"));
    let read = |it: &String| desk.world.get(format!("/work/.policyd/escalations/{it}")).unwrap();
    let texts: Vec<String> = texts.map(|it| String::from_utf8(read(it)).unwrap()).collect();
    assert!(!texts.is_empty());
    for text in &texts {
        assert!(text.contains("**Failure Count:** 5"), "{text}");
        assert!(text.contains("Failed attempts: 5"), "{text}");
    }
    let desk = Desk::new();
    let plain = |id: &str, failures: u32, attempts: &[serde_json::Value]| json!({"task_id": id, "failure_count": failures, "attempts": attempts});
    let tasks = [plain("ten", 10, &[]), plain("twelve", 12, &[attempt]), plain("nine", 9, &[])];
    desk.put("queue/dead-letter.json", &json!({"tasks": tasks}));
    let reviewed = desk.call("dlq review").out;
    for id in ["ten", "twelve"] {
        assert!(reviewed.contains(&format!("{id}: abandoned, max_attempts")), "{reviewed}");
    }
    assert!(reviewed.contains("nine: unchanged"), "{reviewed}");
}

#[test]
fn a_channel_tells_humans_and_has_a_breaker_of_its_own() {
    let channels = "channels:\n  - {id: chat, command: [notify], timeout: 2s}\n  - {id: folder, override: true, enabled: true}\n";
    let desk = Desk::new().with_pack("escalation.yaml", channels);
    let fails = CommandOutput {
        code: Some(1),
        stdout: vec![],
        stderr: b"no network\n".to_vec(),
        truncated: false,
    };
    desk.world.script(&["notify"], Ok(fails), std::time::Duration::ZERO);
    let mut said = Vec::new();
    for number in 0..4 {
        let gate = format!("gate-{number}");
        let it =
            desk.words(&["escalation", "open", "--gate", &gate, "--reason", "It does not pass"]);
        assert_eq!(it.code, 0, "{it:?}");
        said.push(it.err);
    }
    assert!(said[0].contains("channel `chat`: exit 1: no network"), "{said:?}");
    assert!(said[3].contains("skipped after repeated failures"), "{said:?}");
    assert_eq!(desk.names("alerts").len(), 4);
    let told = &desk.file("escalations/index.json")["escalations"][0];
    assert_eq!(told["times_told"], 1);
    assert!(
        desk.names("escalations").iter().any(|it| it.starts_with("handoff-20260125T120000000Z-"))
    );
}

#[test]
fn a_document_that_somebody_wrote_by_hand_is_open() {
    let desk = Desk::new();
    desk.world.put("/work/.policyd/escalations/20260101T000000Z-by-hand.md", "## Help\n");
    let said = desk.call("escalation list");
    assert!(said.out.contains("written by hand"), "{said:?}");
    assert_eq!(desk.call("escalation resolve 20260101 --decision ok").code, 0);
    assert_eq!(desk.call("escalation list").out, "no open escalations\n");
}
