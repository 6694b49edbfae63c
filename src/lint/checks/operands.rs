//! Checks of what expressions ask about the words of one program: operands, options, names that no program has.

use super::literals::are_alternatives;
use super::options::with_dashes;
use super::patterns::PatternFix;
use super::terms::{asked, compared, each_part_asking};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::ExprKind;
use policyd_fact_table::paths::Fact;
use policyd_yaml::node::Node;

/// Programs whose options have no dash: `dd of=x`, `make V=1`.
const WITHOUT_DASHES: [&str; 5] = ["dd", "make", "env", "sysctl", "defaults"];

pub(crate) fn invalid_operand(subject: &Subject<'_>, out: &mut Findings) {
    #[rustfmt::skip]
    let members = [
        "operands", "names", "value", "values", "name", "programs", "sets", "expands", "wrapped_by",
    ];
    each_part_asking(subject, &members, |site, term| {
        let asked = asked(term).and_then(|(fact, names)| Some((question(fact)?, names)));
        let asked = asked.into_iter();
        let of_lists = asked.flat_map(|(fact, names)| names.into_iter().map(move |it| (fact, it)));
        let of_lists: Vec<_> = of_lists.collect();
        // Both together match a file in any directory: `.env`, `**/.env`.
        let stands_beside = |rest: &str| of_lists.iter().any(|(_, (it, _))| *it == rest);
        let single = ["program.name", FIRST_OPERAND].into_iter();
        let named = single.flat_map(|fact| {
            compared(term, |it| it.is(fact)).into_iter().map(move |it| (fact, it))
        });
        let commands = subject.entry_of(site).and_then(|it| subject.said(it, "commands"));
        let commands = commands.map(Node::one_or_items).unwrap_or_default();
        for (fact, (text, range)) in of_lists.iter().copied().chain(named) {
            if fact == "program.names" && text.strip_prefix("**/").is_some_and(stands_beside) {
                continue;
            }
            if let Some((message, fix)) = oddity(fact, text, commands, subject, site) {
                let has = || {
                    let is_single = matches!(term.kind, ExprKind::In(..))
                        || term.last_name() == Some("contains");
                    let is_asked = is_single && !text.contains('=');
                    let written = format!("program.has([{text:?}])");
                    is_asked.then(|| site.write(&term.range, written))
                };
                let has = is_option(fact, text).then(has).flatten();
                out.help(site.span(range), message, has.unwrap_or_else(|| fix.at(site, range)));
            } else if OPERANDS.contains(&fact)
                && let Some(pattern) = own_word(text, commands)
            {
                out.add(
                    site.span(range),
                    format!("`{text}` is already part of the pattern `{pattern}`"),
                    |it| {
                        it.with_note("operands follow the words of the pattern")
                            .with_help("remove it here, or remove it from the pattern")
                    },
                );
            }
        }
    });
}

/// The first operand alone.
const FIRST_OPERAND: &str = "program.operands.first";
/// Facts about operands.
const OPERANDS: [&str; 3] = ["program.operands", "program.names", FIRST_OPERAND];

/// Lists and functions that are asked about the words of a program.
#[rustfmt::skip]
const QUESTIONS: [&str; 8] = [
    "program.operands", "program.names", "program.value", "program.values", "action.programs",
    "program.wrapped_by", "action.sets", "program.expands",
];

/// The question that a fact is.
fn question(fact: Fact<'_>) -> Option<&'static str> {
    QUESTIONS.into_iter().find(|it| fact.is(it))
}

/// The first of the patterns of a guard, where all of them have this word behind the program.
fn own_word<'s>(word: &str, commands: &'s [Node]) -> Option<&'s str> {
    let has = |it: &Node| it.text().is_some_and(|it| it.split(' ').skip(1).any(|it| it == word));
    let plain = !word.contains(['*', '?', '{']);
    commands.first().filter(|_| plain && commands.iter().all(has))?.text()
}

/// Whether a text that is searched for among operands is an option.
fn is_option(fact: &str, text: &str) -> bool {
    match fact {
        "program.operands" | FIRST_OPERAND => text.len() > 3 && text.starts_with("--"),
        "program.names" => text.starts_with('-') && text.len() > 1 && !text.contains('*'),
        _ => false,
    }
}

/// What is odd in a text that a fact about a program is asked for, and what to write.
fn oddity(
    fact: &str,
    text: &str,
    commands: &[Node],
    subject: &Subject<'_>,
    site: &Site<'_>,
) -> Option<(String, PatternFix)> {
    let known = subject.reviewed.meant.known_programs();
    let first = text.split([' ', '/']).find(|it| !it.is_empty()).unwrap_or_default();
    match fact {
        _ if is_option(fact, text) => {
            let message = format!("`{text}` is an option, not an operand");
            Some((message, PatternFix::advice("ask `program.has([…])`")))
        }
        "program.names" => odd_name(text),
        "program.value" | "program.values" => {
            let mut names = commands.iter().filter_map(|it| it.text()?.split(' ').next());
            let is_bare =
                |it: &str| WITHOUT_DASHES.contains(&it) || it.ends_with("make") || it.contains('*');
            if names.any(is_bare) {
                option_with_value(text)
            } else {
                odd_option(text, || with_dashes(text, subject, site))
            }
        }
        "program.name" | "action.programs"
            if text.contains('/') || (text.contains(' ') && known.contains_key(first)) =>
        {
            let help = "use a pattern under `commands`, or `action.runs(…)`";
            Some((format!("`{text}` is not the name of a program"), PatternFix::advice(help)))
        }
        "program.wrapped_by" if text.contains(['/', ' ', '*']) => {
            let name = text.rsplit('/').next().unwrap_or(text);
            let is_name = !name.is_empty() && !name.contains([' ', '*']);
            let fix = PatternFix::write_if(is_name, name, "write only the name: `sudo`");
            Some((format!("`{text}` is not the name of a program"), fix))
        }
        "action.sets" | "program.expands" if text.contains(['$', '=']) => {
            let name = text.trim_start_matches(['$', '{']).trim_end_matches(['}', '=']);
            let is_name = !name.is_empty() && !name.contains(['$', '{', ' ', '=']);
            let fix = PatternFix::write_if(is_name, name, "write only the name: `LD_PRELOAD`");
            Some((format!("`{text}` is not the name of a variable"), fix))
        }
        _ => None,
    }
}

/// What is odd in a text that is searched for among the operands of a program.
fn odd_name(text: &str) -> Option<(String, PatternFix)> {
    let advice = PatternFix::advice;
    let of_regex = || format!("`{text}` is a regular expression, but globs are expected");
    Some(if text.starts_with('(') && text.contains('|') {
        (of_regex(), advice("write each name as a separate item, or `{a,b}`"))
    } else if are_alternatives(text, "-_/.*") {
        let names = text.replace('|', ",");
        (format!("`{text}` is a single name"), PatternFix::Write(format!("{{{names}}}")))
    } else if (text.starts_with('^') && text.ends_with('$')) || text.contains("/.*") {
        (of_regex(), advice("write `*` for any characters, without anchors"))
    } else if text.starts_with("**/") {
        let help = "use `program.targets.any([…])`, which matches paths";
        (format!("`{text}` does not match a name without a directory"), advice(help))
    } else if text.trim() != text {
        let fix = PatternFix::Write(text.trim().to_owned());
        (format!("`{text}` never matches an operand"), fix)
    } else {
        return None;
    })
}

/// What is odd in the name of an option whose value is read.
fn odd_option(text: &str, fix: impl FnOnce() -> PatternFix) -> Option<(String, PatternFix)> {
    if !text.starts_with(['-', '+', '/']) {
        let message = format!("`{text}` is not an option: it does not start with a dash");
        return Some((message, fix()));
    }
    option_with_value(text)
}

/// What is odd in the name of an option that has dashes: its value.
fn option_with_value(text: &str) -> Option<(String, PatternFix)> {
    let has_value = text.contains(' ') || (text.starts_with("--") && text.contains('='));
    (text.starts_with('-') && has_value).then(|| {
        let help = "write only the option: `program.value(\"--env\") == \"prod\"`";
        let message = format!("`{text}` contains a value, but the name of an option is expected");
        (message, PatternFix::advice(help))
    })
}
