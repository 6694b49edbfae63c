//! Checks of regular expressions that mean something else than they look like.

use std::ops::Range;

use regex_syntax::ast::{
    AssertionKind, Ast, ClassSet, ClassSetItem, RepetitionKind, parse::Parser,
};

use super::patterns::regexes;
use crate::lint::{Findings, Subject};

pub(in crate::lint) fn deceptive_regex(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        // Most hold nothing of the kind.
        if !pattern.text.contains(['|', '*']) {
            continue;
        }
        let Ok(ast) = Parser::new().parse(pattern.text) else { continue };
        if let Some((range, message, help)) = deception(&ast, pattern.text) {
            out.help(pattern.part(range), message, help);
        }
    }
}

/// What looks like something else, and what to write.
type Deception = (Range<usize>, String, String);

fn deception(ast: &Ast, text: &str) -> Option<Deception> {
    if let Ast::Alternation(branches) = ast
        && let Some(found) = loose_anchor(&branches.asts, text)
    {
        return Some(found);
    }
    within(ast, text)
}

/// An anchor that binds the first of several branches alone: `^feat/|fix/`.
fn loose_anchor(branches: &[Ast], text: &str) -> Option<Deception> {
    let is_start =
        |it: &Ast| matches!(it, Ast::Assertion(it) if it.kind == AssertionKind::StartLine);
    let is_end = |it: &Ast| matches!(it, Ast::Assertion(it) if it.kind == AssertionKind::EndLine);
    let edges = |it: &Ast| {
        let all =
            if let Ast::Concat(all) = it { all.asts.as_slice() } else { std::slice::from_ref(it) };
        (all.first().is_some_and(is_start), all.last().is_some_and(is_end))
    };
    if !are_alike(branches, text) {
        return None;
    }
    let (first, rest) = branches.split_first()?;
    let (last, before) = branches.split_last()?;
    let bare = |all: &[Ast]| all.iter().all(|it| edges(it) == (false, false));
    let inner = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    if edges(first) == (true, false) && bare(rest) {
        let at = first.span().start.offset;
        let help = format!("write `^({})`", inner(at + 1, text.len()));
        return Some((at..at + 1, "`^` binds the first of these alone".to_owned(), help));
    }
    if edges(last) == (false, true) && bare(before) {
        let end = last.span().end.offset;
        let help = format!("write `({})$`", inner(0, end - 1));
        return Some((end - 1..end, "`$` binds the last of these alone".to_owned(), help));
    }
    None
}

/// Whether branches are words with the same sign at their ends: nobody means one of them in another place than the
/// others.
fn are_alike(branches: &[Ast], text: &str) -> bool {
    let written = |it: &Ast| text.get(it.span().start.offset..it.span().end.offset);
    let words = branches.iter().filter_map(written).map(|it| it.trim_matches(['^', '$']));
    let ends: Vec<(&str, &str)> =
        words.map(|it| it.split_at(it.trim_end_matches(['/', '-', ':', '_']).len())).collect();
    let is_word = |it: &str| !it.is_empty() && it.chars().all(char::is_alphanumeric);
    ends.iter().all(|(word, end)| {
        is_word(word) && ends.first().is_some_and(|it| it.1 == *end && !end.is_empty())
    })
}

/// The same anywhere below.
fn within(ast: &Ast, text: &str) -> Option<Deception> {
    match ast {
        Ast::ClassBracketed(class) => {
            let range = class.span.start.offset..class.span.end.offset;
            let ClassSet::Item(ClassSetItem::Union(union)) = &class.kind else { return None };
            let written = text.get(range.clone())?;
            let inside = written.trim_start_matches('[').trim_end_matches(']');
            let words: Vec<&str> = inside.split('|').collect();
            let is_word = |it: &&str| it.len() > 1 && it.chars().all(char::is_alphanumeric);
            (union.items.len() > 3 && words.len() > 1 && words.iter().all(is_word)).then(|| {
                let message = format!("`{written}` is one character");
                (range, message, format!("write `({inside})`"))
            })
        }
        Ast::Repetition(it) => {
            let slash = matches!(&*it.ast, Ast::Literal(it) if it.c == '/');
            let many = it.op.kind == RepetitionKind::ZeroOrMore;
            if slash && many && it.span.end.offset == text.len() && it.span.start.offset > 1 {
                let range = it.span.start.offset..it.span.end.offset;
                let message = "`/*` is any number of `/`, also none".to_owned();
                return Some((
                    range,
                    message,
                    "write `/` alone: it may go on behind it".to_owned(),
                ));
            }
            within(&it.ast, text)
        }
        Ast::Group(it) => within(&it.ast, text),
        Ast::Alternation(it) => it.asts.iter().find_map(|it| within(it, text)),
        Ast::Concat(it) => it.asts.iter().find_map(|it| within(it, text)),
        Ast::Empty(_)
        | Ast::Flags(_)
        | Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::Assertion(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_) => None,
    }
}
