//! The line that is shown on a terminal while a run is at work.

use std::time::Duration;

use policyd::report::standing::RunStatusLine;
use policyd::state::run::{Run, RunLimits, RunPhase, Spend};
use policyd::time::Timestamp;

use crate::support::snapshot;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn run() -> Run {
    let mut run = Run::new("r", "Do the thing", &["agent".to_owned()], NOW);
    run.phase = RunPhase::Working;
    run.iteration = 3;
    run.spend = Spend { input: 12_000, output: 345, cost_usd: 0.42, ..Spend::default() };
    run
}

/// The lines of several situations, each under its name.
fn lines(situations: &[(&str, RunStatusLine<'_>)]) -> String {
    let lines = situations.iter().map(|(name, it)| format!("{name}:\n  {}\n", it.line()));
    lines.collect()
}

#[test]
fn iteration_tokens_breakers_cost_last_decision_and_elapsed() {
    let limits = RunLimits { iterations: 40, warn_percent: 80, ..RunLimits::default() };
    let bounded = RunLimits { budget_usd: Some(0.5), ..limits.clone() };
    let first = Run { iteration: 1, spend: Spend::default(), ..run() };
    let mut later = run();
    (later.session, later.health, later.verdict) = (2, Some(64), "warn".to_owned());
    later.extended_by = 5;
    let until_ms = NOW.plus(Duration::from_secs(150)).millis();
    let why = "the server says so".to_owned();
    let waiting = Run { phase: RunPhase::Waiting { until_ms, why }, ..run() };
    let paused = Run { phase: RunPhase::Paused, ..run() };
    let of = |run| RunStatusLine {
        run,
        limits: &limits,
        spent: Spend::default(),
        context: None,
        breakers: "",
        gate: "",
        elapsed: Duration::from_secs(61),
        now: NOW,
    };
    let spent = Spend { input: 1_000_000, cost_usd: 0.05, ..Spend::default() };
    let unpriced = Spend { input: 1_000, ..Spend::default() };
    let text = lines(&[
        ("the first turn", of(&first)),
        (
            "what the turn at work used is counted in",
            RunStatusLine { spent, context: Some(62), ..of(&later) },
        ),
        ("a limit that is nearly reached", RunStatusLine { limits: &bounded, ..of(&later) }),
        ("a claim was refused", RunStatusLine { gate: "not content", ..of(&later) }),
        ("a breaker is open", RunStatusLine { breakers: "api/agent OPEN", ..of(&later) }),
        ("waiting", of(&waiting)),
        ("paused", of(&paused)),
        ("an empty context", RunStatusLine { context: Some(0), ..of(&first) }),
        ("an overrun one", RunStatusLine { context: Some(130), ..of(&first) }),
        ("a model without a price", RunStatusLine { spent: unpriced, ..of(&first) }),
    ]);
    snapshot("run", "standing__in_one_line", text);
}
