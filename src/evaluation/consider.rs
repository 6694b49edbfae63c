//! Evaluates one check: its scope, its result, and its effect.

use std::sync::Arc;

use policyd_base::limits;
use policyd_fact_table::context::Context;
use policyd_fact_table::{FactEvaluator, ScriptError, ScriptErrorKind, template};
use policyd_facts::event::EventKind;
use policyd_policy::{Check, Choice, Expression, Mode, OnError, Severity};
use policyd_yaml::time::Timestamp;

use super::quoted_text::cut;
use super::verdict::{CheckStatus, CheckVerdict, ConditionExplanation, Consequence, Detail};

/// Returns why a check is out of scope, by its names and dates. `None` if it might apply.
pub(super) fn out_of_scope(
    it: &Check,
    kind: EventKind,
    session_type: &str,
    now: Timestamp,
) -> Option<&'static str> {
    let expired = it.expires_millis.is_some_and(|at| now.millis() >= at);
    let type_fits = it.session_types.iter().any(|name| name == "*" || name == session_type);
    if !it.enabled {
        Some("disabled")
    } else if expired {
        Some("expired")
    } else if !it.on.contains(&kind) {
        Some("other event")
    } else if !type_fits {
        Some("other session type")
    } else {
        None
    }
}

/// Whether a check applies to the event, by its conditions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Applicability {
    /// It applies, also if a condition could not be evaluated.
    Applies,
    /// A condition is false.
    NotApplicable,
    /// A condition needs a fact that the recorded inputs of the decision do not contain.
    NotRecorded(String),
}

/// Evaluates the conditions of a check.
pub(super) fn applicability(it: &Check, evaluator: &mut FactEvaluator) -> Applicability {
    let conditions = [it.when.as_ref(), it.check.when.as_ref()];
    let mut missing = None;
    for when in conditions.into_iter().flatten() {
        match evaluator.eval_bool(when) {
            Ok(true) => {}
            Ok(false) => return Applicability::NotApplicable,
            Err(error) if error.kind == ScriptErrorKind::NotRecorded => {
                missing = missing.or_else(|| Some(unknown(when, &error)));
            }
            Err(_) => {}
        }
    }
    missing.map_or(Applicability::Applies, Applicability::NotRecorded)
}

/// Evaluates a check that applies.
pub(super) fn consider(
    it: &Check,
    context: &Context,
    evaluator: &mut FactEvaluator,
    detail: Detail,
) -> CheckVerdict {
    let status = match evaluator.eval_bool(&it.check.body.satisfied) {
        Ok(true) => CheckStatus::Satisfied,
        Ok(false) => CheckStatus::Unsatisfied,
        // `on_error` is for failures at a stop, not for facts that a recording lacks.
        Err(error) if error.kind == ScriptErrorKind::NotRecorded => {
            return untold(it, unknown(&it.check.body.satisfied, &error));
        }
        Err(error) => CheckStatus::Unknown(unknown(&it.check.body.satisfied, &error)),
    };
    if status == CheckStatus::Satisfied && detail == Detail::Findings {
        return blank(it);
    }
    let mode = if it.observed { Mode::Shadow } else { it.mode };
    let (consequence, softened) = consequence(it, mode, &status, evaluator);
    let softened = softened.map(|why| if it.observed { "policyd observes" } else { why });
    let enforced = match mode {
        Mode::Enforce => consequence,
        Mode::Warn | Mode::Shadow => self::consequence(it, Mode::Enforce, &status, evaluator).0,
    };
    let known = !matches!(status, CheckStatus::Unknown(_));
    let error = first(&it.check.body.error, evaluator).filter(|text| !text.is_empty());
    // A default text describes a check that did not pass.
    let texts = &it.check.body.details;
    let fits = status != CheckStatus::Satisfied || texts.iter().any(|it| it.when.is_some());
    let details = if known && fits { first(texts, evaluator) } else { None };
    let details = details.unwrap_or_else(|| match &status {
        CheckStatus::Unknown(why) => why.clone(),
        CheckStatus::Satisfied | CheckStatus::Unsatisfied | CheckStatus::Skipped(_) => {
            it.question.to_string()
        }
    });
    let evidence = if known { evidence(&it.check.body.evidence, evaluator) } else { Vec::new() };
    // The log explains each check that did not pass, at any level of detail. A recording is not
    // logged.
    let explains =
        detail == Detail::Values || (!context.recorded && status != CheckStatus::Satisfied);
    let explanation = if explains { explanation(it, &status, evaluator) } else { Vec::new() };
    let blank = blank(it);
    CheckVerdict {
        status,
        consequence,
        enforced,
        softened,
        details,
        evidence,
        error,
        explanation,
        ..blank
    }
}

/// Returns the verdict of a check that needs a fact that the recording lacks.
pub(super) fn untold(it: &Check, why: String) -> CheckVerdict {
    CheckVerdict { status: CheckStatus::Unknown(why.clone()), details: why, ..blank(it) }
}

/// Returns the verdict of a check that was not evaluated.
pub(super) fn skipped(it: &Check, why: &'static str) -> CheckVerdict {
    CheckVerdict { status: CheckStatus::Skipped(why), details: why.to_owned(), ..blank(it) }
}

/// Returns the verdict of a check with a false condition.
pub(super) fn not_applicable(
    it: &Check,
    evaluator: &mut FactEvaluator,
    detail: Detail,
) -> CheckVerdict {
    let explanation =
        if detail == Detail::Values { explained(whens(it), evaluator) } else { Vec::new() };
    CheckVerdict { explanation, ..skipped(it, "not applicable") }
}

fn blank(it: &Check) -> CheckVerdict {
    CheckVerdict {
        id: it.id.clone(),
        category: Arc::clone(&it.category),
        question: Arc::clone(&it.question),
        severity: it.severity,
        mode: it.mode,
        observed: it.observed,
        status: CheckStatus::Satisfied,
        consequence: Consequence::None,
        enforced: Consequence::None,
        allowed: None,
        exempted: false,
        softened: None,
        details: String::new(),
        evidence: Vec::new(),
        error: None,
        guidance: Arc::clone(&it.guidance),
        place: Arc::clone(&it.place),
        micros: 0,
        explanation: Vec::new(),
    }
}

fn unknown(expression: &Expression, error: &ScriptError) -> String {
    format!("could not be judged: {} ({})", error.message, expression.place)
}

/// Decides the effect of a status. A blocker blocks only on structural evidence.
fn consequence(
    it: &Check,
    mode: Mode,
    status: &CheckStatus,
    evaluator: &mut FactEvaluator,
) -> (Consequence, Option<&'static str>) {
    let unsatisfied = match status {
        CheckStatus::Satisfied | CheckStatus::Skipped(_) => return (Consequence::None, None),
        CheckStatus::Unsatisfied => true,
        CheckStatus::Unknown(_) => false,
    };
    match (mode, it.on_error) {
        (Mode::Shadow, _) => return (Consequence::Recorded, Some("shadow mode")),
        (_, OnError::Allow) if !unsatisfied => return (Consequence::None, None),
        (_, OnError::Warn) if !unsatisfied => return (Consequence::Warns, None),
        (Mode::Warn, _) => return (Consequence::Warns, Some("warn mode")),
        (Mode::Enforce, _) => {}
    }
    if it.severity == Severity::Warning {
        return (Consequence::Warns, None);
    }
    if unsatisfied && !it.words && it.check.body.satisfied.words_only {
        return (Consequence::Warns, Some("words alone do not block"));
    }
    let blocking = it.check.body.blocking.as_ref().filter(|_| unsatisfied);
    match blocking.map(|it| evaluator.eval_bool(it)) {
        None | Some(Ok(true)) => (Consequence::Blocks, None),
        Some(Ok(false) | Err(_)) => (Consequence::Warns, Some("its `blocking` does not hold")),
    }
}

/// Returns the first text whose condition is true.
pub(super) fn first(choices: &[Choice], evaluator: &mut FactEvaluator) -> Option<String> {
    let template = first_template(choices, evaluator)?;
    Some(template::render(template, evaluator).trim().to_owned())
}

/// Returns the first text whose condition is true, with its placeholders.
pub(super) fn first_template<'c>(
    choices: &'c [Choice],
    evaluator: &mut FactEvaluator,
) -> Option<&'c str> {
    choices.iter().find(|it| holds(it, evaluator)).map(|it| it.text.as_str())
}

fn holds(choice: &Choice, evaluator: &mut FactEvaluator) -> bool {
    choice.when.as_ref().is_none_or(|it| evaluator.eval_bool(it).unwrap_or(false))
}

fn evidence(choices: &[Choice], evaluator: &mut FactEvaluator) -> Vec<String> {
    let mut found = Vec::new();
    for choice in choices.iter().take(limits::EVIDENCE_MAX) {
        if holds(choice, evaluator) {
            let text = template::render(&choice.text, evaluator);
            found.push(cut(text.trim(), limits::EVIDENCE_CHARS_MAX));
        }
    }
    found.retain(|it| !it.is_empty());
    found
}

fn explanation(
    it: &Check,
    status: &CheckStatus,
    evaluator: &mut FactEvaluator,
) -> Vec<ConditionExplanation> {
    let body = &it.check.body;
    let satisfied = Some(("satisfied", &body.satisfied));
    let blocking = body.blocking.as_ref().filter(|_| *status == CheckStatus::Unsatisfied);
    let blocking = blocking.map(|it| ("blocking", it));
    explained(whens(it).chain(satisfied).chain(blocking), evaluator)
}

/// Returns the conditions under which the check applies.
fn whens(it: &Check) -> impl Iterator<Item = (&'static str, &Expression)> {
    let whens = [it.when.as_ref(), it.check.when.as_ref()];
    whens.into_iter().flatten().map(|it| ("when", it))
}

/// Explains conditions with the values of their parts, each condition once.
fn explained<'c>(
    conditions: impl Iterator<Item = (&'static str, &'c Expression)>,
    evaluator: &mut FactEvaluator,
) -> Vec<ConditionExplanation> {
    let mut all: Vec<ConditionExplanation> = Vec::new();
    for (key, condition) in conditions {
        if !all.iter().any(|it| it.expression == condition.text) {
            all.push(ConditionExplanation {
                key,
                place: condition.place.to_string(),
                expression: condition.text.clone(),
                parts: evaluator.explain(&condition.text),
            });
        }
    }
    all
}
