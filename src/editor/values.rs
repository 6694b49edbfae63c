//! Values of facts as hints behind the facts.

use super::view::PackView;
use crate::expr::parts::{Found, Part};
use crate::lint::{Site, Subject};
use crate::report::drawing;
use crate::time::Timestamp;

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

/// Whether a part is a fact, and not a comparison.
fn is_path(written: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let head = written.split('(').next().unwrap_or_default();
    head.starts_with(|c: char| c.is_alphabetic()) && head.chars().all(is_name)
}

fn shown(found: &Found) -> Option<String> {
    (*found != Found::NotReached).then(|| format!("= {}", drawing::value(found)))
}
