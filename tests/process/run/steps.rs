//! The step of a run: every phase meets every event, and the order at the end of a turn.

use std::time::Duration;

use policyd::state::run::stuckness::{StuckSettings, TurnRecord};
use policyd::state::run::{
    Admission, Claim, ContextRequest, ControlSignals, RestartReason, Run, RunEffect, RunEvent,
    RunLimits, RunPhase, RunStatus, STATUSES, Spend, TurnFailure, TurnResult, TurnUsage,
    UnseenChanges, step,
};
use policyd::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn limits() -> RunLimits {
    RunLimits {
        iterations: 10,
        restarts: 1,
        warn_percent: 80,
        idle: 3,
        breaker_wait: Duration::from_secs(60),
        restart_when_stuck: true,
        ..RunLimits::default()
    }
}

fn run(phase: RunPhase) -> Run {
    let mut run = Run::new("r", "goal", &["agent".to_owned()], NOW);
    run.phase = phase;
    run.iteration = 2;
    run
}

fn waiting(until_ms: i64) -> RunPhase {
    RunPhase::Waiting { until_ms, why: String::new() }
}

fn over(status: RunStatus) -> RunPhase {
    RunPhase::Over { status, why: String::new() }
}

/// The phase in one word, with how it ended.
fn word(run: &Run) -> String {
    match &run.phase {
        RunPhase::Ready => "ready".to_owned(),
        RunPhase::Asking => "asking".to_owned(),
        RunPhase::Working => "working".to_owned(),
        RunPhase::Waiting { .. } => "waiting".to_owned(),
        RunPhase::Paused => "paused".to_owned(),
        RunPhase::Over { status, .. } => status.as_str().to_owned(),
    }
}

#[test]
fn every_phase_meets_every_event() {
    let (look, turn) =
        (ControlSignals::default(), TurnResult { moved: Some(true), ..TurnResult::default() });
    let (yes, no) = (
        Admission::Admitted,
        Admission::Rejected { wait: Some(Duration::from_secs(60)), why: "open".to_owned() },
    );
    let never = Admission::Rejected { wait: None, why: "open".to_owned() };
    let events = [
        RunEvent::Looked(&look),
        RunEvent::Asked(&yes),
        RunEvent::Asked(&no),
        RunEvent::Asked(&never),
        RunEvent::Ended(&turn),
        RunEvent::Resumed(None),
        RunEvent::Interrupted(None),
        RunEvent::CannotRun("no such program"),
        RunEvent::Accepted("ada looked"),
        RunEvent::Dismissed,
    ];
    let (later, earlier) = (waiting(NOW.millis() + 1), waiting(NOW.millis()));
    let ended = ["interrupted", "cannot_run"];
    let table: [(RunPhase, [&str; 6]); 9] = [
        (RunPhase::Ready, ["asking", "ready", "ready", "ready", "ready", "ready"]),
        (RunPhase::Asking, ["asking", "working", "waiting", "breaker_open", "asking", "ready"]),
        (RunPhase::Working, ["working", "working", "working", "working", "ready", "ready"]),
        (later, ["waiting"; 6]),
        (earlier, ["asking", "waiting", "waiting", "waiting", "waiting", "waiting"]),
        (RunPhase::Paused, ["asking", "paused", "paused", "paused", "paused", "ready"]),
        (over(RunStatus::Complete), ["complete"; 6]),
        (over(RunStatus::Unverified), {
            let same = "unverified";
            [same, same, same, same, same, "ready"]
        }),
        (over(RunStatus::Stuck), ["stuck", "stuck", "stuck", "stuck", "stuck", "ready"]),
    ];
    for (phase, wanted) in table {
        let ends = if matches!(phase, RunPhase::Over { .. }) { [wanted[0]; 2] } else { ended };
        let before = word(&run(phase.clone()));
        let answers = [if before == "unverified" { "complete" } else { &before }, &before];
        let wanted: Vec<&str> = wanted.into_iter().chain(ends).chain(answers).collect();
        let got: Vec<String> = events
            .iter()
            .map(|event| word(&step(&run(phase.clone()), event, &limits(), NOW).0))
            .collect();
        assert_eq!(got, wanted, "{phase:?}");
    }
}

#[test]
fn what_happens_to_nobody_changes_nothing() {
    let complete = run(over(RunStatus::Complete));
    let (after, effects) =
        step(&complete, &RunEvent::Resumed(None), &limits(), NOW.plus(Duration::from_secs(9)));
    assert_eq!((after, effects), (complete, vec![]));
}

#[test]
fn between_two_turns_the_first_that_holds_decides() {
    let all = ControlSignals {
        stop: true,
        stop_by: String::new(),
        pause: Some("PAUSE".to_owned()),
        review: Some("a look".to_owned()),
        refused: Some("a no".to_owned()),
        input: vec!["hello".to_owned()],
        answered: Vec::new(),
    };
    let spent = |run: &mut Run| run.spend.cost_usd = 5.0;
    let used = |run: &mut Run| run.iteration = 10;
    let limits = RunLimits { budget_usd: Some(5.0), ..limits() };
    let mut seen = Vec::new();
    let mut look = all;
    let mut before = run(RunPhase::Ready);
    spent(&mut before);
    used(&mut before);
    for _ in 0..7 {
        let (after, _) = step(&before, &RunEvent::Looked(&look), &limits, NOW);
        assert_eq!(after.human, look.input, "whatever is decided, what humans say is not lost");
        seen.push(word(&after));
        match seen.len() {
            1 => look.stop = false,
            2 => look.refused = None,
            3 => look.review = None,
            4 => look.pause = None,
            5 => before.iteration = 2,
            _ => before.spend.cost_usd = 0.0,
        }
    }
    assert_eq!(
        seen,
        ["stopped", "human_needed", "human_needed", "paused", "max_iterations", "budget", "asking"]
    );
}

#[test]
fn a_human_who_is_asked_may_be_waited_for() {
    let look = ControlSignals { review: Some("a look".to_owned()), ..ControlSignals::default() };
    let limits = RunLimits { wait_for_human: true, ..limits() };
    let (paused, _) = step(&run(RunPhase::Ready), &RunEvent::Looked(&look), &limits, NOW);
    assert_eq!(word(&paused), "paused");
    let (still, _) = step(&paused, &RunEvent::Looked(&look), &limits, NOW);
    assert_eq!(word(&still), "paused");
    let (after, _) = step(&still, &RunEvent::Looked(&ControlSignals::default()), &limits, NOW);
    assert_eq!(word(&after), "asking");
}

/// A turn to which everything happened at once.
fn everything() -> TurnResult {
    let failure = TurnFailure {
        class: "x".to_owned(),
        permanent: true,
        put_aside: true,
        retry: Some((Duration::from_secs(30), "again".to_owned())),
        ..TurnFailure::default()
    };
    TurnResult {
        failure: Some(failure),
        claim: Claim::Accepted,
        spend: Spend { cost_usd: 5.0, ..Spend::default() },
        context: ContextRequest::Exhausted,
        moved: Some(false),
        ..TurnResult::default()
    }
}

#[test]
fn at_the_end_of_a_turn_completion_comes_first_and_exhaustion_after_the_money() {
    let limits = RunLimits { budget_usd: Some(5.0), ..limits() };
    let mut turn = everything();
    let mut seen = Vec::new();
    for number in 0..9 {
        let mut before = run(RunPhase::Working);
        before.idle = 2;
        before.restarts = u32::from(number == 4);
        let (after, effects) = step(&before, &RunEvent::Ended(&turn), &limits, NOW);
        assert_eq!(after.spend, turn.spend, "what was used is booked whatever happens");
        let renewed = effects.iter().any(|it| matches!(it, RunEffect::Renew(_)));
        seen.push(if renewed { format!("{} renewed", word(&after)) } else { word(&after) });
        let failure = turn.failure.as_mut();
        match number {
            0 => turn.claim = Claim::Refused("no".to_owned()),
            1 => failure.unwrap().permanent = false,
            2 => failure.unwrap().put_aside = false,
            3 => turn.spend.cost_usd = 0.0,
            4 => {}
            5 => turn.context = ContextRequest::ClearRequested,
            6 => turn.context = ContextRequest::Fits,
            _ => failure.unwrap().retry = None,
        }
    }
    assert_eq!(
        seen,
        [
            "complete",
            "human_needed",
            "dead_letter",
            "budget",
            "context_exhaustion",
            "ready renewed",
            "waiting renewed",
            "waiting",
            "circuit_breaker",
        ]
    );
}

#[test]
fn a_turn_that_is_made_again_uses_up_no_turn() {
    let turn = TurnResult { moved: None, ..everything() };
    let mut turn = TurnResult { claim: Claim::None, context: ContextRequest::Fits, ..turn };
    let failure = turn.failure.as_mut().unwrap();
    (failure.permanent, failure.put_aside) = (false, false);
    let (waits, _) = step(&run(RunPhase::Working), &RunEvent::Ended(&turn), &limits(), NOW);
    assert_eq!((waits.iteration, waits.attempt, waits.again), (2, 1, true));
    let at = NOW.plus(Duration::from_secs(30));
    let (asks, _) = step(&waits, &RunEvent::Looked(&ControlSignals::default()), &limits(), at);
    let (works, effects) = step(&asks, &RunEvent::Asked(&Admission::Admitted), &limits(), at);
    assert_eq!((works.iteration, works.attempt, effects), (2, 1, vec![RunEffect::Begin]));
    let (after, _) = step(&works, &RunEvent::Ended(&TurnResult::default()), &limits(), at);
    assert_eq!((after.iteration, after.attempt, after.failures), (2, 0, 0));
}

#[test]
fn a_turn_that_broke_off_is_made_again_under_its_number() {
    for event in [RunEvent::Resumed(None), RunEvent::Interrupted(None)] {
        let (broken, _) = step(&run(RunPhase::Working), &event, &limits(), NOW);
        let (ready, _) = step(&broken, &RunEvent::Resumed(None), &limits(), NOW);
        let mut ready = ready;
        ready.iteration = 10;
        let (asks, _) = step(&ready, &RunEvent::Looked(&ControlSignals::default()), &limits(), NOW);
        let (works, _) = step(&asks, &RunEvent::Asked(&Admission::Admitted), &limits(), NOW);
        assert_eq!((word(&works).as_str(), works.iteration), ("working", 10), "{event:?}");
    }
}

#[test]
fn what_a_turn_used_that_was_interrupted_is_booked() {
    let spend = Spend { cost_usd: 0.25, input: 7, ..Spend::default() };
    let used = TurnUsage { spend, priced: false, took: Duration::from_secs(3) };
    let (over, effects) =
        step(&run(RunPhase::Working), &RunEvent::Interrupted(Some(used)), &limits(), NOW);
    assert_eq!(effects, [RunEffect::End(RunStatus::Interrupted)]);
    assert_eq!((over.spend, over.session_spend), (spend, spend));
    assert_eq!((over.worked_ms, over.unpriced, over.again), (3_000, 1, true));
}

#[test]
fn a_turn_that_did_not_report_its_cost_is_of_unknown_cost() {
    let mut working = run(RunPhase::Working);
    assert_eq!(working.cost_of_begun().text(), "unknown");
    assert_eq!(run(RunPhase::Asking).cost_of_begun().text(), "0.00");
    let (resumed, _) = step(&working, &RunEvent::Resumed(None), &limits(), NOW);
    assert_eq!((resumed.unpriced, resumed.cost().text()), (1, "unknown".to_owned()));
    let retry = Some((Duration::from_secs(60), "usage limit".to_owned()));
    let failure = TurnFailure { class: "limit".to_owned(), retry, ..TurnFailure::default() };
    let turn = TurnResult { failure: Some(failure), ..TurnResult::default() };
    let (waits, _) = step(&working, &RunEvent::Ended(&turn), &limits(), NOW);
    assert_eq!((word(&waits).as_str(), waits.cost().text()), ("waiting", "unknown".to_owned()));
    working.spend.cost_usd = 1.5;
    assert_eq!(working.cost_of_begun().text(), "at least 1.50");
    let (waits, _) = step(&working, &RunEvent::Ended(&turn), &limits(), NOW);
    assert_eq!(waits.cost().text(), "1.50", "a refused call of an agent that reports its costs");
    working.unpriced = 1;
    let limits = RunLimits { budget_usd: Some(1.0), ..limits() };
    let (over, _) = step(&working, &RunEvent::Ended(&turn), &limits, NOW);
    let why = "at least 1.50 of 1.00 USD are spent".to_owned();
    assert_eq!(over.phase, RunPhase::Over { status: RunStatus::Budget, why });
}

#[test]
fn a_run_without_turns_left_names_the_failure_of_its_last_turn() {
    let ends = |failure: Option<TurnFailure>| {
        let mut before = run(RunPhase::Working);
        before.iteration = 10;
        let turn = TurnResult { failure, moved: Some(true), ..TurnResult::default() };
        let (ended, _) = step(&before, &RunEvent::Ended(&turn), &limits(), NOW);
        step(&ended, &RunEvent::Looked(&ControlSignals::default()), &limits(), NOW).0.phase
    };
    let over = |why: &str| RunPhase::Over { status: RunStatus::MaxIterations, why: why.to_owned() };
    assert_eq!(ends(None), over("all 10 turns are used up"));
    let (class, text) = ("timeout".to_owned(), "the turn timed out".to_owned());
    let why = "all 10 turns are used up; the last one failed (timeout): the turn timed out";
    assert_eq!(ends(Some(TurnFailure { class, text, ..TurnFailure::default() })), over(why));
}

#[test]
fn a_restart_forgets_the_session_and_never_what_was_spent() {
    let mut before = run(RunPhase::Working);
    before.spend.cost_usd = 0.5;
    before.session_spend.cost_usd = 0.5;
    before.session_iteration = 2;
    before.trail.add(TurnRecord::default());
    let spend = Spend { cost_usd: 0.25, input: 7, ..Spend::default() };
    let turn = TurnResult { context: ContextRequest::Exhausted, spend, ..TurnResult::default() };
    let (after, effects) = step(&before, &RunEvent::Ended(&turn), &limits(), NOW);
    assert_eq!(effects, [RunEffect::Renew(RestartReason::Exhausted)]);
    assert_eq!((after.session, after.restarts, after.session_iteration), (2, 1, 0));
    assert_eq!((after.spend.cost_usd, after.session_spend), (0.75, Spend::default()));
    assert!(after.trail.marks.is_empty() && after.iteration == 2);
}

#[test]
fn a_clear_context_uses_up_no_restart() {
    let turn = TurnResult { context: ContextRequest::ClearRequested, ..TurnResult::default() };
    let mut now = run(RunPhase::Working);
    for session in 2..9 {
        let (after, effects) = step(&now, &RunEvent::Ended(&turn), &limits(), NOW);
        assert_eq!(effects, [RunEffect::Renew(RestartReason::Cleared)]);
        assert_eq!((after.session, after.restarts), (session, 0));
        now = Run { phase: RunPhase::Working, ..after };
    }
}

#[test]
fn a_clear_context_each_turn_hides_nothing() {
    let clear = ContextRequest::ClearRequested;
    let ends = |turn: &TurnResult, limits: &RunLimits| {
        let mut now = run(RunPhase::Working);
        for turns in 1..50 {
            let (after, _) = step(&now, &RunEvent::Ended(turn), limits, NOW);
            if after.status().is_some() {
                return (word(&after), turns);
            }
            now = Run { phase: RunPhase::Working, ..after };
        }
        panic!("it ends");
    };
    let idle = TurnResult { context: clear, moved: Some(false), ..TurnResult::default() };
    assert_eq!(ends(&idle, &limits()), ("circuit_breaker".to_owned(), 3));
    let mark = TurnRecord {
        content: "a".to_owned(),
        error: "e".to_owned(),
        exit_code: 1,
        ..TurnRecord::default()
    };
    let failure = TurnFailure { class: "x".to_owned(), ..TurnFailure::default() };
    let stuck =
        TurnResult { context: clear, mark, failure: Some(failure), ..TurnResult::default() };
    let limits = RunLimits { iterations: 1_000, restart_when_stuck: false, ..limits() };
    assert_eq!(ends(&stuck, &limits).0, "stuck");
    // A turn that is made again is waited for all the same.
    let again = TurnFailure {
        retry: Some((Duration::from_secs(9), String::new())),
        ..stuck.failure.clone().unwrap()
    };
    let turn = TurnResult { failure: Some(again), ..stuck };
    let (waits, effects) = step(&run(RunPhase::Working), &RunEvent::Ended(&turn), &limits, NOW);
    assert_eq!(effects.last(), Some(&RunEffect::Renew(RestartReason::Cleared)));
    assert_eq!((word(&waits).as_str(), waits.again, waits.attempt), ("waiting", true, 1));
    assert_eq!((waits.session, waits.session_iteration), (2, 1));
}

#[test]
fn no_more_restarts_than_ever_whatever_is_asked() {
    let limits = RunLimits { restarts: 99, iterations: 1_000, ..limits() };
    let turn = TurnResult { context: ContextRequest::Exhausted, ..TurnResult::default() };
    let mut now = run(RunPhase::Working);
    for _ in 0..20 {
        let (after, _) = step(&now, &RunEvent::Ended(&turn), &limits, NOW);
        if after.status().is_some() {
            assert_eq!((word(&after).as_str(), after.restarts), ("context_exhaustion", 5));
            return;
        }
        now = Run { phase: RunPhase::Working, ..after };
    }
    panic!("it ends");
}

#[test]
fn stuck_is_told_then_restarted_then_over() {
    let mark = TurnRecord {
        content: "a".to_owned(),
        error: "e".to_owned(),
        exit_code: 1,
        ..TurnRecord::default()
    };
    let failure = TurnFailure { class: "x".to_owned(), ..TurnFailure::default() };
    let turn = TurnResult { mark, failure: Some(failure), moved: None, ..TurnResult::default() };
    let limits = RunLimits { iterations: 1_000, ..limits() };
    let mut now = run(RunPhase::Working);
    let mut seen = Vec::new();
    while now.status().is_none() && seen.len() < 50 {
        let (after, effects) = step(&now, &RunEvent::Ended(&turn), &limits, NOW);
        let renewed = effects.contains(&RunEffect::Renew(RestartReason::Stuck));
        seen.push(match (renewed, after.hint.is_empty()) {
            (true, _) => "restart",
            (false, false) => "hint",
            (false, true) => "",
        });
        now = if after.status().is_some() {
            after
        } else {
            Run { phase: RunPhase::Working, ..after }
        };
    }
    assert_eq!(seen, ["", "", "hint", "restart", "", "", "hint", "hint"]);
    assert_eq!(word(&now), "stuck");
}

#[test]
fn whoever_goes_on_with_a_run_has_seen_to_what_ended_it() {
    let mut before = run(over(RunStatus::CircuitBreaker));
    (before.idle, before.stuck_rounds, before.failures) = (3, 2, 4);
    before.spend.cost_usd = 1.5;
    let (after, _) = step(&before, &RunEvent::Resumed(None), &limits(), NOW);
    assert_eq!(
        (after.idle, after.stuck_rounds, after.failures, after.spend.cost_usd),
        (0, 0, 0, 1.5)
    );
}

#[test]
fn none_of_the_failures_is_0_and_no_two_kinds_share_a_code() {
    let zero: Vec<&str> = STATUSES.iter().filter(|it| it.2 == 0).map(|it| it.1).collect();
    assert_eq!(zero, ["complete", "complete_unclaimed"], "the gate agrees");
    let codes = STATUSES.map(|it| it.2);
    assert_eq!(codes, [0, 0, 10, 11, 11, 11, 12, 13, 13, 14, 14, 14, 15, 130, 130]);
    for (status, name, code) in STATUSES {
        assert_eq!((status.as_str(), status.exit_code()), (name, code));
        let known = policyd::cli::EXIT_CODES.iter().any(|it| it.0 == code);
        assert!(known, "{name} is in the table of exit codes");
    }
}

#[test]
fn the_money_is_warned_of_once() {
    let limits = RunLimits { budget_usd: Some(10.0), ..limits() };
    let turn = |cost_usd| TurnResult {
        spend: Spend { cost_usd, ..Spend::default() },
        ..TurnResult::default()
    };
    let mut now = run(RunPhase::Working);
    let mut warned = Vec::new();
    for cost in [5.0, 3.0, 1.0, 1.0] {
        let (after, effects) = step(&now, &RunEvent::Ended(&turn(cost)), &limits, NOW);
        for it in effects {
            if let RunEffect::BudgetWarning(percent) = it {
                warned.push(percent);
            }
        }
        now = if after.status().is_some() {
            after
        } else {
            Run { phase: RunPhase::Working, ..after }
        };
    }
    assert_eq!((warned, word(&now).as_str()), (vec![80], "budget"));
}

#[test]
fn what_a_turn_used_that_broke_off_is_booked_once() {
    let spend = Spend { input: 10, cost_usd: 0.5, ..Spend::default() };
    let used = TurnUsage { spend, priced: true, took: Duration::ZERO };
    let mut broken = run(RunPhase::Working);
    let (idle, spent) = (2, broken.spend.plus(spend));
    broken.idle = idle;
    let (after, _) = step(&broken, &RunEvent::Resumed(Some(used)), &limits(), NOW);
    assert_eq!((after.spend, after.session_spend.input, after.idle), (spent, 10, idle));
    let (again, _) = step(&after, &RunEvent::Resumed(Some(used)), &limits(), NOW);
    assert_eq!(again.spend, spent, "no turn is at work any more");
}

#[test]
fn a_health_that_says_abort_turn_after_turn_ends_the_run() {
    let limits = RunLimits { idle: 0, aborts: 3, ..limits() };
    let mut now = run(RunPhase::Working);
    let mark = TurnRecord { content: "a".to_owned(), exit_code: 1, ..TurnRecord::default() };
    let mut verdicts = Vec::new();
    for number in 1.. {
        // Errors differ, so that it is not stuck; nothing moves, and all fails.
        let mark = TurnRecord { error: format!("e{}", number / 2), ..mark.clone() };
        let turn = TurnResult { mark, moved: Some(false), ..TurnResult::default() };
        now.phase = RunPhase::Working;
        now.iteration = number;
        (now, _) = step(&now, &RunEvent::Ended(&turn), &limits, NOW);
        verdicts.push(now.verdict.clone());
        if now.status().is_some() || number > 8 {
            break;
        }
    }
    assert_eq!(now.status(), Some(RunStatus::CircuitBreaker), "{verdicts:?}");
    assert!(verdicts.ends_with(&["abort", "abort", "abort"].map(str::to_owned)), "{verdicts:?}");
    assert_eq!(verdicts.iter().filter(|it| *it == "abort").count(), 3);
    let (again, _) = step(&now, &RunEvent::Resumed(None), &limits, NOW);
    assert_eq!(again.aborts, 0, "whoever goes on has seen to it");
}

#[test]
fn a_fresh_session_is_tried_once_for_each_circle() {
    let limits =
        RunLimits { restarts: 5, stuckness: StuckSettings::default(), idle: 9, ..limits() };
    let mark = |content: char| TurnRecord {
        content: content.to_string(),
        lines: Some(20),
        error: "the test fails".to_owned(),
        ..TurnRecord::default()
    };
    let ended = |contents: &str| {
        let mut now = Run { iteration: 0, ..run(RunPhase::Working) };
        let mut renewed = Vec::new();
        for (at, content) in contents.chars().enumerate() {
            now.iteration += 1;
            let mut turn =
                TurnResult { mark: mark(content), moved: Some(true), ..TurnResult::default() };
            if at % 3 == 2 {
                turn.context = ContextRequest::ClearRequested;
            }
            let (after, effects) = step(&now, &RunEvent::Ended(&turn), &limits, NOW);
            let stuck = effects.contains(&RunEffect::Renew(RestartReason::Stuck));
            renewed.extend(stuck.then_some(now.iteration));
            if after.status().is_some() {
                return (renewed, word(&after), after.iteration);
            }
            now = Run { phase: RunPhase::Working, ..after };
        }
        (renewed, word(&now), now.iteration)
    };
    assert_eq!(ended("ababababab"), (vec![4], "stuck".to_owned(), 6));
    let other = ended("ababcdcdcd");
    assert_eq!(other.0, [4, 8], "another circle is worth another session: {other:?}");
}

#[test]
fn a_claim_that_could_not_be_verified_goes_as_the_pack_says() {
    let files = vec!["a.rs".to_owned()];
    let claim = Claim::Unverified("nobody saw it".to_owned());
    let turn = TurnResult { claim, files, moved: Some(true), ..TurnResult::default() };
    for (setting, wanted, asks) in [
        (UnseenChanges::Continue, "ready", false),
        (UnseenChanges::Human, "ready", true),
        (UnseenChanges::End, "unverified", false),
    ] {
        let limits = RunLimits { unseen_changes: setting, ..limits() };
        let (after, effects) = step(&run(RunPhase::Working), &RunEvent::Ended(&turn), &limits, NOW);
        assert_eq!((word(&after).as_str(), after.feedback.as_str()), (wanted, "nobody saw it"));
        assert_eq!(after.unseen, ["a.rs"], "{setting:?}");
        assert_eq!(
            effects.iter().any(|it| matches!(it, RunEffect::AskHuman(_))),
            asks,
            "{setting:?}"
        );
        // Once the human who was asked has answered, the changes are theirs.
        let (after, _) = step(&after, &RunEvent::Looked(&ControlSignals::default()), &limits, NOW);
        assert_eq!(after.unseen.is_empty(), asks, "{setting:?}");
    }
}

#[test]
fn work_that_looks_complete_ends_unclaimed_and_can_be_resumed() {
    let mut before = run(RunPhase::Working);
    before.worked = true;
    let quiet = TurnResult { moved: Some(false), looks_complete: true, ..TurnResult::default() };
    let (after, effects) = step(&before, &RunEvent::Ended(&quiet), &limits(), NOW);
    assert_eq!(effects, [RunEffect::End(RunStatus::CompleteUnclaimed)]);
    assert_eq!(after.status().map(RunStatus::exit_code), Some(0));
    assert_eq!(word(&step(&after, &RunEvent::Resumed(None), &limits(), NOW).0), "ready");
    let claimed = TurnResult { claim: Claim::Accepted, ..quiet };
    let (after, _) = step(&before, &RunEvent::Ended(&claimed), &limits(), NOW);
    assert_eq!(word(&after), "complete", "a claim comes first");
    let moved = TurnResult { moved: Some(true), ..TurnResult::default() };
    let (after, _) = step(&run(RunPhase::Working), &RunEvent::Ended(&moved), &limits(), NOW);
    assert!(after.worked);
}
