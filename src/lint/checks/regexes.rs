//! Checks of regular expressions that mean something else than they look like.

use std::ops::Range;

use regex_syntax::ast::{
    AssertionKind, Ast, ClassSet, ClassSetItem, RepetitionKind, parse::Parser,
};

use super::patterns::{PatternFix, regexes};
use crate::{Findings, Subject};

pub(crate) fn deceptive_regex(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        // Most hold nothing of the kind.
        if !pattern.text.contains(['|', '*', '$', '/']) {
            continue;
        }
        if let Some((message, inside)) = of_javascript(pattern.text) {
            out.help(pattern.span(), message, pattern.write(inside));
            continue;
        }
        let of_branch = pattern.is_argument_of("session.branch.matches");
        let find = || deception(&Parser::new().parse(pattern.text).ok()?, pattern.text, of_branch);
        let found = subject.memo().of_text("deception", of_branch.into(), pattern.text, find);
        if let Some((range, message, fix)) = found.as_ref().clone() {
            out.help(pattern.part(range), message, pattern.fix(fix));
        }
    }
}

/// What looks like something else, and what to write.
type Deception = (Range<usize>, String, PatternFix);

/// Whether a pattern tells all of a line that it matches: each of its branches from the beginning to the end,
/// without a part that matches any characters.
pub(super) fn tells_all(text: &str) -> bool {
    let Ok(ast) = Parser::new().parse(text) else { return false };
    let branches = if let Ast::Alternation(it) = &ast {
        it.asts.as_slice()
    } else {
        std::slice::from_ref(&ast)
    };
    branches.iter().all(is_whole) && !stands_for_any(&ast, text)
}

/// Whether a branch begins where the text does, and ends with it.
fn is_whole(branch: &Ast) -> bool {
    use AssertionKind::{EndLine, EndText, StartLine, StartText};
    let Ast::Concat(all) = branch else { return false };
    let edge = |it: Option<&Ast>, kinds: [&AssertionKind; 2]| matches!(it, Some(Ast::Assertion(it)) if kinds.contains(&&it.kind));
    let first = all.asts.iter().find(|it| !matches!(it, Ast::Flags(_)));
    edge(first, [&StartLine, &StartText]) && edge(all.asts.last(), [&EndLine, &EndText])
}

/// Whether a part is repeated that takes the signs of a shell.
fn stands_for_any(ast: &Ast, text: &str) -> bool {
    let is_any = |it: &Ast| {
        if let Ast::ClassBracketed(class) = it {
            let written = text.get(class.span.start.offset..class.span.end.offset);
            let lacks = |c: char| !written.is_some_and(|it| it.contains(c));
            return class.negated && [';', '&', '|'].into_iter().any(lacks);
        }
        matches!(it, Ast::Dot(_)) || matches!(it, Ast::ClassPerl(it) if it.negated)
    };
    matches!(ast, Ast::Repetition(it) if is_any(&it.ast))
        || parts(ast).iter().any(|it| stands_for_any(it, text))
}

/// What an expression is made of.
fn parts(ast: &Ast) -> &[Ast] {
    match ast {
        Ast::Repetition(it) => std::slice::from_ref(&it.ast),
        Ast::Group(it) => std::slice::from_ref(&it.ast),
        Ast::Alternation(it) => &it.asts,
        Ast::Concat(it) => &it.asts,
        Ast::Empty(_)
        | Ast::Flags(_)
        | Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::Assertion(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_)
        | Ast::ClassBracketed(_) => &[],
    }
}

/// A pattern between slashes, with what other languages write behind it (`/drop table/i`): the problem, and the pattern
/// that is meant.
fn of_javascript(text: &str) -> Option<(String, &str)> {
    let (inside, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    if flags.is_empty() && (inside.starts_with('^') || inside.ends_with('$')) {
        let message = "the slashes are matched literally".to_owned();
        return Some((message, inside));
    }
    let is_flags =
        !flags.is_empty() && flags.len() <= 3 && flags.chars().all(|c| "gimsuy".contains(c));
    // `/proc/sys` is a path.
    let usual = ["gi", "ig", "gim", "gmi", "im", "mi"].contains(&flags);
    let is_path = !usual && !inside.contains(' ');
    (is_flags && !is_path && !inside.is_empty() && !inside.contains('/')).then(|| {
        let message = format!("the slashes and `{flags}` are matched literally");
        (message, inside)
    })
}

fn deception(ast: &Ast, text: &str, of_branch: bool) -> Option<Deception> {
    if let Ast::Alternation(branches) = ast
        && let Some(found) = loose_anchor(&branches.asts, text, of_branch)
    {
        return Some(found);
    }
    within(ast, text)
}

/// An end of the text before a name: `$HOME` is found nowhere.
fn end_before_name(all: &[Ast], text: &str) -> Option<Deception> {
    let is_end = |it: &Ast| matches!(it, Ast::Assertion(it) if it.kind == AssertionKind::EndLine);
    let is_letter =
        |it: &Ast| matches!(it, Ast::Literal(it) if it.c.is_alphanumeric() || it.c == '_');
    let at = all
        .windows(2)
        .position(|it| matches!(it, [one, next] if is_end(one) && is_letter(next)))?;
    let at = all.get(at)?.span().start.offset;
    let message = "`$` is the end of the text, but text follows it".to_owned();
    (!text.contains("(?"))
        .then(|| (at..at + 1, message, PatternFix::advice("write `\\$` for a literal `$`")))
}

/// An anchor that binds the first of several branches alone: `^feat/|fix/`.
fn loose_anchor(branches: &[Ast], text: &str, of_branch: bool) -> Option<Deception> {
    let is_start =
        |it: &Ast| matches!(it, Ast::Assertion(it) if it.kind == AssertionKind::StartLine);
    let is_end = |it: &Ast| matches!(it, Ast::Assertion(it) if it.kind == AssertionKind::EndLine);
    let edges = |it: &Ast| {
        let all =
            if let Ast::Concat(all) = it { all.asts.as_slice() } else { std::slice::from_ref(it) };
        (all.first().is_some_and(is_start), all.last().is_some_and(is_end))
    };
    if !are_alike(branches, text, of_branch) {
        return None;
    }
    let (first, rest) = branches.split_first()?;
    let (last, before) = branches.split_last()?;
    let bare = |all: &[Ast]| all.iter().all(|it| edges(it) == (false, false));
    let inner = text.trim_start_matches('^').trim_end_matches('$');
    let start = first.span().start.offset;
    let end = last.span().end.offset;
    if of_branch && edges(first) == (true, false) && edges(last) == (false, true) {
        let middle = rest.split_last().is_none_or(|(_, it)| bare(it));
        let message = "`^` applies only to the first alternative, `$` only to the last".to_owned();
        let fix = PatternFix::Write(format!("^({inner})$"));
        return middle.then(|| (start..start + 1, message, fix));
    }
    if edges(first) == (true, false) && bare(rest) {
        let message = "`^` applies only to the first alternative".to_owned();
        return Some((start..start + 1, message, PatternFix::Write(format!("^({inner})"))));
    }
    if edges(last) == (false, true) && bare(before) {
        let message = "`$` applies only to the last alternative".to_owned();
        return Some((end - 1..end, message, PatternFix::Write(format!("({inner})$"))));
    }
    None
}

/// Whether branches are words with the same sign at their ends: they are meant for one place. Names of branches need no such sign.
fn are_alike(branches: &[Ast], text: &str, of_branch: bool) -> bool {
    let written = |it: &Ast| text.get(it.span().start.offset..it.span().end.offset);
    let words = branches.iter().filter_map(written).map(|it| it.trim_matches(['^', '$']));
    let ends: Vec<(&str, &str)> =
        words.map(|it| it.split_at(it.trim_end_matches(['/', '-', ':', '_']).len())).collect();
    let is_word = |it: &str| !it.is_empty() && it.chars().all(char::is_alphanumeric);
    ends.iter().all(|(word, end)| {
        is_word(word)
            && ends.first().is_some_and(|it| it.1 == *end && (of_branch || !end.is_empty()))
    })
}

/// The same anywhere below.
fn within(ast: &Ast, text: &str) -> Option<Deception> {
    if let Ast::ClassBracketed(class) = ast {
        let range = class.span.start.offset..class.span.end.offset;
        let ClassSet::Item(ClassSetItem::Union(union)) = &class.kind else { return None };
        let written = text.get(range.clone())?;
        let inside = written.trim_start_matches('[').trim_end_matches(']');
        let words: Vec<&str> = inside.split('|').collect();
        let is_word = |it: &&str| it.len() > 1 && it.chars().all(char::is_alphanumeric);
        return (union.items.len() > 3 && words.len() > 1 && words.iter().all(is_word)).then(
            || {
                let message = format!("`{written}` matches a single character");
                let before = text.get(..range.start).unwrap_or_default();
                let after = text.get(range.end..).unwrap_or_default();
                (range, message, PatternFix::Write(format!("{before}({inside}){after}")))
            },
        );
    }
    if let Ast::Repetition(it) = ast {
        let slash = matches!(&*it.ast, Ast::Literal(it) if it.c == '/');
        let many = it.op.kind == RepetitionKind::ZeroOrMore;
        if slash && many && it.span.end.offset == text.len() && it.span.start.offset > 1 {
            let range = it.span.start.offset..it.span.end.offset;
            let message = "`/*` matches any number of `/`, including none".to_owned();
            let before = text.get(..it.span.start.offset).unwrap_or_default();
            return Some((range, message, PatternFix::Write(format!("{before}/"))));
        }
    }
    if let Ast::Concat(it) = ast
        && let Some(found) = end_before_name(&it.asts, text)
    {
        return Some(found);
    }
    parts(ast).iter().find_map(|it| within(it, text))
}
