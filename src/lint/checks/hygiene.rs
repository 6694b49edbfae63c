//! Checks of the text itself: characters, credentials, what is left to do.

use std::ops::Range;
use std::sync::Arc;

use unicode_security::MixedScript;

use crate::subject::Leaf;
use crate::{Findings, Subject};
use policyd_yaml::secrets::secrets;
use policyd_yaml::shape::Kind;
use policyd_yaml::{Source, Span};

/// Characters of a public key of minisign in base64.
const PUBLIC_KEY_CHARS: usize = 56;

fn span(source: &Arc<Source>, start: usize, length: usize) -> Span {
    Span { source: Arc::clone(source), start, end: start + length }
}

/// Characters that change the order of others (Unicode TR 36; CVE-2021-42574).
const fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Characters of no width that can stand within words.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{180e}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn each_character(
    subject: &Subject<'_>,
    wanted: impl Fn(char) -> bool,
    mut found: impl FnMut(Span, char),
) {
    for (_, source) in &subject.pack.files {
        if source.text.is_ascii() {
            continue;
        }
        for (at, c) in source.text.char_indices() {
            // A mark at the very beginning tells the encoding.
            if wanted(c) && at > 0 {
                found(span(source, at, c.len_utf8()), c);
            }
        }
    }
}

pub(crate) fn bidi_character(subject: &Subject<'_>, out: &mut Findings) {
    each_character(subject, is_bidi, |span, c| {
        let message = format!("U+{:04X} changes the display order of this line", u32::from(c));
        out.add(span.clone(), message, |it| {
            it.with_note("reviewers see other text than policyd evaluates")
                .with_help("delete it")
                .with_fix(false, span, "")
        });
    });
}

/// Whether a joiner stands where writing needs one: between letters of scripts that join them, or within
/// a picture that is made of several.
fn joins(span: &Span, c: char) -> bool {
    let text = span.source.text.as_str();
    let before = text.get(..span.start).and_then(|it| it.chars().next_back());
    let after = text.get(span.end..).and_then(|it| it.chars().next());
    let joined = |it: Option<char>| it.is_some_and(|it| !it.is_ascii() && !is_invisible(it));
    matches!(c, '\u{200c}' | '\u{200d}') && joined(before) && joined(after)
}

pub(crate) fn invisible_character(subject: &Subject<'_>, out: &mut Findings) {
    each_character(subject, is_invisible, |span, c| {
        if joins(&span, c) {
            return;
        }
        let message = format!("U+{:04X} is invisible", u32::from(c));
        out.add(span.clone(), message, |it| it.with_help("delete it").with_fix(false, span, ""));
    });
}

/// Whether a character is a space that keyboards do not write.
const fn is_odd_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Whether something is looked for by a text: people read all others.
fn is_looked_for(leaf: &Leaf<'_>) -> bool {
    ["commands", "tools", "programs", "globs", "files"].contains(&leaf.key)
        && !matches!(leaf.kind, Kind::Expression | Kind::Regex | Kind::Template)
}

/// Whether letters of a script that has the looks of Latin ones stand within a word of Latin ones.
fn mixes_lookalikes(text: &str) -> bool {
    let is_lookalike = |c: char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}');
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|it| it.contains(is_lookalike) && it.contains(|c: char| c.is_ascii_alphabetic()))
}

pub(crate) fn unusual_whitespace(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in subject.leaves.iter().filter(|it| is_looked_for(it)) {
        let text = leaf.node.text().unwrap_or_default();
        let found = text.char_indices().find(|(_, c)| is_odd_blank(*c));
        if let Some((at, c)) = found.filter(|_| !text.is_ascii()) {
            let span = leaf.node.sub_span(at..at + c.len_utf8());
            let message = format!("U+{:04X} looks like a space", u32::from(c));
            out.add(span.clone(), message, |it| {
                it.with_note("it does not match a space in a command")
                    .with_help("write a plain space")
                    .with_fix(false, span, " ")
            });
        }
    }
}

pub(crate) fn confusable_id(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        if !entry.name().is_ascii() && !entry.name().is_single_script() {
            let message = format!("`{}` mixes letters of several scripts", entry.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_note("it can look like another id").with_help("use letters of one script")
            });
        }
    }
    // A program, a tool or a folder of such a name is never met.
    for leaf in subject.leaves.iter().filter(|it| is_looked_for(it)) {
        let text = leaf.node.text().unwrap_or_default();
        if !text.is_ascii() && mixes_lookalikes(text) {
            let message = format!("`{text}` mixes letters of several scripts");
            out.add(leaf.node.span.clone(), message, |it| {
                it.with_note("it does not match text that looks the same")
                    .with_help("use letters of one script")
            });
        }
    }
}

pub(crate) fn secret(subject: &Subject<'_>, out: &mut Findings) {
    for (_, source) in &subject.pack.files {
        // Text on the line below a key is not its value: it is another key or a list.
        let below = |at: usize| {
            let before = source.text.get(..at).unwrap_or_default().trim_end_matches(' ');
            before.ends_with('\n')
        };
        let found = subject.memo().of_source("secrets", 0, source, || secrets(&source.text));
        let is_public = |it: &Range<usize>| source.text.get(it.clone()).is_some_and(is_public_key);
        let found = found
            .iter()
            .filter(|(it, kind)| !is_public(it) && (*kind != "named value" || !below(it.start)));
        for (range, kind) in found {
            // Behind a colon, the kind would be masked as the value of a secret.
            let message = format!("possible secret ({kind})");
            out.add(span(source, range.start, range.len()), message, |it| {
                it.with_note("all readers of the pack and the history of the project can see it")
                    .with_help(
                        "remove and rotate it; let the program of a probe authenticate itself",
                    )
            });
        }
    }
}

/// Whether a text is a public key of minisign: 42 bytes in base64, which begin with `Ed`. A secret key is longer.
fn is_public_key(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'', ' ']);
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    text.len() == PUBLIC_KEY_CHARS && text.starts_with("RW") && text.chars().all(is_base64)
}

/// Where home folders lie.
const HOMES: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];

pub(crate) fn personal_path(subject: &Subject<'_>, out: &mut Findings) {
    // However they are written: `\/` is a slash, and so are characters by their number.
    let begins = ["/home", "/Users", "\\Users", "\\x", "\\u", "\\U"];
    let named = |text: &str| begins.iter().any(|it| text.contains(it));
    if !subject.pack.files.iter().any(|(_, source)| named(&source.text)) {
        return;
    }
    for leaf in &subject.leaves {
        let text = leaf.node.text().unwrap_or_default();
        let found = HOMES.iter().find_map(|home| {
            let at = text.find(home)?;
            let rest = text.get(at + home.len()..)?;
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || "-_.".contains(*c)).collect();
            (!name.is_empty()).then_some(at..at + home.len() + name.len())
        });
        if let Some(range) = found {
            let message = format!(
                "`{}` is a personal home directory",
                text.get(range.clone()).unwrap_or_default()
            );
            out.add(leaf.node.sub_span(range), message, |it| {
                it.with_note("it does not exist on other machines")
                    .with_help("write paths relative to the project, or a glob such as `**/name`")
            });
        }
    }
}
