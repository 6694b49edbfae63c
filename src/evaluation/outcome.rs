//! The outcome of a stop: decision, state to save, and texts to send.

use std::rc::Rc;
use std::sync::Arc;

use super::combine::Decision;
use super::evaluation_context::EvaluationContext;
use super::exemption::ExemptionTexts;
use super::message;
use super::verdict::{CheckStatus, CheckVerdict, Consequence};
use policyd_base::limits;
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::{Excuse, OutcomeFacts};
use policyd_policy::Policy;
use policyd_state::block_limiter::LimiterDecision;
use policyd_state::{BlockLimiterState, CheckResults, SessionState};
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::secrets::mask;

/// Outcome of the evaluation of a stop.
#[derive(Debug, Clone, PartialEq)]
pub struct StopOutcome {
    pub decision: Decision,
    pub session_type: String,
    /// Verdicts of all checks.
    pub verdicts: Vec<CheckVerdict>,
    /// Decision of the block limiter.
    pub ruling: LimiterDecision,
    /// Reason of a release. Empty if there was none.
    pub release: &'static str,
    /// Text for the agent if the stop is blocked.
    pub reason: String,
    /// Text for the user. Can be empty.
    pub notice: String,
    /// Text for the user if a block could not be saved.
    pub forgotten_notice: String,
    /// One line about the check results, in the pack's voice.
    pub summary: String,
    /// Excuses in the agent's last text. Empty if no check read them.
    pub excuses: Rc<Vec<Excuse>>,
    /// State to save.
    pub state: SessionState,
    /// Whether the state differs from the saved state.
    pub moved: bool,
}

impl StopOutcome {
    /// Returns the ids of the checks that block the stop.
    pub fn blocking(&self) -> impl Iterator<Item = &str> {
        let blocking = self.verdicts.iter().filter(|it| it.consequence == Consequence::Blocks);
        blocking.map(|it| it.id.as_str())
    }
}

/// State and decision of the block limiter after a stop.
pub(super) struct LimiterResult {
    pub(super) guard: BlockLimiterState,
    pub(super) ruling: LimiterDecision,
}

/// Results of the checks.
pub(super) struct CheckEvaluation {
    pub(super) verdicts: Vec<CheckVerdict>,
    /// See [`StopOutcome::excuses`].
    pub(super) excuses: Rc<Vec<Excuse>>,
}

/// Combines verdicts and the decision of the block limiter.
pub(super) fn outcome(
    bench: EvaluationContext<'_>,
    checks: CheckEvaluation,
    result: LimiterResult,
    texts: &ExemptionTexts,
    evaluator: &mut FactEvaluator,
) -> StopOutcome {
    let CheckEvaluation { verdicts, excuses } = checks;
    let LimiterResult { mut guard, ruling } = result;
    let check_results = check_results(bench, &verdicts);
    let facts = outcome_facts(bench, &verdicts, ruling, &check_results);
    evaluator.change(|it| it.outcome = facts);
    let policy = bench.policy;
    let blocked = matches!(ruling, LimiterDecision::Block { .. });
    let reason = if blocked {
        message::block_reason(bench, &verdicts, texts, evaluator)
    } else {
        String::new()
    };
    if blocked {
        guard.reason = reason.chars().take(limits::REASON_KEPT_CHARS_MAX).collect();
    }
    let forgotten_notice =
        if blocked { message::text(policy, "not_saved", evaluator) } else { String::new() };
    let mut said = Vec::new();
    if matches!(ruling, LimiterDecision::Release { is_repeated: false, .. }) {
        said.push(message::text(policy, "release", evaluator));
    }
    if !blocked {
        said.extend(texts.notices.iter().cloned());
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
    let state = next_state(bench, guard, check_results, unreported);
    StopOutcome {
        decision: if blocked { Decision::Block } else { Decision::None },
        session_type: bench.view.session_type.clone(),
        verdicts,
        ruling,
        release: release_reason(ruling),
        reason,
        notice: message::cut(&said.join("\n"), limits::SPOKEN_CHARS_MAX),
        forgotten_notice,
        summary,
        excuses,
        moved: state != *bench.state,
        state,
    }
}

/// Returns the warnings that are reported once per session: the id of the rule, and a key that
/// depends on its details and evidence.
fn once_keys<'v>(
    policy: &'v Policy,
    verdicts: &'v [CheckVerdict],
) -> impl Iterator<Item = (&'v str, String)> {
    let once = |id: &str| policy.considerations.iter().any(|it| it.once && it.id == id);
    verdicts.iter().filter(move |it| it.consequence == Consequence::Warns && once(&it.id)).map(
        |verdict| {
            let parts = [verdict.id.as_str(), verdict.details.as_str()].into_iter();
            let parts: Vec<&[u8]> = parts
                .chain(verdict.evidence.iter().map(String::as_str))
                .map(str::as_bytes)
                .collect();
            (verdict.id.as_str(), hex(&checksum(&parts)))
        },
    )
}

fn outcome_facts(
    bench: EvaluationContext<'_>,
    verdicts: &[CheckVerdict],
    ruling: LimiterDecision,
    results: &CheckResults,
) -> OutcomeFacts {
    let of = |consequence| verdicts.iter().filter(move |it| it.consequence == consequence);
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (block, remaining, idle_remaining) = match ruling {
        LimiterDecision::Block { number, same_remaining, idle_remaining, .. } => {
            (number, same_remaining, idle_remaining)
        }
        LimiterDecision::Approve | LimiterDecision::Release { .. } => (0, 0, 0),
    };
    let explanation = mask(bench.context().last_message.trim()).0;
    let explanation =
        if explanation.is_empty() { String::new() } else { message::in_quotes(&explanation) };
    OutcomeFacts {
        failed: number(of(Consequence::Blocks).count()),
        warned: number(of(Consequence::Warns).count()),
        block: i64::from(block),
        max_blocks: i64::from(bench.policy.settings.guard.max_consecutive_blocks),
        remaining: i64::from(remaining),
        idle_remaining: i64::from(idle_remaining),
        explanation,
        release: release_reason(ruling).to_owned(),
        failed_ids: of(Consequence::Blocks).map(|it| it.id.clone()).collect(),
        failed_details: of(Consequence::Blocks)
            .map(|it| format!("{}: {}", it.id, it.details))
            .collect(),
        workflow_compliant: results.workflow_compliant,
        quality_score: i64::from(results.quality_score),
    }
}

/// Returns the share of passed checks among the evaluated checks, in amplihack's format.
fn check_results(bench: EvaluationContext<'_>, verdicts: &[CheckVerdict]) -> CheckResults {
    let count = |status: &CheckStatus| verdicts.iter().filter(|it| it.status == *status).count();
    let (satisfied, unsatisfied) =
        (count(&CheckStatus::Satisfied), count(&CheckStatus::Unsatisfied));
    let judged = satisfied.saturating_add(unsatisfied);
    let score = satisfied.saturating_mul(100).checked_div(judged).unwrap_or(100);
    let known = &bench.state.check_results.files_modified;
    let files = bench.context().facts.files.iter().map(|it| &it.path);
    let files_modified =
        if files.clone().eq(known.iter()) { Arc::clone(known) } else { files.cloned().collect() };
    CheckResults {
        files_modified,
        workflow_compliant: verdicts.iter().all(|it| it.consequence != Consequence::Blocks),
        quality_score: u8::try_from(score).unwrap_or(100),
    }
}

/// Returns the state after this stop. Equal to the saved state if nothing changed.
fn next_state(
    bench: EvaluationContext<'_>,
    guard: BlockLimiterState,
    results: CheckResults,
    unreported: Vec<String>,
) -> SessionState {
    let mut state = bench.state.clone();
    state.check_results = results;
    state.notified.extend(unreported);
    let more = state.notified.len().saturating_sub(limits::NOTIFIED_KEPT_MAX);
    state.notified.drain(..more);
    match &bench.context().event.agent_id {
        None => state.main = guard,
        Some(agent) => {
            let full =
                state.agents.len() >= limits::AGENTS_MAX && !state.agents.contains_key(agent);
            // The agent with the oldest block has most likely ended.
            let oldest = state.agents.iter().min_by_key(|(_, it)| it.last_block);
            let oldest = oldest.map(|(id, _)| id.clone()).filter(|_| full);
            oldest.and_then(|it| state.agents.remove(&it));
            state.agents.insert(agent.clone(), guard);
        }
    }
    if state != *bench.state {
        state.turn_count = state.turn_count.saturating_add(1);
        state.last_check = Some(bench.context().now);
    }
    state
}

/// Returns the reason of a release, in the words of messages.
fn release_reason(ruling: LimiterDecision) -> &'static str {
    match ruling {
        LimiterDecision::Release { reason, .. } => reason.as_str(),
        LimiterDecision::Approve | LimiterDecision::Block { .. } => "",
    }
}
