//! The step function: every state meets every event, and what its settings change.

use std::time::Duration;

use policyd::state::breaker::{
    Breaker, BreakerEvent, BreakerFailure, BreakerMode, BreakerPhase, BreakerResponse,
    BreakerSettings, CallMetadata, CallOutcome, CountedCall, FailureEffect, OnPermanent, Window,
    step,
};
use policyd::time::Timestamp;

use crate::support::snapshot;

fn settings() -> BreakerSettings {
    BreakerSettings { threshold: 2, recovery_threshold: 2, ..BreakerSettings::default() }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000 + seconds * 1000)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn failed(times: &[i64]) -> Vec<CountedCall> {
    times.iter().map(|it| CountedCall { at: at(*it), outcome: CallOutcome::Failed }).collect()
}

/// One breaker in each state, as it is after a second; the generation is 5 in all of them.
fn states() -> Vec<(&'static str, Breaker)> {
    let closed = Breaker { last_change: Some(at(-500)), generation: 5, ..Breaker::default() };
    let failed_once = Breaker {
        calls: failed(&[-9]),
        last_failure: Some(at(-9)),
        last_error: "e".to_owned(),
        ..closed.clone()
    };
    let ramping = Breaker { recovered_at: Some(at(-70)), ..closed.clone() };
    let open = |since: i64| Breaker {
        phase: BreakerPhase::Open,
        calls: failed(&[since - 1, since]),
        last_change: Some(at(since)),
        cooldown_until: Some(at(since + 300)),
        openings: 1,
        ..failed_once.clone()
    };
    let forced = Breaker { forced: Some("mine".to_owned()), ..open(-100) };
    let half_open = |probe: i64| Breaker {
        phase: BreakerPhase::HalfOpen,
        successes: 1,
        last_change: Some(at(-30)),
        last_probe: Some(at(probe)),
        ..closed.clone()
    };
    vec![
        ("CLOSED", closed.clone()),
        ("CLOSED, failed once", failed_once.clone()),
        ("CLOSED, ramping", ramping),
        ("OPEN, cooling", open(-100)),
        ("OPEN, cooled", open(-300)),
        ("OPEN, forced for a time", forced.clone()),
        ("OPEN, forced for good", Breaker { cooldown_until: None, ..forced.clone() }),
        ("OPEN, forced, time over", Breaker { cooldown_until: Some(at(0)), ..forced }),
        ("HALF_OPEN, probe under way", half_open(-9)),
        ("HALF_OPEN, lease expired", half_open(-10)),
    ]
}

fn events() -> Vec<(&'static str, BreakerEvent<'static>)> {
    let failure = BreakerFailure::new("x");
    let late = CallMetadata { generation: Some(4), took: None };
    let retry_after = Some(seconds(900));
    vec![
        ("request", BreakerEvent::Request),
        ("success", BreakerEvent::success()),
        ("late success", BreakerEvent::Success(late)),
        ("failure", BreakerEvent::failure("x")),
        ("late failure", BreakerEvent::Failure(BreakerFailure { told: late, ..failure })),
        (
            "failure, retry after 15m",
            BreakerEvent::Failure(BreakerFailure { retry_after, ..failure }),
        ),
        (
            "ignored failure",
            BreakerEvent::Failure(BreakerFailure { effect: FailureEffect::Ignore, ..failure }),
        ),
        (
            "permanent failure",
            BreakerEvent::Failure(BreakerFailure { effect: FailureEffect::Permanent, ..failure }),
        ),
        ("trip for 1m", BreakerEvent::Trip { length: Some(seconds(60)), reason: "r" }),
        ("trip", BreakerEvent::Trip { length: None, reason: "r" }),
        ("reset", BreakerEvent::Reset),
    ]
}

/// A breaker without what stands in the heading of its row.
fn shown(it: &Breaker) -> String {
    let mut text = format!("{} generation {}", it.phase.as_str(), it.generation);
    let mut add = |name: &str, value: Option<String>| {
        text.push_str(&value.map(|value| format!(", {name}{value}")).unwrap_or_default());
    };
    let offset = |at: Timestamp| Some(format!(" {}s", (at.millis() - 1_000_000_000) / 1000));
    let count = it.failures().count();
    add("", (count > 0).then(|| format!("{count} failure(s)")));
    add("", (it.successes > 0).then(|| format!("{} success(es)", it.successes)));
    add("failed", it.last_failure.and_then(offset));
    add("until", it.cooldown_until.and_then(offset));
    add("asked until", it.open_until.and_then(offset));
    add("probe", it.last_probe.and_then(offset));
    add("recovered", it.recovered_at.and_then(offset));
    add("forced: ", it.forced.clone());
    add("", it.needs_human.then(|| "needs a human".to_owned()));
    text
}

#[test]
fn every_state_meets_every_event() {
    let mut table = String::new();
    for (name, breaker) in states() {
        table.push_str(&format!("{name} ({})\n", shown(&breaker)));
        for (what, event) in events() {
            let (next, answer) = step(&breaker, event, &settings(), at(0));
            let moved = if next == breaker { "unchanged".to_owned() } else { shown(&next) };
            let noted = answer == BreakerResponse::Recorded;
            let answer = if noted { String::new() } else { format!("{answer:?}; ") };
            table.push_str(&format!("    {what:<26}{answer}{moved}\n"));
        }
    }
    snapshot("breakers", "step__every_state_meets_every_event", table);
}

#[test]
fn a_change_of_the_state_begins_a_generation_and_nothing_else_does() {
    for (name, breaker) in states() {
        for (what, event) in events() {
            let next = step(&breaker, event, &settings(), at(0)).0;
            let by_hand = matches!(event, BreakerEvent::Trip { .. } | BreakerEvent::Reset);
            let changed = next.phase != breaker.phase || by_hand;
            assert_eq!(next.generation, 5 + u64::from(changed), "{name}: {what}");
        }
    }
}

/// Runs events at seconds; the phase and the wait after each.
fn run(
    settings: &BreakerSettings,
    events: &[(i64, BreakerEvent<'_>)],
) -> (Breaker, Vec<BreakerPhase>) {
    let mut breaker = Breaker::default();
    let mut phases = Vec::new();
    for (second, event) in events {
        breaker = step(&breaker, *event, settings, at(*second)).0;
        phases.push(breaker.phase);
    }
    (breaker, phases)
}

fn took(length: u64) -> BreakerEvent<'static> {
    BreakerEvent::Success(CallMetadata { generation: None, took: Some(seconds(length)) })
}

use BreakerPhase::{Closed, HalfOpen, Open};
const FAILS: BreakerEvent<'_> = BreakerEvent::failure("x");
const WORKS: BreakerEvent<'_> = BreakerEvent::success();

#[test]
fn a_window_of_calls_forgets_by_number_not_by_age() {
    let settings =
        BreakerSettings { window: Window::Calls(3), threshold: 2, ..BreakerSettings::default() };
    let old = run(&settings, &[(0, FAILS), (9000, WORKS), (9001, FAILS)]).1;
    assert_eq!(old, [Closed, Closed, Open]);
    let gone = run(&settings, &[(0, FAILS), (1, WORKS), (2, WORKS), (3, FAILS)]).1;
    assert_eq!(gone.last(), Some(&Closed), "the first one is out of the window");
    let back = run(&settings, &[(0, FAILS), (-90, WORKS), (-80, WORKS), (-70, FAILS)]).1;
    assert_eq!(back.last(), Some(&Closed), "whatever the clock did");
}

#[test]
fn a_rate_says_nothing_before_there_are_enough_calls() {
    let settings =
        BreakerSettings { failure_rate: Some(50), minimum_calls: 4, ..BreakerSettings::default() };
    let few = run(&settings, &[(0, FAILS), (1, FAILS), (2, FAILS)]).1;
    assert_eq!(few, [Closed; 3]);
    let half = run(&settings, &[(0, FAILS), (1, FAILS), (2, WORKS), (3, WORKS)]).1;
    assert_eq!(half, [Closed, Closed, Closed, Open], "the fourth call tells, though it worked");
    let less = run(&settings, &[(0, FAILS), (1, WORKS), (2, WORKS), (3, WORKS)]).1;
    assert_eq!(less, [Closed; 4]);
    let aged = run(&settings, &[(0, FAILS), (1, FAILS), (60, WORKS), (62, WORKS), (63, FAILS)]).1;
    assert_eq!(aged.last(), Some(&Closed), "old calls have left the window");
}

#[test]
fn slow_calls_open_it_and_a_slow_probe_is_no_success() {
    let settings = BreakerSettings {
        slow_call_duration: seconds(3),
        slow_call_rate: Some(100),
        minimum_calls: 2,
        ..BreakerSettings::default()
    };
    let slow = run(&settings, &[(0, took(3)), (1, took(9))]);
    assert_eq!(slow.1, [Closed, Open]);
    assert_eq!(run(&settings, &[(0, took(3)), (1, took(2))]).1, [Closed; 2]);
    let (probing, _) = step(&slow.0, BreakerEvent::Request, &settings, at(301));
    assert_eq!(probing.phase, HalfOpen);
    assert_eq!(step(&probing, took(3), &settings, at(305)).0.phase, Open);
    assert_eq!(step(&probing, took(1), &settings, at(305)).0.successes, 1);
    let plain = run(&BreakerSettings::default(), &[(0, took(900)), (1, took(900)), (2, took(900))]);
    assert_eq!(plain.0, Breaker::default(), "without a rate nobody looks at the time");
}

#[test]
fn failures_in_a_row_are_forgotten_by_a_success_and_never_by_age() {
    let settings =
        BreakerSettings { window: Window::Consecutive, threshold: 2, ..BreakerSettings::default() };
    assert_eq!(run(&settings, &[(0, FAILS), (90_000, FAILS)]).1, [Closed, Open]);
    assert_eq!(run(&settings, &[(0, FAILS), (1, WORKS), (2, FAILS)]).1, [Closed; 3]);
}

/// Opens it again and again by failed probes; the length of each cooldown.
fn cooldowns(settings: &BreakerSettings, count: usize) -> Vec<u64> {
    let mut breaker = step(&Breaker::default(), FAILS, settings, at(0)).0;
    let mut lengths = Vec::new();
    for _ in 0..count {
        let (begin, end) = (breaker.last_change.unwrap(), breaker.cooldown_until.unwrap());
        lengths.push(end.since(begin).as_secs());
        breaker = step(&breaker, BreakerEvent::Request, settings, end).0;
        breaker = step(&breaker, FAILS, settings, end).0;
    }
    lengths
}

#[test]
fn a_cooldown_grows_up_to_its_cap_and_starts_again_once_it_stayed_closed() {
    let settings = BreakerSettings {
        threshold: 1,
        cooldown: seconds(10),
        cooldown_multiplier: 200,
        cooldown_max: seconds(60),
        recovery_threshold: 1,
        ..BreakerSettings::default()
    };
    assert_eq!(cooldowns(&settings, 5), [10, 20, 40, 60, 60]);
    assert_eq!(
        cooldowns(&BreakerSettings { threshold: 1, ..BreakerSettings::default() }, 3),
        [300; 3]
    );
    let closed_for = |length: i64| {
        let events = [(0, FAILS), (10, BreakerEvent::Request), (11, WORKS), (11 + length, FAILS)];
        let breaker = run(&settings, &events).0;
        breaker.cooldown_until.unwrap().since(breaker.last_change.unwrap()).as_secs()
    };
    assert_eq!((closed_for(59), closed_for(60)), (20, 10));
}

#[test]
fn jitter_differs_by_name_and_by_opening_and_only_shortens() {
    let jittered = |salt| {
        let settings = BreakerSettings {
            threshold: 1,
            cooldown_jitter: 20,
            salt,
            ..BreakerSettings::default()
        };
        assert_eq!(cooldowns(&settings, 9), cooldowns(&settings, 9), "it is no chance");
        cooldowns(&settings, 9)
    };
    let (one, other) = (jittered(1), jittered(2));
    assert_ne!(one, other);
    assert!(one.iter().chain(&other).all(|it| (240..=300).contains(it)), "{one:?} {other:?}");
    assert!(one.iter().collect::<std::collections::BTreeSet<_>>().len() > 5, "{one:?}");
}

#[test]
fn what_asks_to_be_left_alone_is_left_alone_up_to_a_cap() {
    let asked = |length| {
        BreakerEvent::Failure(BreakerFailure {
            retry_after: Some(seconds(length)),
            ..BreakerFailure::new("429")
        })
    };
    let wait = |second: i64, events: &[(i64, BreakerEvent<'_>)]| {
        let breaker = run(&BreakerSettings::default(), events).0;
        breaker.wait(&BreakerSettings::default(), at(second)).unwrap().as_secs()
    };
    assert_eq!(wait(0, &[(0, asked(900))]), 900, "it opens at once");
    assert_eq!(wait(0, &[(0, asked(5))]), 300, "not shorter than a cooldown");
    assert_eq!(wait(0, &[(0, asked(9_999_999))]), 3_600);
    assert_eq!(wait(0, &[(0, asked(0))]), 0, "a plain failure");
    assert_eq!(wait(10, &[(0, asked(5)), (10, asked(900))]), 900, "open, it stays so for longer");
    assert_eq!(wait(10, &[(0, asked(900)), (10, asked(5))]), 890);
    let never = [(0, asked(900)), (900, BreakerEvent::Request)];
    assert_eq!(run(&BreakerSettings::default(), &never).1, [Open, HalfOpen]);
}

#[test]
fn what_waiting_does_not_cure_may_only_be_noted() {
    let permanent = BreakerEvent::Failure(BreakerFailure {
        effect: FailureEffect::Permanent,
        ..BreakerFailure::new("401")
    });
    let noted = BreakerSettings { on_permanent: OnPermanent::Note, ..BreakerSettings::default() };
    let (breaker, phases) = run(&noted, &[(0, permanent), (1, permanent), (2, permanent)]);
    assert_eq!((phases, breaker.needs_human), (vec![Closed; 3], true));
    let (breaker, _) = run(&BreakerSettings::default(), &[(0, permanent)]);
    assert_eq!((breaker.phase, breaker.failures().count()), (Open, 0), "it is no flakiness");
    let lists = BreakerSettings {
        ignore: vec!["invalid_request".to_owned()],
        permanent: vec!["billing_error".to_owned()],
        ..BreakerSettings::default()
    };
    assert_eq!(lists.effect_of("invalid_request"), Some(FailureEffect::Ignore));
    assert_eq!(lists.effect_of("billing_error"), Some(FailureEffect::Permanent));
    assert_eq!(lists.effect_of("overloaded"), None);
}

#[test]
fn an_observer_admits_what_it_would_reject_and_one_that_is_off_sees_nothing() {
    let observing = BreakerSettings { mode: BreakerMode::Observe, ..settings() };
    let (breaker, phases) = run(&observing, &[(0, FAILS), (1, FAILS)]);
    assert_eq!(phases, [Closed, Open]);
    let (_, answer) = step(&breaker, BreakerEvent::Request, &observing, at(2));
    assert_eq!(answer, BreakerResponse::WouldReject { wait: Some(seconds(299)) });
    assert_eq!(breaker.capacity_percent(&observing, at(2)), 100);
    let off = BreakerSettings { mode: BreakerMode::Off, ..settings() };
    assert_eq!(run(&off, &[(0, FAILS), (1, FAILS)]).0, Breaker::default());
    assert_eq!(step(&breaker, BreakerEvent::Request, &off, at(2)).1, BreakerResponse::Permitted);
}

#[test]
fn the_load_grows_step_by_step_after_a_recovery() {
    let settings =
        BreakerSettings { recovery_threshold: 1, threshold: 1, ..BreakerSettings::default() };
    let open = [(0, FAILS), (300, BreakerEvent::Request)];
    let closed = [&open[..], &[(301, WORKS)]].concat();
    let mut table = String::new();
    for (events, second) in [
        (&[][..], 0),
        (&open[..1], 10),
        (&open[..], 300),
        (&closed[..], 301),
        (&closed[..], 360),
        (&closed[..], 361),
        (&closed[..], 421),
        (&closed[..], 301 - 200),
        (&closed[..], 301 - 90_000),
    ] {
        let breaker = run(&settings, events).0;
        table.push_str(&format!(
            "{:<10}at {second:>6}s: {:>3} %, {} side by side, {}\n",
            breaker.phase.as_str(),
            breaker.capacity_percent(&settings, at(second)),
            breaker.parallelism(&settings, at(second)),
            breaker.load_level(&settings, at(second)).as_str(),
        ));
    }
    snapshot("breakers", "load__grows_step_by_step", table);
}

fn state(name: &str) -> Breaker {
    states().into_iter().find(|it| it.0 == name).unwrap().1
}

#[test]
fn a_clock_that_went_back_never_lengthens_a_wait() {
    let (open, half_open) = (state("OPEN, cooling"), state("HALF_OPEN, probe under way"));
    let (settings, hour_ago) = (settings(), at(-3600));
    let rejected = |wait| BreakerResponse::Rejected { wait: Some(wait) };
    let (next, answer) = step(&open, BreakerEvent::Request, &settings, hour_ago);
    assert_eq!(answer, rejected(settings.cooldown));
    assert_eq!(next.phase_at(&settings, at(-3300)), HalfOpen, "and it ends");
    assert_eq!(
        step(&half_open, BreakerEvent::Request, &settings, hour_ago).1,
        BreakerResponse::Permitted
    );
    let waited = step(&half_open, BreakerEvent::Request, &settings, at(-10)).1;
    assert_eq!(waited, rejected(settings.half_open_interval));
    let failing = Breaker { calls: failed(&[0]), ..Breaker::default() };
    let (next, _) = step(&failing, FAILS, &settings, hour_ago);
    assert_eq!(next.calls, failed(&[-3600]), "a failure of the future does not count");
    let (next, _) = step(&failing, FAILS, &settings, at(-1));
    assert_eq!(next.phase, Open, "one that only waited does");
    let forced = state("OPEN, forced for a time");
    let (next, answer) = step(&forced, BreakerEvent::Request, &settings, hour_ago);
    assert_eq!(answer, rejected(seconds(300)));
    assert_eq!(next.wait(&settings, hour_ago), Some(seconds(300)));
    assert_eq!(next.phase_at(&settings, at(-3300)), HalfOpen, "and it ends");
}
