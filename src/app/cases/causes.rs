//! What stands behind a case that failed: the conditions that were judged, with the value of each part.

use super::machine::StepOutcome;
use policyd_cases::expect::Mismatch;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::message::in_one_line;
use policyd_evaluation::verdict::{CheckVerdict, ConditionExplanation, Consequence};
use policyd_record::drawing;
use policyd_record::mask::mask;

/// What led to what there was: the conditions of the consideration that is meant with the value of
/// each part, else everything that stood against the stop or was said.
pub(crate) fn behind(mismatch: &Mismatch, seen: &StepOutcome) -> Vec<(String, String)> {
    let Some(outcome) = &seen.report.outcome else {
        if let Some(guarded) = &seen.report.context.guarded {
            return behind_guards(mismatch, guarded);
        }
        let why = seen.report.context.no_opinion.clone().unwrap_or_default();
        return vec![(format!("not evaluated: {why}"), String::new())];
    };
    let (kind, mut verdicts) = (&outcome.session_type, outcome.verdicts.iter().collect::<Vec<_>>());
    let named = mismatch.what.strip_prefix("considerations.");
    if let Some(id) = named.and_then(|rest| rest.split('.').next()) {
        verdicts.retain(|it| it.id == id);
        let drawn = verdicts.iter().flat_map(|it| drawn(&it.explanation));
        let became = verdicts.iter().map(|it| {
            let (status, leads, details) =
                (it.status.as_str(), it.consequence.as_str(), in_one_line(&it.details));
            let heading =
                format!("{id}: {status}, consequence {leads}, session type {kind}: {details}");
            (heading, String::new())
        });
        return became.chain(drawn).collect();
    }
    if mismatch.what == "snapshot" {
        return Vec::new();
    }
    verdicts.retain(|it| !matches!(it.consequence, Consequence::None));
    let line = |it: &&CheckVerdict| {
        let softened = it.softened.map(|why| format!(" (does not block: {why})"));
        let (leads, softened) = (it.consequence.as_str(), softened.unwrap_or_default());
        format!("{} {leads}: {}{softened}\n", it.id, in_one_line(&it.details))
    };
    let lines: String = verdicts.iter().map(line).collect();
    let lines = if lines.is_empty() { "no check fired\n".to_owned() } else { lines };
    let released = match outcome.release {
        "" => String::new(),
        why => format!("released by the block limiter: {why}\n"),
    };
    let found = format!("effects in a session of type {kind}");
    let conditions = verdicts.iter().flat_map(|it| drawn(&it.explanation));
    std::iter::once((found, format!("{lines}{released}"))).chain(conditions).collect()
}

/// The same of a tool call: the guards that fired or could not be judged, each with its conditions; of one that is
/// named also why it is silent.
fn behind_guards(mismatch: &Mismatch, guarded: &GuardsOutcome) -> Vec<(String, String)> {
    let named = mismatch.what.strip_prefix("guards.");
    let is_meant = |id: &str| named.is_none_or(|named| id == named);
    let verdicts = guarded.verdicts.iter().filter(|it| is_meant(&it.id)).flat_map(fired);
    // A guard that did not fire is listed if it is named, or if more than its conditions kept it from firing.
    let silent = guarded.silent.iter();
    let silent = silent.filter(|it| match named {
        Some(id) => it.id == id,
        None => !it.why.is_empty(),
    });
    let silent = silent.flat_map(|it| {
        let why = if it.why.is_empty() { String::new() } else { format!(": {}", mask(&it.why).0) };
        let heading = format!("{} ({}): silent{why}", it.id, it.place);
        std::iter::once((heading, String::new())).chain(drawn(&it.explanation))
    });
    let mut all: Vec<(String, String)> = verdicts.chain(silent).collect();
    if all.is_empty() {
        let said = match named {
            Some(id) if guarded.judged.iter().any(|it| it == id) => format!("`{id}` is silent"),
            Some(id) => {
                format!("`{id}` does not apply to the call: it is for other tools or programs")
            }
            None => "no guard fired".to_owned(),
        };
        all.push((said, String::new()));
    }
    all
}

/// A guard that fired or could not be judged, with its conditions.
fn fired(it: &GuardVerdict) -> impl Iterator<Item = (String, String)> {
    let about = Some(&it.program).filter(|it| !it.is_empty());
    let about = about.map(|it| format!(", about `{it}`")).unwrap_or_default();
    let (id, status, verb) = (&it.id, it.status(), it.verb.as_str());
    let said = it.unknown.as_ref().unwrap_or(&it.message);
    let heading = format!("{id} ({}): {status}, {verb}{about}: {said}", it.place);
    std::iter::once((heading, String::new())).chain(drawn(&it.explanation))
}

/// Conditions with the value of each part.
fn drawn(conditions: &[ConditionExplanation]) -> impl Iterator<Item = (String, String)> {
    conditions.iter().map(|it| {
        let heading = format!("{} ({})", it.key, it.place);
        (heading, drawing::draw(&it.expression, &it.parts))
    })
}
