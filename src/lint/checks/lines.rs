//! What the line of one program never holds: what stands between programs, and another program before it.

use super::odds::programs_of;
use super::probes::reads_its_words;
use super::terms::{constant, each_part_asking, last_argument, path};
use crate::facts::glob::word_matches;
use crate::lint::{Findings, Subject};
use crate::script::tree::Term;

/// What a shell reads between programs, longer signs before those they begin with.
const BETWEEN: [&str; 8] = ["&&", "||", "|", ";", ">>", "2>", ">", "<"];
/// The same as a regular expression says it.
const BETWEEN_IN_REGEXES: [&str; 3] = [r"\|", "&&", ";"];

/// The constant that the line of a program is asked for by this function.
fn asked_for<'t>(term: &'t Term, function: &str) -> Option<(&'t str, &'t std::ops::Range<usize>)> {
    let of_line = path(term).is_some_and(|it| it.starts_with("program.line."));
    last_argument(term, function).filter(|_| of_line).and_then(constant)
}

/// The sign of a shell that a text looks for: it stands at an end of it, apart from the rest.
fn sign_in(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let alone = |rest: &str| rest.is_empty() || rest.contains(' ');
    BETWEEN.into_iter().find(|sign| {
        text.strip_prefix(sign).is_some_and(|it| alone(it) || it.starts_with(['/', '&']))
            || text.strip_suffix(sign).is_some_and(alone)
    })
}

/// The same of a regular expression. A sign in brackets is one of several characters.
fn sign_in_regex(text: &str) -> Option<&'static str> {
    let signs = BETWEEN_IN_REGEXES.into_iter().filter(|_| !text.contains('['));
    signs
        .map(|it| (it, it.trim_start_matches('\\')))
        .find(|(it, _)| text.contains(it))
        .map(|it| it.1)
}

pub(in crate::lint) fn not_in_line(subject: &Subject<'_>, out: &mut Findings) {
    between_programs(subject, out);
    begins_otherwise(subject, out);
}

fn between_programs(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["line"], |site, term| {
        let entry = subject.entry_of(site);
        let Some(programs) = entry.and_then(|it| programs_of(subject, it)) else { return };
        // These are given texts of such signs.
        if programs.iter().any(|it| it.contains('*') || reads_its_words(it)) {
            return;
        }
        let texts = ["contains", "starts_with", "ends_with"];
        let text = texts.iter().find_map(|it| asked_for(term, it));
        let text = text.and_then(|(text, range)| Some((sign_in(text)?, range)));
        let regex = || asked_for(term, "matches");
        let regex = || regex().and_then(|(text, range)| Some((sign_in_regex(text)?, range)));
        let Some((sign, range)) = text.or_else(regex) else { return };
        let message = format!("`{sign}` never stands in `program.line`: that is one program");
        out.add(site.span(range), message, |it| {
            it.with_note("each program of a command line is looked at by itself").with_help(match sign {
                "|" => "ask `program.fed_by([…])` for what it reads from; the whole line is `action.command`",
                "<" => "ask `program.fed_from([…])` for what it reads from; the whole line is `action.command`",
                "2>" | ">>" | ">" => "ask `program.changed` for what it writes into; the whole line is `action.command`",
                _ => "the whole line is `action.command`, and what else it runs `action.runs(…)`",
            })
        });
    });
}

/// Asked for by how the line of a program begins: another program than those that the guard is for.
fn begins_otherwise(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["line"], |site, term| {
        let Some((text, range)) = asked_for(term, "starts_with") else { return };
        let Some(entry) = subject.entry_of(site) else { return };
        let Some(programs) = programs_of(subject, entry) else { return };
        let fits = |glob: &&str| match text.split_once(' ') {
            Some((program, _)) => word_matches(glob, program),
            None => glob.contains('*') || glob.starts_with(text),
        };
        if text.is_empty()
            || text.contains('/')
            || sign_in(text).is_some()
            || programs.iter().any(fits)
        {
            return;
        }
        let message = format!("no program of `{}` begins with `{text}`", entry.name());
        out.add(site.span(range), message, |it| {
            it.with_note(format!(
                "the line of a program begins with its name: {}",
                programs.join(", ")
            ))
            .with_help(format!(
                "where `{}` starts it, ask `program.wrapped_by([{0:?}])`",
                text.split(' ').next().unwrap_or(text)
            ))
        });
    });
}
