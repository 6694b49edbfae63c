//! What is for humans stays theirs: no agent answers in their place, no answer moves what it was not
//! given for, and nothing is lost because somebody could not be asked.

use policyd::world::WorldError;
use policyd::world::fake::Op;
use serde_json::{Value, json};

use crate::desk::Desk;

/// A desk with a security task that waits for a human, and the id of the question.
fn waiting() -> (Desk, String) {
    let desk = Desk::new();
    let words =
        ["dlq", "add", "sec", "--title", "Rotate passwords", "--error", "E", "--immediately"];
    assert_eq!(desk.words(&words).code, 0);
    let id =
        desk.call("escalation list --format json").lines()[0]["id"].as_str().unwrap().to_owned();
    (desk, id)
}

fn task(desk: &Desk, id: &str) -> Value {
    let all = desk.call("dlq list --in all --format json").lines();
    all.into_iter().find(|it| it["task_id"] == id).unwrap_or_default()
}

#[test]
fn an_agent_does_not_answer_for_a_human() {
    let (desk, id) = waiting();
    desk.words(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=keys", "task_id=sec"]);
    desk.world.set_env("CLAUDECODE", "1");
    let resolve = ["escalation", "resolve", &id, "--decision", "go on"];
    for words in [
        resolve.as_slice(),
        &["dlq", "retry", "sec"],
        &["dlq", "retry", "sec", "--force"],
        &["dlq", "abandon", "sec", "--reason", "no"],
        &["dlq", "resolve", "sec"],
        &["dlq", "add", "sec", "--label", "human_approved", "--error", "E"],
        &["signal", "emit", "HUMAN_APPROVED"],
        &["signal", "consume", "HUMAN_REVIEW_NEEDED"],
        &["signal", "approve", "HUMAN_REVIEW_NEEDED"],
    ] {
        let said = desk.words(words);
        assert_eq!(said.code, 1, "{words:?}: {said:?}");
        assert!(said.err.contains("for humans"), "{words:?}: {said:?}");
    }
    assert_eq!(task(&desk, "sec")["waits_for"], json!(id));
    desk.call("dlq redrive");
    assert_eq!(task(&desk, "sec")["place"], "dead-letter");
}

#[test]
fn an_answer_moves_only_what_waits_for_it() {
    let (desk, id) = waiting();
    desk.words(&["escalation", "open", "--task", "sec", "--reason", "Which colour?"]);
    desk.words(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=tabs", "task_id=sec"]);
    let asked = desk.call("escalation list --format json").lines();
    let other = asked.iter().find(|it| it["id"] != json!(id)).unwrap()["id"].as_str().unwrap();
    assert_eq!(desk.words(&["escalation", "resolve", other, "--decision", "blue"]).code, 0);
    assert_eq!(desk.call("signal approve HUMAN_REVIEW_NEEDED").code, 0);
    assert_eq!(task(&desk, "sec")["waits_for"], json!(id), "the first question is open");
    let said = desk.words(&["escalation", "resolve", &id, "--decision", "use the vault"]);
    assert!(said.out.contains("sec: requeued to pending"), "{said:?}");
}

#[test]
fn a_humans_no_gives_a_task_up() {
    let desk = Desk::new();
    desk.words(&["dlq", "add", "t", "--error", "E"]);
    desk.words(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=may I", "task_id=t"]);
    let blocked = desk.file("queue/pending.json")["tasks"][0].clone();
    assert_eq!(blocked["status"], "blocked", "{blocked}");
    assert_eq!(desk.call("signal reject HUMAN_REVIEW_NEEDED --reason no").code, 0);
    let after = task(&desk, "t");
    assert_eq!((&after["place"], &after["reason"]), (&json!("abandoned"), &json!("human")));
}

#[test]
fn an_answer_that_moved_nothing_is_taken_in_by_the_next_review() {
    let (desk, id) = waiting();
    let mut index = desk.file("escalations/index.json");
    index["escalations"][0]["status"] = "approved".into();
    desk.put("escalations/index.json", &index);
    assert!(desk.call("dlq review").out.contains("requeued to pending (human_approved)"), "{id}");
}

#[test]
fn a_question_that_cannot_be_written_loses_no_failure() {
    let desk = Desk::new();
    desk.world.refuse_always(Op::Write, ".md.tmp", WorldError::Io("disk full".to_owned()));
    let words =
        ["dlq", "add", "sec", "--title", "Rotate passwords", "--error", "E", "--immediately"];
    let said = desk.words(&words);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("could not be asked"), "{said:?}");
    assert_eq!(task(&desk, "sec")["place"], "dead-letter");
    desk.world.refuse_nothing();
    assert!(desk.call("dlq review").out.contains("escalated"));
}

#[test]
fn a_broken_pack_forgets_nothing() {
    let desk = Desk::new().with_pack("tables.yaml", "- {id: mine, rows: 3}\n");
    let said = desk.words(&["dlq", "add", "t", "--error", "E"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("the built-in pack is used meanwhile"), "{said:?}");
    assert_eq!(desk.call("breaker allow api/claude").code, 0);
    let payload = json!({"session_id": "s", "cwd": "/work", "error": "overloaded"}).to_string();
    let hook = desk.run(&["eval", "--hook", "stop-failure"], payload.as_bytes());
    assert_eq!((hook.code, hook.out.as_str()), (0, ""));
    assert_eq!(desk.file("state/circuit-breakers.json")["api/claude"]["failure_count"], 1);
}

#[test]
fn attempts_that_say_nothing_have_no_error_in_common() {
    let desk = Desk::new();
    for approach in ["a", "b", "c"] {
        desk.words(&["dlq", "add", "t", "--approach", approach, "--immediately"]);
    }
    assert_eq!(desk.call("dlq review").out, "t: unchanged, no rule applies\n");
    assert_eq!(desk.words(&["dlq", "add", "", "--error", "E"]).code, 3, "a task has an id");
}

#[test]
fn no_secret_is_stored() {
    let desk = Desk::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let error = format!("401 with {secret}");
    desk.words(&[
        "dlq",
        "add",
        "t",
        "--title",
        &error,
        "--error",
        &error,
        "--approach",
        &error,
        "--immediately",
    ]);
    let payload =
        json!({"session_id": "s", "cwd": "/work", "tool_name": "mcp__a__b", "error": error});
    desk.run(&["eval", "--hook", "post-tool-use-failure"], payload.to_string().as_bytes());
    for path in desk.world.files().iter().filter(|it| it.starts_with("/work/.policyd")) {
        let text = String::from_utf8_lossy(&desk.world.get(path).unwrap()).into_owned();
        assert!(!text.contains(secret), "{}: {text}", path.display());
    }
}

/// Three tasks that failed alike, and the ids of the open questions about them.
fn alike() -> (Desk, Vec<String>) {
    let desk = Desk::new();
    for id in ["a", "b", "c"] {
        let error = format!("no answer after {}s", id.len());
        let words = ["dlq", "add", id, "--error", &error, "--immediately"];
        assert_eq!(desk.words(&words).code, 0);
    }
    desk.call("dlq review");
    let asked = desk.call("escalation list --format json").lines();
    (desk, asked.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn tasks_that_fail_alike_are_one_question_and_one_answer() {
    let (desk, asked) = alike();
    let [id] = asked.as_slice() else { panic!("{asked:?}") };
    for task_id in ["a", "b", "c"] {
        assert_eq!(task(&desk, task_id)["waits_for"], json!(id), "{task_id}");
    }
    assert_eq!(desk.words(&["escalation", "resolve", id, "--decision", "restarted"]).code, 0);
    for task_id in ["a", "b", "c"] {
        assert_eq!(task(&desk, task_id)["place"], "pending", "{task_id}");
    }
}

#[test]
fn a_question_about_several_is_open_until_none_of_them_waits() {
    let (desk, asked) = alike();
    let open = || desk.call("escalation list --format json").lines().len();
    assert_eq!(asked.len(), 1);
    for (task_id, left) in [("a", 1), ("b", 1), ("c", 0)] {
        assert_eq!(desk.words(&["dlq", "resolve", task_id]).code, 0);
        assert_eq!(open(), left, "{task_id}");
    }
}
