//! Exemptions: situations in which checks do not block. They are evaluated after the checks, and only if one of them
//! would block.

use super::consider::first;
use super::evaluation_context::EvaluationContext;
use super::verdict::{CheckVerdict, Consequence};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::OutcomeFacts;

/// Texts of the exemptions that apply.
#[derive(Debug, Default)]
pub(super) struct ExemptionTexts {
    /// Texts for the user about checks that do not block.
    pub(super) notices: Vec<String>,
    /// Texts for the agent about checks that block, because no human is present.
    pub(super) insists: Vec<String>,
}

/// Applies the exemptions of the pack to verdicts. `blocked_before`: whether the agent was blocked
/// since the last prompt of a human.
pub(super) fn apply(
    verdicts: &mut [CheckVerdict],
    blocked_before: bool,
    bench: EvaluationContext<'_>,
    evaluator: &mut FactEvaluator,
) -> ExemptionTexts {
    let mut texts = ExemptionTexts::default();
    if verdicts.iter().all(|it| it.consequence != Consequence::Blocks) {
        return texts;
    }
    for exemption in bench.policy.exemptions.iter() {
        let checks = bench.policy.considerations.iter();
        let named: Vec<&str> =
            checks.filter(|it| exemption.covers(it)).map(|it| it.id.as_str()).collect();
        let is_covered = |it: &&mut CheckVerdict| {
            it.consequence == Consequence::Blocks && named.contains(&it.id.as_str())
        };
        let covered: Vec<&mut CheckVerdict> = verdicts.iter_mut().filter(is_covered).collect();
        if covered.is_empty() {
            continue;
        }
        let outcome = outcome_of(&covered);
        evaluator.change(|it| it.outcome = outcome);
        // A condition that cannot be evaluated exempts nothing: the block limit still holds.
        if !evaluator.eval_bool(&exemption.when).unwrap_or(false) {
            continue;
        }
        let insists =
            !bench.context().interactive && !exemption.insist.is_empty() && !blocked_before;
        if insists {
            texts.insists.extend(first(&exemption.insist, evaluator));
            continue;
        }
        texts.notices.extend(first(&exemption.notice, evaluator).filter(|it| !it.is_empty()));
        for verdict in covered {
            verdict.consequence = Consequence::Recorded;
            verdict.exempted = true;
            verdict.allowed = Some(format!("exemption `{}`", exemption.id));
        }
    }
    texts
}

/// Returns the covered checks as the texts of an exemption see them.
fn outcome_of(covered: &[&mut CheckVerdict]) -> OutcomeFacts {
    let details = |it: &&mut CheckVerdict| format!("{}: {}", it.id, it.details);
    OutcomeFacts {
        failed: i64::try_from(covered.len()).unwrap_or(i64::MAX),
        failed_ids: covered.iter().map(|it| it.id.clone()).collect(),
        failed_details: covered.iter().map(details).collect(),
        ..OutcomeFacts::default()
    }
}
