//! Checks of what expressions ask about the words of one program: operands, options, names that no program has.

use super::literals::are_alternatives;
use super::patterns::PatternFix;
use super::terms::{asked, compared, each_part_asking};
use crate::{Findings, Subject};
use policyd_fact_table::ast::ExprKind;
use policyd_fact_table::paths::Fact;
use policyd_policy::review::Programs;
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
        let known = subject.reviewed.meant.known_programs();
        for (fact, (text, range)) in of_lists.iter().copied().chain(named) {
            if fact == "program.names" && text.strip_prefix("**/").is_some_and(stands_beside) {
                continue;
            }
            if let Some((message, fix)) = oddity(fact, text, commands, known) {
                let has = || {
                    let is_asked = matches!(term.kind, ExprKind::In(..)) && !text.contains('=');
                    let written = format!("program.has([{text:?}])");
                    is_asked.then(|| site.write(&term.range, written))
                };
                let fix = match fix {
                    PatternFix::Advice(help) if help == ASK_HAS => has().unwrap_or(help.into()),
                    fix => fix.at(site, range),
                };
                out.help(site.span(range), message, fix);
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

/// The fix of an option among operands.
const ASK_HAS: &str = "ask `program.has([…])`";

/// What is odd in a text that a fact about a program is asked for, and what to write.
fn oddity(
    fact: &str,
    text: &str,
    commands: &[Node],
    known: &Programs,
) -> Option<(String, PatternFix)> {
    let mut names = commands.iter().filter_map(|it| it.text()?.split(' ').next());
    let without_dashes =
        names.any(|it| WITHOUT_DASHES.contains(&it) || it.ends_with("make") || it.contains('*'));
    let anchored = text.starts_with('^') && text.ends_with('$');
    let first = text.split([' ', '/']).find(|it| !it.is_empty()).unwrap_or_default();
    let advice = PatternFix::advice;
    let write = |text: &str| PatternFix::Write(text.to_owned());
    Some(match fact {
        "program.operands" | FIRST_OPERAND if text.len() > 3 && text.starts_with("--") => {
            (format!("`{text}` is an option, not an operand"), advice(ASK_HAS))
        }
        "program.names" if text.starts_with('-') && text.len() > 1 && !text.contains('*') => {
            (format!("`{text}` is an option, not an operand"), advice(ASK_HAS))
        }
        "program.names" if text.starts_with('(') && text.contains('|') => (
            format!("`{text}` is a regular expression, but globs are expected"),
            advice("write each name as a separate item, or `{a,b}`"),
        ),
        "program.value" | "program.values"
            if !text.starts_with(['-', '+', '/']) && !without_dashes =>
        {
            let dashes = if text.len() == 1 { "-" } else { "--" };
            let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let other = || advice("write the option with its dashes: `--repo`");
            (
                format!("`{text}` is not an option: it does not start with a dash"),
                if is_name { write(&format!("{dashes}{text}")) } else { other() },
            )
        }
        "program.value" | "program.values"
            if text.starts_with('-')
                && (text.contains(' ') || (text.starts_with("--") && text.contains('='))) =>
        {
            (
                format!("`{text}` contains a value, but the name of an option is expected"),
                advice("write only the option: `program.value(\"--env\") == \"prod\"`"),
            )
        }
        "program.names" if are_alternatives(text, "-_/.*") => {
            let names = text.replace('|', ",");
            (format!("`{text}` is a single name"), write(&format!("{{{names}}}")))
        }
        "program.names" if anchored || text.contains("/.*") => (
            format!("`{text}` is a regular expression, but globs are expected"),
            advice("write `*` for any characters, without anchors"),
        ),
        "program.names" if text.starts_with("**/") => (
            format!("`{text}` does not match a name without a directory"),
            advice("use `program.targets.any([…])`, which matches paths"),
        ),
        "program.names" if text.trim() != text => {
            (format!("`{text}` never matches an operand"), write(text.trim()))
        }
        "program.name" | "action.programs"
            if text.contains('/') || (text.contains(' ') && known.contains_key(first)) =>
        {
            (
                format!("`{text}` is not the name of a program"),
                advice("use a pattern under `commands`, or `action.runs(…)`"),
            )
        }
        "program.wrapped_by" if text.contains(['/', ' ', '*']) => {
            let name = text.rsplit('/').next().unwrap_or(text);
            let is_name = !name.is_empty() && !name.contains([' ', '*']);
            let other = || advice("write only the name: `sudo`");
            (
                format!("`{text}` is not the name of a program"),
                if is_name { write(name) } else { other() },
            )
        }
        "action.sets" | "program.expands" if text.contains(['$', '=']) => {
            let name = text.split('=').next().unwrap_or(text);
            let name = name.trim_start_matches(['$', '{']).trim_end_matches('}');
            let is_name = !name.is_empty() && !name.contains(['$', '{', ' ']);
            let other = || advice("write only the name: `LD_PRELOAD`");
            (
                format!("`{text}` is not the name of a variable"),
                if is_name { write(name) } else { other() },
            )
        }
        _ => return None,
    })
}
