//! Checks of texts in expressions: what they are compared with, looked for in and asked for.

use std::ops::Range;

use super::terms::{
    Constant, asked, asked_with, compared, constant, each_part, each_part_asking, last_argument,
};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::paths::{self, Fact};
use policyd_fact_table::types::{TextMatch, Type};
use policyd_yaml::Suggestion;

/// Facts with text from outside of the pack.
const FOREIGN: [&str; 6] = ["event", "transcript", "commands", "session.branch", "files", "probes"];

pub(crate) fn pattern_from_text(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Some(argument) = last_argument(term, "matches") else { return };
        argument.visit(&mut |part| {
            let is_foreign = |it: Fact<'_>| FOREIGN.iter().any(|names| it.begins_with(names));
            if part.fact().is_some_and(is_foreign) {
                out.add(
                    site.span(&part.range),
                    "a value from outside becomes part of a pattern",
                    |it| {
                        it.with_note("a dot or bracket in the value changes the pattern")
                            .with_help("use `contains`, `starts_with` or `==`")
                    },
                );
            }
        });
    });
}

/// Lists of nothing, and patterns of no program.
fn of_nothing(subject: &Subject<'_>, out: &mut Findings) {
    let empty = |it: &&Site<'_>| it.text.contains("[]") || it.text.contains("\"\"");
    for site in subject.sites.iter().filter(empty).filter(|it| !subject.has_error(it)) {
        site.visit(|term| {
            let Some(fact) = term.fact() else { return };
            let Some([argument]) = fact.last().map(|it| it.arguments) else { return };
            let nothing = argument.kind == ExprKind::List(Vec::new())
                || (fact.is("action.runs") && constant(argument).is_some_and(|it| it.0.is_empty()));
            let asks = paths::member(fact).is_some_and(|it| {
                it.asks_for_any() || matches!(it.compares(), Some((TextMatch::Command, false)))
            });
            if nothing && asks && !matches!(fact.last().map(|it| it.name), Some("any_in")) {
                let name = fact.names().collect::<Vec<_>>().join(".");
                let message = format!("`{name}` has an empty argument, so it is never true");
                out.help(site.span(&argument.range), message, "write the text to search for");
            }
        });
    }
}

pub(crate) fn empty_argument(subject: &Subject<'_>, out: &mut Findings) {
    of_nothing(subject, out);
    let names = ["contains", "starts_with", "ends_with", "matches"];
    each_part_asking(subject, &names, |site, term| {
        for name in names {
            let Some((owner, (text, range))) = asked_with(term, name) else { continue };
            // A list may well contain an empty text.
            if text.is_empty() && owner.result(site.names(subject.names())) == Some(Type::Text) {
                let message = format!("`{name}(\"\")` is true for every text");
                out.help(site.span(range), message, "write the text to search for");
            }
        }
    });
}

/// The beginning of an address or a path with a slash at its end.
fn ended(site: &Site<'_>, text: &str, range: &Range<usize>) -> Suggestion {
    site.write_text(range, &format!("{text}/"))
}

/// Reports an address that is compared without its scheme, or allowed by a part of its host.
fn address_by_prefix(
    site: &Site<'_>,
    text: &str,
    range: &Range<usize>,
    lets_through: bool,
    out: &mut Findings,
) {
    match text.split_once("://") {
        None if text.contains('.') && !text.contains(':') && !text.starts_with("www.") => {
            let message = format!("addresses start with a scheme, not with `{text}`");
            out.help(site.span(range), message, site.write_text(range, &format!("https://{text}")));
        }
        Some((_, host))
            if lets_through
                && host.contains('.')
                && !host.contains(['/', ':'])
                && host.ends_with(|c: char| c.is_alphabetic()) =>
        {
            let message = format!("`{text}` also matches addresses of other hosts");
            out.add(site.span(range), message, |it| {
                it.with_note(format!("such as `{text}.example.net`"))
                    .suggest(ended(site, text, range))
            });
        }
        None | Some(_) => {}
    }
}

pub(crate) fn path_by_prefix(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["starts_with"], |site, term| {
        let Some((owner, (text, range))) = asked_with(term, "starts_with") else { return };
        if owner.begins_with("action.address") {
            let allows =
                subject.entry_of(site).is_some_and(|it| it.text("decision") == Some("allow"));
            // A negated condition allows the other addresses.
            let before = site.text.get(..term.range.start).unwrap_or_default();
            let negated = before.trim_end().ends_with('!');
            let lets_through = (allows || site.key == "unless") != negated;
            return address_by_prefix(site, text, range, lets_through, out);
        }
        let is_path = |it: &Expr| constant(it).is_some_and(|it| it.0.ends_with("path"));
        let of_path = owner.steps().any(|it| {
            it.name.ends_with("_path")
                || it.name.ends_with("paths")
                || it.arguments.iter().any(is_path)
        });
        // Such an ending is the beginning of a name.
        let begins_a_name = text.ends_with(|c: char| c.is_ascii_digit() || "-_.".contains(c));
        if of_path && text.contains('/') && !text.ends_with('/') && !begins_a_name {
            let message = format!("`{text}` also matches other directories and files");
            out.add(site.span(range), message, |it| {
                it.with_note(format!("such as `{text}-old`"))
                    .suggest(ended(site, text, range).because(", or compare with `==`"))
            });
        }
    });
}

/// A part that compares the path of an edited file: the constants it is compared with.
fn compared_paths(term: &Expr) -> Vec<Constant<'_>> {
    if let ExprKind::In(item, list) = &term.kind
        && list.last_name() == Some("paths")
    {
        return constant(item).into_iter().collect();
    }
    let is_last = |it: Fact<'_>, name: &str| it.last().is_some_and(|it| it.name == name);
    let found = compared(term, |it| is_last(it, "last_path"));
    let called = |name: &str, owner: &str| {
        asked_with(term, name).filter(|it| is_last(it.0, owner)).map(|it| it.1)
    };
    let begins = called("starts_with", "last_path");
    found.into_iter().chain(begins.or_else(|| called("contains", "paths"))).collect()
}

pub(crate) fn relative_path(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["last_path", "paths"], |site, term| {
        for (text, range) in compared_paths(term) {
            let drive = text.get(1..2) == Some(":");
            if !text.is_empty() && !text.starts_with(['/', '~', '\\']) && !drive {
                let message = format!("`{text}` is not an absolute path");
                let folder = text.trim_end_matches('/');
                let begins = term.last_name() == Some("starts_with");
                let glob = if begins { format!("{folder}/**") } else { text.to_owned() };
                out.add(site.span(range), message, |it| {
                    it.with_note("clients report absolute paths, so this is almost never true")
                        .with_help(format!("write `files.matching({glob:?}).count > 0`"))
                });
            }
        }
    });
}

pub(crate) fn impossible_letter_case(subject: &Subject<'_>, out: &mut Findings) {
    let is_lower = |it: &Expr| it.fact().is_some() && it.last_name() == Some("lower");
    each_part_asking(subject, &["text"], |site, term| {
        let of_answer = |it: Fact<'_>| {
            it.begins_with("probes") && it.steps().any(|it| it.is_call && it.name == "text")
        };
        let told = compared(term, of_answer).into_iter();
        for (text, range) in told.filter(|(it, _)| matches!(*it, "True" | "False")) {
            out.add(site.span(range), format!("`{text}` has an uppercase letter"), |it| {
                it.with_note("JSON writes `true` and `false`")
                    .with_help("use `.flag(…)` instead of `.text(…)`")
            });
        }
    });
    each_part_asking(subject, &["lower"], |site, term| {
        let mut found = Vec::new();
        if let ExprKind::Compare(_, one, other) = &term.kind {
            found.extend(constant(other).filter(|_| is_lower(one)));
            found.extend(constant(one).filter(|_| is_lower(other)));
        }
        for name in ["contains", "starts_with", "ends_with"] {
            let is_lower = |it: Fact<'_>| it.last().is_some_and(|it| it.name == "lower");
            let lowered = asked_with(term, name).filter(|it| is_lower(it.0));
            found.extend(lowered.map(|it| it.1));
        }
        for (text, range) in found {
            let small = text.to_lowercase();
            if small != text {
                out.add(site.span(range), format!("`{text}` has uppercase letters"), |it| {
                    it.with_note("a lowercase text never has them")
                        .suggest(site.write_text(range, &small))
                });
            }
        }
    });
}

/// A list whose texts are made of more than one thing: whether a text may be one of it, and how they are written.
type Made = (&'static str, fn(&str) -> bool, &'static str);

const MADE: &[Made] = &[
    ("todos.open_list", |it| it.starts_with('['), "[status] text"),
    ("commands.recent", |it| it.ends_with(')'), "command (outcome)"),
    ("outcome.failed_details", |it| it.contains(": "), "id: problem"),
];

pub(crate) fn partial_list_match(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["open_list", "recent", "failed_details"], |site, term| {
        let Some((list, texts)) = asked(term) else { return };
        let Some((list, may_be, form)) = MADE.iter().find(|it| list.is(it.0)) else { return };
        for (text, range) in texts.into_iter().filter(|(it, _)| !may_be(it)) {
            let message = format!("no item of `{list}` equals `{text}`");
            out.add(site.span(range), message, |it| {
                let written = format!("{list}.join(\"; \").contains({text:?})");
                let is_single =
                    matches!(term.kind, ExprKind::In(..)) || term.last_name() == Some("contains");
                let fix = match is_single {
                    true => site.write(&term.range, written).because(" to search within the items"),
                    false => format!("search within the items: `{written}`").into(),
                };
                it.with_note(format!("each item has the form `{form}` and is compared as a whole"))
                    .suggest(fix)
            });
        }
    });
}

pub(crate) fn in_text(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::In(item, list) = &term.kind else { return };
        if let (Some(_), Some((text, range))) = (item.fact(), constant(list)) {
            let fact = site.part(&item.range);
            out.add(
                site.span(range),
                format!("this tests whether `{fact}` is a substring"),
                |it| {
                    it.with_note(format!(
                        "it is true for each part of `{text}` and for the empty string"
                    ))
                    .suggest(site.write(range, format!("[{text:?}]")))
                },
            );
        }
    });
}
