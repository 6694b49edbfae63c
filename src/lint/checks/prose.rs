//! Checks of what is looked for in sentences: phrases and regular expressions that no sentence can meet.

use regex_syntax::hir::{Hir, HirKind, Look};

use super::patterns::hir;
use crate::{Findings, Subject};
use policyd_evaluation::message::in_one_line;
use policyd_fact_table::prose::{Prose, words};
use policyd_yaml::node::Node;

/// The file of rationalizations: questions and quotes never match them.
const EXCUSES: &str = "rationalizations.yaml";

/// What is wrong with what is looked for, and what to write in its place.
type ProseProblem = (String, &'static str);

pub(crate) fn unmatchable_phrase(subject: &Subject<'_>, out: &mut Findings) {
    let texts = subject.file("vocabulary.yaml").and_then(|it| it.get("texts")?.entries());
    let texts = texts.unwrap_or_default().iter().map(|(_, row)| (row, false));
    let excuses = subject.of(EXCUSES).map(|it| (it.node, true));
    let others = subject.file(EXCUSES).map(|it| (it, true));
    for (row, excuse) in texts.chain(excuses).chain(others) {
        let mut judge = |key: &str, wrong: &dyn Fn(&str) -> Option<ProseProblem>| {
            for node in row.get(key).map(Node::one_or_items).unwrap_or_default() {
                if let Some((message, help)) = node.text().and_then(wrong) {
                    out.help(node.span.clone(), message, help);
                }
            }
        };
        judge("phrases", &|it| odd_phrase(it, excuse));
        judge("regexes", &|it| asking(it, excuse).or_else(|| needs_foreign(it, excuse)));
        judge("unless", &|it| needs_foreign(it, excuse));
    }
}

fn odd_phrase(text: &str, excuse: bool) -> Option<ProseProblem> {
    let said = |it: &str| words(it).next().is_some();
    // Words are compared without their signs, those of code among them.
    let plain = Prose::new(&text.replace('`', " "));
    let ends_within = plain.sentences().filter(|it| said(it.text())).count() > 1;
    let text = in_one_line(text);
    if !said(&text) && !text.trim().is_empty() {
        let message = format!("`{text}` contains no word, but phrases consist of words");
        Some((message, "use a regular expression under `regexes` for punctuation"))
    } else if ends_within {
        let message = format!("`{text}` spans two sentences, which are matched separately");
        Some((message, "write text of one sentence"))
    } else if excuse && text.trim_end().ends_with('?') {
        Some((format!("`{text}` is a question, which is never a rationalization"), NO_QUESTION))
    } else if excuse && text.contains('\u{2019}') {
        Some((typographic(&text), PLAIN))
    } else {
        None
    }
}

const NO_QUESTION: &str = "write the statement instead of the question";
const PLAIN: &str = "write `'`";

fn typographic(text: &str) -> String {
    format!("`{text}` has a typographic apostrophe, but texts are normalized to plain ones")
}

fn asking(text: &str, excuse: bool) -> Option<ProseProblem> {
    let asks = excuse && text.contains("\\?") && hir(text).is_some_and(|it| ends_in_question(&it));
    asks.then(|| (format!("`{text}` is a question, which is never a rationalization"), NO_QUESTION))
}

/// Whether whatever it matches ends with a question mark, and a line with that.
fn ends_in_question(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(it) => ends_in_question(&it.sub),
        HirKind::Concat(all) => {
            let [.., sign, end] = all.as_slice() else { return false };
            let asks = matches!(sign.kind(), HirKind::Literal(text) if text.0.ends_with(b"?"));
            asks && matches!(end.kind(), HirKind::Look(Look::End | Look::EndLF))
        }
        HirKind::Alternation(all) => all.iter().all(ends_in_question),
        HirKind::Literal(_)
        | HirKind::Empty
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_) => false,
    }
}

/// A regular expression that asks for a character which no sentence has.
fn needs_foreign(text: &str, excuse: bool) -> Option<ProseProblem> {
    // Another rule reports a pattern that ends in a line break.
    let may = text.contains(['`', '\u{2019}']) || (text.contains("\\n") && !text.ends_with('\n'));
    let hir = may.then(|| hir(text))??;
    if needs(&hir, '\n') {
        let message = format!("`{text}` spans two lines, but sentences end with the line");
        Some((message, "write text of one line"))
    } else if needs(&hir, '`') {
        let message = format!("`{text}` matches code, which is removed from sentences");
        Some((message, "match the text around the code"))
    } else if excuse && needs(&hir, '\u{2019}') {
        Some((typographic(text), PLAIN))
    } else {
        None
    }
}

/// Whether whatever it matches holds this character.
fn needs(hir: &Hir, wanted: char) -> bool {
    match hir.kind() {
        HirKind::Literal(text) => String::from_utf8_lossy(&text.0).contains(wanted),
        HirKind::Capture(it) => needs(&it.sub, wanted),
        HirKind::Repetition(it) => it.min > 0 && needs(&it.sub, wanted),
        HirKind::Concat(all) => all.iter().any(|it| needs(it, wanted)),
        HirKind::Alternation(all) => all.iter().all(|it| needs(it, wanted)),
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}
