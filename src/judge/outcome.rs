//! The outcome: decision, what is to be remembered, what is to be spoken.

use std::sync::Arc;

use super::combine::Decision;
use super::verdict::{Consequence, Status, Verdict};
use super::{Bench, message, release_reason};
use crate::checksum::{checksum, hex};
use crate::limits;
use crate::policy::Policy;
use crate::script::Evaluator;
use crate::script::context::OutcomeFacts;
use crate::state::guard::Ruling;
use crate::state::{CheckResults, GuardState, SessionState};

/// What was decided about a stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// Type of the session.
    pub session_type: String,
    /// What every consideration came to.
    pub verdicts: Vec<Verdict>,
    /// What the loop guard said.
    pub ruling: Ruling,
    /// Why the agent was let go, or empty.
    pub release: &'static str,
    /// What the agent is told where it is blocked.
    pub reason: String,
    /// What the user is told, or empty.
    pub notice: String,
    /// What the user is told where the block could not be remembered.
    pub forgotten_notice: String,
    /// One line about the check results, in the pack's voice.
    pub summary: String,
    /// The state to remember.
    pub state: SessionState,
    /// Whether it differs from what is remembered.
    pub moved: bool,
}

/// Puts verdicts and the guard's ruling together.
pub(super) fn outcome(
    bench: Bench<'_>,
    verdicts: Vec<Verdict>,
    (mut guard, ruling): (GuardState, Ruling),
    evaluator: &mut Evaluator,
) -> Outcome {
    let check_results = check_results(bench, &verdicts);
    let facts = outcome_facts(bench, &verdicts, ruling, &check_results);
    bench.context.learned.borrow_mut().outcome = facts;
    let policy = bench.policy;
    let blocked = matches!(ruling, Ruling::Block { .. });
    let reason = if blocked {
        message::block_reason(policy, &verdicts, bench.report_path, evaluator)
    } else {
        String::new()
    };
    if blocked {
        guard.reason = reason.chars().take(limits::REASON_KEPT_CHARS_MAX).collect();
    }
    let forgotten_notice =
        if blocked { message::text(policy, "not_saved", evaluator) } else { String::new() };
    let mut said = Vec::new();
    if matches!(ruling, Ruling::Release(_)) {
        said.push(message::text(policy, "release", evaluator));
    }
    let unreported: Vec<String> = once_keys(policy, &verdicts)
        .filter(|(_, key)| !blocked && !bench.state.notified.contains(key))
        .map(|(_, key)| key)
        .collect();
    let repeated: Vec<&str> = once_keys(policy, &verdicts)
        .filter(|(_, key)| bench.state.notified.contains(key))
        .map(|(id, _)| id)
        .collect();
    let warnings = message::warnings(&verdicts, &repeated);
    if !blocked && !warnings.is_empty() {
        said.push(format!("{} {warnings}", message::text(policy, "warning_header", evaluator)));
    }
    let summary = message::text(policy, "summary", evaluator);
    let state = next_state(bench, guard, (check_results, unreported));
    Outcome {
        decision: if blocked { Decision::Block } else { Decision::None },
        session_type: bench.context.learned.borrow().session_type.clone(),
        verdicts,
        ruling,
        release: release_reason(ruling),
        reason,
        notice: message::cut(&said.join("\n"), limits::SPOKEN_CHARS_MAX),
        forgotten_notice,
        summary,
        moved: state != *bench.state,
        state,
    }
}

/// The warnings that are reported once per session, each with the id of its rule and a key that
/// changes with its details and evidence.
fn once_keys<'v>(
    policy: &'v Policy,
    verdicts: &'v [Verdict],
) -> impl Iterator<Item = (&'v str, String)> {
    let once = |id: &str| policy.considerations.iter().any(|it| it.once && it.id == id);
    verdicts.iter().filter(move |it| it.consequence == Consequence::Warns && once(&it.id)).map(
        |it| {
            let parts = [it.id.as_str(), it.details.as_str()].into_iter();
            let parts: Vec<&[u8]> =
                parts.chain(it.evidence.iter().map(String::as_str)).map(str::as_bytes).collect();
            (it.id.as_str(), hex(&checksum(&parts)))
        },
    )
}

fn outcome_facts(
    bench: Bench<'_>,
    verdicts: &[Verdict],
    ruling: Ruling,
    results: &CheckResults,
) -> OutcomeFacts {
    let of = |consequence| verdicts.iter().filter(move |it| it.consequence == consequence);
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (block, remaining) = match ruling {
        Ruling::Block { number, same_remaining, .. } => (number, same_remaining),
        Ruling::Approve | Ruling::Release(_) => (0, 0),
    };
    OutcomeFacts {
        failed: number(of(Consequence::Blocks).count()),
        warned: number(of(Consequence::Warns).count()),
        block: i64::from(block),
        max_blocks: i64::from(bench.policy.settings.guard.max_consecutive_blocks),
        remaining: i64::from(remaining),
        release: release_reason(ruling).to_owned(),
        failed_ids: of(Consequence::Blocks).map(|it| it.id.clone()).collect(),
        failed_details: of(Consequence::Blocks)
            .map(|it| format!("{}: {}", it.id, it.details))
            .collect(),
        workflow_compliant: results.workflow_compliant,
        quality_score: i64::from(results.quality_score),
    }
}

/// The seed's check results: share of satisfied checks among those that were judged.
fn check_results(bench: Bench<'_>, verdicts: &[Verdict]) -> CheckResults {
    let count = |status: &Status| verdicts.iter().filter(|it| it.status == *status).count();
    let (satisfied, unsatisfied) = (count(&Status::Satisfied), count(&Status::Unsatisfied));
    let judged = satisfied.saturating_add(unsatisfied);
    let score = satisfied.saturating_mul(100).checked_div(judged).unwrap_or(100);
    let known = &bench.state.check_results.files_modified;
    let files = bench.context.facts.files.iter().map(|it| &it.path);
    let files_modified =
        if files.clone().eq(known.iter()) { Arc::clone(known) } else { files.cloned().collect() };
    CheckResults {
        files_modified,
        workflow_compliant: verdicts.iter().all(|it| it.consequence != Consequence::Blocks),
        quality_score: u8::try_from(score).unwrap_or(100),
    }
}

/// The state after this stop; the same state where there is nothing new to remember.
fn next_state(
    bench: Bench<'_>,
    guard: GuardState,
    (results, unreported): (CheckResults, Vec<String>),
) -> SessionState {
    let mut state = bench.state.clone();
    state.check_results = results;
    state.notified.extend(unreported);
    let more = state.notified.len().saturating_sub(limits::NOTIFIED_KEPT_MAX);
    state.notified.drain(..more);
    match &bench.context.event.agent_id {
        None => state.main = guard,
        Some(agent) => {
            let full =
                state.agents.len() >= limits::AGENTS_MAX && !state.agents.contains_key(agent);
            // The one that blocked longest ago is the likeliest to be gone.
            let oldest = state.agents.iter().min_by_key(|(_, it)| it.last_block);
            let oldest = oldest.map(|(id, _)| id.clone()).filter(|_| full);
            oldest.and_then(|it| state.agents.remove(&it));
            state.agents.insert(agent.clone(), guard);
        }
    }
    if state != *bench.state {
        state.turn_count = state.turn_count.saturating_add(1);
        state.last_check = Some(bench.context.now);
    }
    state
}
