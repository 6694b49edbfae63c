//! Better advice for findings of the loader, which sees one value at a time.

use std::sync::Arc;

use crate::policy::guards;
use crate::source::{Diagnostic, Fix, Span};

/// Replaces general advice by advice for a common mistake.
pub(super) fn refine(finding: &mut Diagnostic) {
    match finding.code {
        "wrong-type" => command_words(finding),
        "yaml-syntax" => unquoted_expression(finding),
        "unavailable-fact" => only_in_guards(finding),
        _ => {}
    }
}

/// `command: make lint` is a list of two words, not of one.
fn command_words(finding: &mut Diagnostic) {
    let before = finding.span.source.text.get(..finding.span.start).unwrap_or_default();
    let words: Vec<&str> = finding.span.text().split_whitespace().collect();
    let is_plain = |it: &&str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic() || "-./".contains(c))
            && it.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
    };
    let is_list = finding.fix.is_some() && before.trim_end().ends_with("command:");
    if is_list && words.len() > 1 && words.iter().all(is_plain) {
        let edits = vec![(finding.span.clone(), format!("[{}]", words.join(", ")))];
        finding.fix = Some(Fix { safe: false, edits });
        finding.help = Some("write a list with one item for each word".to_owned());
    }
}

/// An expression without quotes that YAML reads as a list, or `a ? b : c`.
fn unquoted_expression(finding: &mut Diagnostic) {
    let source = Arc::clone(&finding.span.source);
    let text = source.text.as_str();
    let line_of = |at: usize| {
        let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
        let end = text.get(at..).and_then(|it| it.find('\n')).map_or(text.len(), |it| at + it);
        (start, text.get(start..end).unwrap_or_default())
    };
    let here = line_of(finding.span.start.min(text.len()));
    let above = here.0.checked_sub(1).map(line_of);
    for (start, line) in [Some(here), above].into_iter().flatten() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        let value = value.trim_end();
        let rest = value.rsplit_once(']').map(|(_, rest)| rest.trim_start());
        if value.starts_with('[') && rest.is_some_and(|it| !it.is_empty() && !it.starts_with('#')) {
            let start = start + key.len() + 2;
            let end = start + value.len();
            finding.span = Span { source: Arc::clone(&source), start, end };
            finding.message = "this value is not valid YAML".to_owned();
            finding.help = Some("put the whole value in single quotes".to_owned());
            finding.fix = None;
            return;
        }
        let is_choice = value.split_once(" ? ").is_some_and(|(_, rest)| rest.contains(" : "));
        if is_choice && !value.starts_with(['"', '\'']) {
            let help = "expressions have no `? :`; write `if … { … } else { … }`";
            finding.help = Some(help.to_owned());
            finding.fix = None;
            return;
        }
    }
}

/// `action` and `program` outside of guards.
fn only_in_guards(finding: &mut Diagnostic) {
    let name = &finding.span.source.name;
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let of_guards = guards::FILES.contains(&file);
    for fact in ["action", "program"] {
        if !of_guards && finding.message.starts_with(&format!("`{fact}` ")) {
            finding.help = Some(format!("`{fact}` is available only in guards.yaml"));
        }
    }
}
