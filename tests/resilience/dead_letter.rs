//! The dead-letter queue as a step function: every place meets every event.

use policyd::state::dead_letter::{Attempt, Decision, Effect, Event, Hints, Place, Task, step};
use policyd::time::Timestamp;

use crate::support::snapshot;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000 + seconds * 1000)
}

fn task(place: Place) -> Task {
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

fn events() -> Vec<(&'static str, Event<'static>)> {
    let failed = Attempt { at: at(0), error: "E".into(), counts: true, ..Attempt::default() };
    let limited = Attempt { counts: false, ..failed.clone() };
    vec![
        ("started", Event::Started),
        ("failed", Event::Failed(failed)),
        ("failed, does not count", Event::Failed(limited)),
        ("entered", Event::Entered { strategy: "dependency_blocked" }),
        ("wait", Event::Reviewed(Decision::Wait)),
        ("retry", Event::Reviewed(Decision::Retry { fresh: false, strategy: "x" })),
        ("retry afresh", Event::Reviewed(Decision::Retry { fresh: true, strategy: "" })),
        ("split", Event::Reviewed(Decision::Split { id: "t-part-1" })),
        ("escalate", Event::Reviewed(Decision::Escalate { strategy: "h", id: "e1" })),
        ("abandon", Event::Reviewed(Decision::Abandon { reason: "r" })),
        ("released", Event::Released),
        ("given up", Event::GivenUp { reason: "r" }),
        ("blocked", Event::Blocked { by: "e1" }),
        ("answered to something else", Event::Answered { by: "e9" }),
        ("redriven", Event::Redriven),
        ("resolved", Event::Resolved),
    ]
}

#[test]
fn every_place_meets_every_event() {
    let mut table = String::new();
    for place in Place::ALL {
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

fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Recovered => "recovered",
        Effect::Abandoned => "abandoned",
        Effect::Created(_) => "created",
        Effect::Done => "done",
    }
}
