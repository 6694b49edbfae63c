//! What `policyd signal` and `policyd decide` print, and their exit codes, on a simulated machine.

use std::time::Duration;

use policyd::world::fake::FakeWorld;

use crate::support;
use crate::support::console::{self, Said, Terminal};

/// Commands with what they print: exit code, standard output, standard error.
fn session(world: &FakeWorld, lines: &[&str]) -> String {
    let mut all = String::new();
    for line in lines {
        let mut words = Vec::new();
        // A word in double quotes may hold blanks.
        for (number, part) in line.split('"').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace()),
                _ => words.push(part),
            }
        }
        let Said { code, out, err } = console::call_at(world, Terminal::TYPED, &words, b"");
        all += &format!("$ policyd {line}\n{out}{err}exit {code}\n");
        world.advance(Duration::from_secs(60));
    }
    all
}

/// The id of the newest signal that the last command printed.
fn id(world: &FakeWorld, name: &str) -> String {
    let listed = session(world, &["signal list --format compact"]);
    let line = listed.lines().rfind(|it| it.contains(name)).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_request_is_asked_held_answered_and_taken_in() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world.set_env("USER", "ann");
    let asked = session(
        &world,
        &[
            "signal list",
            "signal emit HUMAN_REVIEW_NEEDED \"reason=it costs 120 USD an hour\" task_id=task-099 severity=high --from eng-1",
            "signal emit HUMAN_REVIEW_NEEDED reason=second \"alternatives_considered=the first\" \"alternatives_considered=the second\"",
            "signal list",
        ],
    );
    let request = id(&world, "HUMAN_REVIEW_NEEDED from eng-1");
    let approve = format!("signal approve {request} --decision \"use the small one\"");
    let again = format!("signal approve {request}");
    let show = format!("signal show {request}");
    let answered = session(
        &world,
        &[
            &approve,
            &again,
            "signal list",
            "signal consume HUMAN_APPROVED --by loop",
            "signal consume HUMAN_APPROVED --by loop",
            &show,
            "signal history",
            "signal history --format json --limit 1",
        ],
    );
    support::snapshot("signals", "command__a_request_and_its_answer", [asked, answered].concat());
}

#[test]
fn one_consumer_wins_and_slips_are_told() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    let printed = session(
        &world,
        &[
            "signal emit MERGE_REQUESTED_feat/login --expires 1h",
            "signal consume MERGE_REQUESTED_feat/login --by one --lease 10m",
            "signal consume MERGE_REQUESTED_feat/login --by two",
            "signal list",
            "signal consume MERGE_REQUESTED_feat/login --by one",
            "signal emit DOCS_NEDED",
            "signal emit HUMAN_REVIEW_NEEDED",
            "signal emit HUMAN_REVIEW_NEEDED raeson=x",
            "signal emit HUMAN_REVIEW_NEEDED reason=x severity=huge",
            "signal emit HUMAN_REVIEW_NEEDED reason=x blocking=perhaps",
            "signal consume DOCS_NEDED",
            "signal consume DOCS_NEEDED",
            "signal consume DRIFT_DETECTED",
            "signal approve 0123",
        ],
    );
    support::snapshot("signals", "command__one_consumer_and_slips", printed);
}

#[test]
fn what_is_due_is_said_and_done() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world.put("/work/.policyd/signals/PAUSE", vec![b'x'; 300 * 1024]);
    world.put("/work/.policyd/signals/NOTES", "mine");
    let before = session(
        &world,
        &[
            "signal check consecutive_failures=3 iterations=30",
            "signal check consecutive_failures=2 cost_usd_per_hour=100",
            "signal check consecutive_failure=3",
            "signal check consecutive_failures=3 task_id=task-7 --emit",
            "signal check consecutive_failures=4 --emit",
            "signal list",
        ],
    );
    world.advance(Duration::from_secs(24 * 3600));
    let late = session(&world, &["signal process"]);
    world.advance(Duration::from_secs(3600));
    let after = session(&world, &["signal process", "signal process", "signal history"]);
    support::snapshot("signals", "command__what_is_due", [before, late, after].concat());
}

#[test]
fn a_drift_is_answered() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    let printed = session(
        &world,
        &[
            "signal emit DRIFT_DETECTED detected_drift=refactoring task_id=t severity=low",
            "signal emit DRIFT_DETECTED detected_drift=renaming task_id=t severity=low \"original_goal=add a login\"",
            "signal emit DRIFT_DETECTED detected_drift=rewriting task_id=u severity=medium --format json",
            "signal emit DRIFT_DETECTED detected_drift=deleting severity=critical",
            "signal list",
        ],
    );
    support::snapshot("signals", "command__drifts", printed);
}

#[test]
fn an_agent_answers_no_request() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world.set_env("CLAUDECODE", "1");
    let printed = session(
        &world,
        &[
            "signal emit HUMAN_REVIEW_NEEDED reason=x",
            "signal approve HUMAN_REVIEW_NEEDED",
            "signal list --format compact",
        ],
    );
    support::snapshot("signals", "command__an_agent_answers_no_request", printed);
}

#[test]
fn a_table_is_asked() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    let printed = session(
        &world,
        &[
            "decide",
            "decide confidence_route confidence=0.72",
            "decide confidence_route confidence=0.72 --format json",
            "decide health_verdict score=69 --format compact",
            "decide health_verdict scroe=69",
            "decide confidence_rout",
        ],
    );
    support::snapshot("tables", "command__a_table_is_asked", printed);
}
