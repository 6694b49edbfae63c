//! `policyd inbox`: what waits in all projects, and the answers.

use policyd::world::fake::FakeWorld;
use policyd::world::{Ancestor, Confirmation};
use serde_json::Value;

use crate::support::console::{Said, call};
use crate::support::machine::machine;

fn run(world: &FakeWorld, line: &str) -> Said {
    call(world, &line.split(' ').collect::<Vec<_>>(), b"")
}

fn done(world: &FakeWorld, line: &str) -> String {
    let said = run(world, line);
    assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
    said.out
}

/// The items as `kind id`.
fn items(world: &FakeWorld) -> Vec<(String, String)> {
    let json: Value = serde_json::from_str(&done(world, "inbox --format json")).unwrap();
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let items = json["items"].as_array().unwrap().iter();
    items.map(|it| (text(&it["kind"]), text(&it["id"]))).collect()
}

/// A machine on which a task, a signal, and a breaker wait.
fn waiting() -> FakeWorld {
    let world = machine();
    let add = ["dlq", "add", "sec", "--title", "Rotate passwords", "--error", "E", "--immediately"];
    assert_eq!(call(&world, &add, b"").code, 0);
    done(&world, "signal emit HUMAN_REVIEW_NEEDED reason=keys");
    world
}

#[test]
fn what_waits_is_one_list_with_questions_first_and_each_cause_once() {
    let world = machine();
    assert_eq!(done(&world, "inbox"), "no item waits for you\n");
    let world = waiting();
    let items = items(&world);
    let kinds: Vec<&str> = items.iter().map(|(kind, _)| kind.as_str()).collect();
    assert!(kinds.contains(&"signal"), "{items:?}");
    assert!(
        kinds.is_sorted_by_key(|it| ["question", "signal", "dead letter", "breaker", "run"]
            .iter()
            .position(|known| known == it)),
        "{items:?}"
    );
    // The escalation about the task stands for it.
    assert!(kinds.contains(&"question") && !kinds.contains(&"dead letter"), "{items:?}");
    let text = done(&world, "inbox");
    assert!(
        text.contains("Rotate passwords") && text.contains("policyd inbox answer ID yes|no"),
        "{text}"
    );
    let lines = done(&world, "inbox --format compact");
    assert_eq!(lines.lines().count(), items.len(), "{lines}");
    done(&world, "signal emit PLAN_REVIEW_NEEDED plan=drop-table-users");
    let text = done(&world, "inbox");
    assert!(text.contains("drop-table-users"), "nobody approves a plan unseen: {text}");
}

#[test]
fn each_command_that_answers_a_question_is_logged() {
    let world = waiting();
    let id = items(&world).into_iter().find(|(kind, _)| kind == "question").unwrap().1;
    done(&world, &format!("escalation resolve {id} --decision rotated"));
    let logged = |part: &str| {
        let log = done(&world, "log --format json");
        assert!(log.contains(part) && log.contains("ada"), "{part}: {log}");
    };
    logged(&format!("approve question {id}: Rotate passwords: rotated"));
    let id = items(&world).into_iter().find(|(kind, _)| kind == "signal").unwrap().1;
    done(&world, &format!("signal reject {id} --reason unused"));
    logged(&format!("reject signal {id}: HUMAN_REVIEW_NEEDED: unused"));
    done(&world, "breaker trip api/x --reason maintenance");
    done(&world, "breaker reset api/x");
    logged("reset breaker api/x");
    for (line, part) in [
        ("dlq retry t1 --force", "retry dead letter t1"),
        ("dlq abandon t2 --reason old", "abandon dead letter t2: old"),
        ("dlq resolve t3", "resolve dead letter t3"),
    ] {
        let id = line.split(' ').nth(2).unwrap();
        done(&world, &format!("dlq add {id} --title T --error E --immediately"));
        done(&world, line);
        logged(part);
    }
}

#[test]
fn one_answer_clears_a_question_and_its_task_and_is_logged() {
    let world = waiting();
    let before = items(&world);
    let (_, id) = before.iter().find(|(kind, _)| kind == "question").unwrap();
    let said = done(&world, &format!("inbox answer {id} yes rotated by hand"));
    assert!(said.starts_with(&format!("recorded: approve question {id}")), "{said}");
    let after = items(&world);
    assert!(
        !after.iter().any(|(kind, _)| kind == "question" || kind == "dead letter"),
        "{after:?}"
    );
    let log = done(&world, "log --format json");
    assert!(log.contains("approve question") && log.contains("rotated by hand"), "{log}");
    assert!(log.contains("ada"), "who answered: {log}");
    let closed = done(&world, "escalation list --all");
    assert!(closed.contains("approved by ada"), "{closed}");
    let (_, id) = after.iter().find(|(kind, _)| kind == "signal").unwrap();
    done(&world, &format!("inbox answer {} no", &id[..id.len() - 1]));
    assert!(!items(&world).iter().any(|(kind, _)| kind == "signal"));
    let again = run(&world, &format!("inbox answer {id} no"));
    assert_eq!(again.code, 2);
    assert!(
        again.err.contains("nothing waits") && again.err.contains("policyd inbox"),
        "{}",
        again.err
    );
}

#[test]
fn only_a_human_answers() {
    let world = waiting();
    let before = items(&world);
    let (_, id) = &before[0];
    let answer = format!("inbox answer {id} yes");
    world.set_confirmation(Confirmation::No);
    assert_eq!(run(&world, &answer).code, 1);
    world.set_confirmation(Confirmation::Yes);
    let program = "/usr/bin/codex".to_owned();
    world.set_ancestors(vec![Ancestor { pid: 9, program, ..Ancestor::default() }]);
    assert!(run(&world, &answer).err.contains("is Codex"));
    assert_eq!(items(&world), before);
}

#[test]
fn a_blocked_call_and_a_tripped_breaker_wait_with_their_commands() {
    let world = machine();
    let payload = serde_json::json!({"session_id": "s", "cwd": "/work", "tool_name": "Bash",
        "tool_input": {"command": "rm -rf ~"}});
    let payload = payload.to_string();
    let hook = || call(&world, &["eval", "--hook", "pre-tool-use"], payload.as_bytes()).out;
    assert!(hook().contains("deny"));
    hook();
    done(&world, "breaker trip api/x --reason maintenance");
    let waiting = items(&world);
    let kinds: Vec<&str> = waiting.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["blocked call", "breaker"], "each once: {waiting:?}");
    let text = done(&world, "inbox list");
    for part in ["rm -rf ~ (blocked by", "rm_recursive", "tripped by hand", "maintenance"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, code) = &waiting[0];
    let no = run(&world, &format!("inbox answer {code} no"));
    assert!(no.code == 2 && no.err.contains("stays blocked"), "{no:?}");
    done(&world, &format!("inbox answer {code} yes"));
    done(&world, "inbox answer api/x yes");
    assert_eq!(items(&world), []);
    assert!(!hook().contains("deny"), "the user allowed it once");
    assert!(hook().contains("deny"));
    assert_eq!(items(&world).len(), 1);
    world.advance(std::time::Duration::from_secs(2 * 60 * 60));
    assert_eq!(items(&world), [], "an old call does not wait");
}

#[test]
fn an_unknown_word_after_a_command_leads_to_the_commands_of_that_command() {
    let said = run(&machine(), "inbox show");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("policyd inbox --help") && !said.err.contains("policyd check"));
}
