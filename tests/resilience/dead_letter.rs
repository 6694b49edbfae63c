//! The dead-letter queue as a step function: every place meets every event.

use std::time::Duration;

use policyd::state::dead_letter::{
    Attempt, Hints, ReviewDecision, Task, TaskEffect, TaskEvent, TaskQueue, step,
};
use policyd::time::Timestamp;

use crate::support::snapshot;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000 + seconds * 1000)
}

fn task(place: TaskQueue) -> Task {
    let attempt = Attempt { number: 1, at: at(-60), counts: true, ..Attempt::default() };
    Task {
        id: "t".to_owned(),
        place,
        failures: 1,
        first_failure: Some(at(-60)),
        last_failure: Some(at(-60)),
        attempts: vec![attempt],
        hints: Hints {
            new_approach: "other".to_owned(),
            simpler_scope: "less".to_owned(),
            marks: ["security", "dependency_available"].map(str::to_owned).into(),
            ..Hints::default()
        },
        revision: 7,
        ..Task::default()
    }
}

fn events() -> Vec<(&'static str, TaskEvent<'static>)> {
    let failed = Attempt { at: at(0), error: "E".into(), counts: true, ..Attempt::default() };
    let limited = Attempt { counts: false, ..failed.clone() };
    vec![
        ("started", TaskEvent::Started),
        ("failed", TaskEvent::Failed(failed)),
        ("failed, does not count", TaskEvent::Failed(limited)),
        ("entered", TaskEvent::Entered { strategy: "dependency_blocked" }),
        ("wait", TaskEvent::Reviewed(ReviewDecision::Wait)),
        ("retry", TaskEvent::Reviewed(ReviewDecision::Retry { fresh: false, strategy: "x" })),
        ("retry afresh", TaskEvent::Reviewed(ReviewDecision::Retry { fresh: true, strategy: "" })),
        ("split", TaskEvent::Reviewed(ReviewDecision::Split { id: "t-part-1" })),
        ("escalate", TaskEvent::Reviewed(ReviewDecision::Escalate { strategy: "h", id: "e1" })),
        ("abandon", TaskEvent::Reviewed(ReviewDecision::Abandon { reason: "r" })),
        ("released", TaskEvent::Released),
        ("given up", TaskEvent::GivenUp { reason: "r" }),
        ("blocked", TaskEvent::Blocked { by: "e1" }),
        ("answered to something else", TaskEvent::Answered { by: "e9" }),
        ("redriven", TaskEvent::Redriven),
        ("resolved", TaskEvent::Resolved),
        ("claimed", TaskEvent::Claimed { holder: "a", lease: Duration::from_secs(600) }),
        ("unclaimed", TaskEvent::Unclaimed { generation: 1 }),
        ("finished", TaskEvent::Finished { generation: 1 }),
    ]
}

#[test]
fn every_place_meets_every_event() {
    let mut table = String::new();
    for place in TaskQueue::ALL {
        for (name, event) in events() {
            let before = task(place);
            let (next, effects) = step(&before, event, at(0));
            let effects: Vec<&str> = effects.iter().map(effect_name).collect();
            let said = if next == before {
                "unchanged".to_owned()
            } else {
                assert_eq!(next.revision, 8, "a change is counted");
                let marks: Vec<_> = next.hints.marks.iter().map(String::as_str).collect();
                format!(
                    "{} failures {} attempts {} strategy {:?} waits {:?} marks {}",
                    next.place.as_str(),
                    next.failures,
                    next.attempts.len(),
                    next.strategy,
                    next.waits_for,
                    marks.join("+"),
                )
            };
            table.push_str(&format!(
                "{} | {name} | {said} | {}\n",
                place.as_str(),
                effects.join(", ")
            ));
        }
    }
    snapshot("resilience", "dead_letter__every_place_meets_every_event", table);
}

fn effect_name(effect: &TaskEffect) -> &'static str {
    match effect {
        TaskEffect::Recovered => "recovered",
        TaskEffect::Abandoned => "abandoned",
        TaskEffect::Created(_) => "created",
        TaskEffect::Done => "done",
        TaskEffect::Claimed => "claimed",
    }
}

#[test]
fn a_claim_is_exclusive_until_its_lease_ends_and_old_generations_are_rejected() {
    let claimed = |task: &Task, holder: &str, seconds: i64| {
        let event = TaskEvent::Claimed { holder, lease: Duration::from_secs(600) };
        step(task, event, at(seconds)).0
    };
    let dead = Task { place: TaskQueue::DeadLetter, id: "t".to_owned(), ..Task::default() };
    let first = claimed(&dead, "one", 0);
    assert_eq!(claimed(&first, "other", 599), first, "the lease is active");
    let second = claimed(&first, "other", 600);
    let claim = second.claim.clone().unwrap();
    assert_eq!((claim.holder.as_str(), claim.generation), ("other", 2));
    let finished =
        |task: &Task, generation| step(task, TaskEvent::Finished { generation }, at(601)).1;
    assert_eq!(finished(&second, 1), [], "the first agent was too slow");
    assert_eq!(finished(&second, 2), [TaskEffect::Recovered, TaskEffect::Done]);
    let (free, _) = step(&second, TaskEvent::Unclaimed { generation: 2 }, at(602));
    assert_eq!(finished(&free, 2), [], "it was given back");
    assert_eq!(claimed(&free, "one", 603).claim.unwrap().generation, 3);
    // A claimed task is neither reviewed nor redriven.
    for event in [
        TaskEvent::Redriven,
        TaskEvent::Reviewed(ReviewDecision::Retry { fresh: false, strategy: "" }),
    ] {
        assert_eq!(step(&second, event, at(601)).0, second);
    }
}
