//! Values of facts as hints behind the facts.

use std::ops::Range;

use super::view::PackView;
use policyd_fact_table::parts::{Part, PartValue};
use policyd_lint::{Site, Subject};
use policyd_record::drawing;
use policyd_yaml::time::Timestamp;

/// Returns the values of facts and conditions in a file, each with the byte behind which it is shown. `explain` returns
/// the parts of an expression with their values, or `None` if the expression is not shown.
pub fn hints(
    view: &PackView,
    name: &str,
    now: Timestamp,
    explain: impl Fn(&Site<'_>) -> Option<Vec<Part>>,
) -> Vec<(usize, String)> {
    let subject = Subject::new(&view.pack, &view.reviewed, now);
    let mut found = Vec::new();
    for site in subject.sites.iter().filter(|it| it.node.span.source.name == name) {
        let Some(parts) = explain(site) else { continue };
        for (number, part) in parts.iter().enumerate() {
            let is_whole = number + 1 == parts.len();
            let written = site.text.get(part.start..part.end).unwrap_or_default();
            let is_wanted = is_whole || is_path(written);
            if let Some(text) = shown(&part.found).filter(|_| is_wanted) {
                let at = site.span(&(part.start..part.end)).end;
                // An expression that is one fact has one value.
                found.retain(|(known, _)| *known != at);
                found.push((at, text));
            }
        }
    }
    found.sort();
    found
}

/// Returns the value of the fact whose last word is at a place of an expression. `None` if it was not evaluated.
#[must_use]
pub fn value_of(expression: &str, parts: &[Part], word: &Range<usize>) -> Option<String> {
    let is_call = expression.get(word.end..)?.starts_with('(');
    let is_meant = |it: &&Part| {
        let written = expression.get(it.start..it.end).unwrap_or_default();
        let ends = if is_call { it.end > word.end } else { it.end == word.end };
        ends && it.start <= word.start && is_path(written)
    };
    let part = parts.iter().filter(is_meant).min_by_key(|it| it.end.saturating_sub(it.start))?;
    (part.found != PartValue::NotReached).then(|| drawing::value(&part.found))
}

/// Whether a part is a fact, and not a comparison.
fn is_path(written: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let head = written.split('(').next().unwrap_or_default();
    head.starts_with(|c: char| c.is_alphabetic()) && head.chars().all(is_name)
}

fn shown(found: &PartValue) -> Option<String> {
    (*found != PartValue::NotReached).then(|| format!("= {}", drawing::value(found)))
}
