//! The dead-letter queue as a step function: every place meets every event.

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
    }
}
