//! Formats the messages of a decision from the texts of the pack. The finding comes first, and
//! every message is bounded.

use std::borrow::Cow;

use policyd_base::limits;
use policyd_fact_table::{FactEvaluator, template};
use policyd_facts::compiled::BLOCK_MARK;
use policyd_policy::Policy;

use super::evaluation_context::EvaluationContext;
use super::exemption::ExemptionTexts;
pub use super::quoted_text::{cut, in_one_line, in_quotes, indented, quote};
use super::verdict::{CheckVerdict, Consequence};

/// Maximum characters of a header or footer. The finding uses the rest.
const FRAME_CHARS_MAX: usize = limits::SPOKEN_CHARS_MAX / 6;

/// Returns the pack's text with this message id, in the pack's voice.
pub fn text(policy: &Policy, id: &str, evaluator: &mut FactEvaluator) -> String {
    let choices = policy.messages.get(id).map(Vec::as_slice).unwrap_or_default();
    let voice = &policy.settings.voice;
    let fitting = choices.iter().find(|choice| {
        let spoken = choice.voice.as_ref().is_none_or(|own| own == voice);
        let when = choice.choice.when.as_ref();
        spoken && when.is_none_or(|it| evaluator.eval_bool(it).unwrap_or(false))
    });
    fitting.map(|it| template::render(&it.choice.text, evaluator)).unwrap_or_default()
}

/// Formats the text that a blocked agent receives: failed checks, evidence, guidance, and the
/// number of remaining blocks.
pub(super) fn block_reason(
    bench: EvaluationContext<'_>,
    verdicts: &[CheckVerdict],
    texts: &ExemptionTexts,
    evaluator: &mut FactEvaluator,
) -> String {
    let (policy, report_path) = (bench.policy, bench.report_path);
    let mut header = cut(&text(policy, "block_header", evaluator), FRAME_CHARS_MAX);
    // The block limiter finds the reason in the transcript by its beginning.
    if !bench.context().lens.begins_as_block(&header) {
        header = format!("{BLOCK_MARK}\n{header}").trim_end().to_owned();
    }
    let mut footer = cut(&text(policy, "block_footer", evaluator), FRAME_CHARS_MAX);
    let of = |consequence| verdicts.iter().filter(move |it| it.consequence == consequence);
    let mut body: Vec<String> = texts.insists.clone();
    body.extend(of(Consequence::Blocks).map(item));
    let warnings: Vec<String> =
        of(Consequence::Warns).map(|it| format!("- {}: {}", it.id, below(&it.details))).collect();
    if !warnings.is_empty() {
        body.push(format!(
            "{}\n{}",
            text(policy, "warning_header", evaluator),
            warnings.join("\n")
        ));
    }
    let body = body.join("\n\n");
    let frame = |footer: &str| {
        let frame = header.chars().count().saturating_add(footer.chars().count());
        limits::SPOKEN_CHARS_MAX.saturating_sub(frame.saturating_add(8))
    };
    if body.chars().count() > frame(&footer) {
        footer = format!("The full report is the last entry of {report_path}\n\n{footer}");
    }
    let body = cut(&body, frame(&footer));
    [header, body, footer].join("\n\n").trim().to_owned()
}

/// Formats one failed check.
fn item(it: &CheckVerdict) -> String {
    let mut lines = vec![format!("- {}: {}", it.id, below(&it.details))];
    lines.extend(it.evidence.iter().map(|it| format!("    {}", below(it))));
    lines.extend(it.error.iter().map(|it| format!("    error: {}", below(it))));
    if !it.guidance.is_empty() {
        lines.push(format!("    what to do: {}", below(&it.guidance)));
    }
    lines.join("\n")
}

/// Indents the further lines of a text below an item, so that output of a command cannot look like
/// an item.
fn below(text: &str) -> Cow<'_, str> {
    indented(text, 6)
}

/// Formats warnings as one paragraph for the user, without those of `repeated` rules. Can be
/// empty.
pub(super) fn warnings(verdicts: &[CheckVerdict], repeated: &[&str]) -> String {
    let said = verdicts
        .iter()
        .filter(|it| it.consequence == Consequence::Warns && !repeated.contains(&it.id.as_str()));
    said.map(|it| format!("{}: {}", it.id, in_one_line(&it.details))).collect::<Vec<_>>().join("; ")
}
