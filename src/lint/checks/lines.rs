//! Checks of command lines as texts: what the line of one program never holds, and what a line need not begin with.

use super::literals::are_alternatives;
use super::odds::{programs_of, tools_of};
use super::probes::{SHELLS, reads_its_words};
use super::terms::{Constant, asked_with, compared, each_part_asking, each_wanted, is_input};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::Expr;
use policyd_fact_table::paths::Fact;
use policyd_facts::glob::word_matches;
use policyd_policy::guards::FILES;
use policyd_yaml::node::Node;

/// What a shell reads between programs, longer signs before those they begin with.
const BETWEEN: [&str; 7] = ["&&", "||", "|", ";", ">>", ">", "<"];

/// How a regular expression writes them; its own `|` stands between what may be there.
const OF_REGEXES: [&str; 5] = ["\\|", "[|]", "&&", ";", ">"];

/// The constant that the line of a program is asked for by this function.
fn asked_for<'t>(term: &'t Expr, function: &str) -> Option<Constant<'t>> {
    let (owner, argument) = asked_with(term, function)?;
    owner.begins_with("program.line").then_some(argument)
}

/// The sign of a shell that a text looks for, and what it looks for behind it: a program, a file, or nothing. Any
/// text can be in an argument; a known program after such a sign is a program.
fn sign_in<'t>(
    text: &'t str,
    is_program: &dyn Fn(&str) -> bool,
) -> Option<(&'static str, &'t str)> {
    let at = text.find(['&', '|', ';', '>', '<'])?;
    let from = text.get(at..)?;
    let sign = BETWEEN.into_iter().find(|it| from.starts_with(it))?;
    let rest = from.get(sign.len()..)?.trim();
    let word = rest.split(' ').next().unwrap_or(rest);
    let fits = match sign {
        "&&" | "||" if rest.is_empty() => text.trim() == sign,
        ">" | ">>" | "<" => word.starts_with('/') && !word.starts_with("/>"),
        _ => is_program(word),
    };
    fits.then_some((sign, rest))
}

/// Returns the text that a regular expression mostly matches: `curl.*\|\s*(ba)?sh` is `curl | bash`.
fn plain(regex: &str) -> String {
    let mut text = regex.replace("[|]", "|").replace("\\|", "|");
    for blank in [".*", ".+", "\\s*", "\\s+", " *", " +"] {
        text = text.replace(blank, " ");
    }
    text.retain(|c| !"()?^$\\".contains(c));
    text
}

pub(crate) fn not_in_line(subject: &Subject<'_>, out: &mut Findings) {
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
        let known = subject.reviewed.meant.known_programs();
        let is_program = |it: &str| SHELLS.contains(&it) || known.contains_key(it);
        let text = ["contains", "starts_with"].iter().find_map(|it| asked_for(term, it));
        let text = text.map(|(text, range)| (text.to_owned(), range));
        let of_regex = || {
            let (regex, range) = asked_for(term, "matches")?;
            OF_REGEXES.iter().any(|sign| regex.contains(sign)).then(|| (plain(regex), range))
        };
        let Some((text, range)) = text.or_else(of_regex) else { return };
        let Some((sign, rest)) = sign_in(&text, &is_program) else { return };
        if are_alternatives(&text, "_") {
            out.add(site.span(range), format!("`{text}` is matched literally"), |it| {
                let written = format!("program.line.matches({text:?})");
                it.with_note("`|` separates alternatives only in regular expressions")
                    .suggest(site.write(&term.range, written))
            });
            return;
        }
        let message =
            format!("`program.line` never contains `{}`", format!("{sign} {rest}").trim());
        out.add(site.span(range), message, |it| {
            it.with_note("each program of a command line is evaluated separately").with_help(match sign {
                "|" => "use `program.fed_by([…])` for its input, or `action.command` for the whole line",
                "<" => "use `program.fed_from([…])` for its input, or `action.command` for the whole line",
                ">>" | ">" => "use `program.changed` for its output, or `action.command` for the whole line",
                _ => "use `action.runs(…)` for other programs, or `action.command` for the whole line",
            })
        });
    });
}

/// Asked for by how the line of a program begins: another program than those that the guard is for.
fn begins_otherwise(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["line"], |site, term| {
        let begins = asked_for(term, "starts_with");
        let starter = || {
            let (text, range) = asked_for(term, "contains")?;
            let (first, _) = text.split_once(' ')?;
            subject.reviewed.meant.wrappers().any(|it| it == first).then_some((text, range))
        };
        let Some((text, range)) = begins.or_else(starter) else { return };
        let Some(entry) = subject.entry_of(site) else { return };
        let Some(programs) = programs_of(subject, entry) else { return };
        let fits = |glob: &&str| match text.split_once(' ') {
            Some((program, _)) => word_matches(glob, program),
            None => glob.contains(['*', '?', '{', '[']) || glob.starts_with(text),
        };
        let of_shell = text.contains(['|', '&', ';', '>', '<']);
        if text.is_empty() || of_shell || programs.iter().any(fits) {
            return;
        }
        let first = text.split(' ').next().unwrap_or(text);
        let patterns = subject.said(entry, "commands").map(Node::one_or_items).unwrap_or_default();
        let mut whole = patterns.iter().filter_map(Node::text);
        let help =
            if let Some(pattern) = whole.find(|it| it.split(' ').skip(1).any(|it| it == first)) {
                format!("start with the program: `{pattern}`")
            } else if first.contains('/') {
                "programs are matched by name, without their directory".to_owned()
            } else {
                format!("if `{first}` starts it, use `program.wrapped_by([{first:?}])`")
            };
        let message = format!("no program line of `{}` starts with `{text}`", entry.name());
        out.add(site.span(range), message, |it| {
            it.with_note(format!(
                "the line of a program starts with its name: {}",
                programs.join(", ")
            ))
            .with_help(help)
        });
    });
}

/// Whether a fact is the text of a command line.
fn is_line(fact: Fact<'_>) -> bool {
    fact.is("action.command") || is_input(fact, "command")
}

pub(crate) fn program_by_text(subject: &Subject<'_>, out: &mut Findings) {
    let asking =
        subject.sites.iter().filter(|it| it.key == "when" && it.may_ask(&["command", "input"]));
    for site in asking.filter(|it| !subject.has_error(it)) {
        let Some(entry) = subject.entry_of(site).filter(|it| FILES.contains(&it.file)) else {
            continue;
        };
        // What an allow holds for is another finding, and other tools than shells have commands of their own.
        let refuses = entry.text("decision").is_some_and(|it| it != "allow");
        let is_shell =
            |glob: &&str| subject.reviewed.meant.shell_tools().any(|it| word_matches(glob, it));
        let of_shells = tools_of(subject, entry).is_none_or(|it| it.iter().any(is_shell));
        if let Some(term) = site.term.as_deref().filter(|_| refuses && of_shells) {
            each_wanted(term, &mut |term| look_by_text(subject, site, term, out));
        }
    }
}

/// Reports a guard without `commands` that searches a command line for a program with its option or subcommand.
fn mentions_program(subject: &Subject<'_>, site: &Site<'_>, term: &Expr, out: &mut Findings) {
    let called = |function: &str| asked_with(term, function).filter(|it| is_line(it.0));
    let is_plain = |it: &str| !it.contains(['|', ';', '[', '{']) && !it.contains("&&");
    let found = called("contains").or_else(|| called("matches")).map(|it| it.1);
    let Some((written, range)) = found.filter(|(it, _)| is_plain(it)) else { return };
    let text = plain(&written.replace("\\b", ""));
    let mut words = text.split_whitespace();
    let (Some(program), Some(next)) = (words.next(), words.next()) else { return };
    let known = subject.reviewed.meant.known_programs();
    let Some(subcommands) = known.get(program) else { return };
    let filtered = subject.entry_of(site).is_none_or(|it| programs_of(subject, it).is_some());
    if filtered || !(next.starts_with('-') || subcommands.contains(next)) {
        return;
    }
    let is_option = next.starts_with('-');
    let pattern = if is_option { program.to_owned() } else { format!("{program} {next}") };
    let message = format!("the text of a command line does not show whether it runs `{pattern}`");
    out.add(site.span(range), message, |it| {
        let help = if is_option || words.next().is_some() {
            format!("write `commands: [{pattern}]`, and check the rest with `program`")
        } else {
            format!("write `commands: [{pattern}]`")
        };
        it.with_note(format!("other spellings do not match, and `echo '{text}'` does"))
            .with_help(help)
    });
}

fn look_by_text(subject: &Subject<'_>, site: &Site<'_>, term: &Expr, out: &mut Findings) {
    let called =
        |function: &str| asked_with(term, function).filter(|it| is_line(it.0)).map(|it| it.1);
    let equal = || compared(term, is_line).into_iter().next();
    // A regex may name the other ways in which a line begins.
    let names_others = |it: &str| it.contains(['|', ';']) || it.contains("&&");
    let anchored = || called("matches").filter(|(it, _)| it.starts_with('^') && !names_others(it));
    let Some((text, range)) = called("starts_with").or_else(equal).or_else(anchored) else {
        return mentions_program(subject, site, term, out);
    };
    let text = plain(text);
    let mut words = text.split_whitespace();
    let Some(program) = words.next() else { return };
    // Wrappers are removed before a guard sees the program.
    let begins =
        |it: &str| text.strip_prefix(it).is_some_and(|it| it.is_empty() || it.starts_with(' '));
    let starts_others =
        || subject.reviewed.meant.wrappers().chain(["eval"]).chain(SHELLS).any(begins);
    if !subject.reviewed.meant.known_programs().contains_key(program) || starts_others() {
        return;
    }
    let next = words.next();
    let (pattern, rest) = match next.filter(|it| it.chars().all(char::is_alphanumeric)) {
        Some(sub) => (format!("{program} {sub}"), words.next()),
        None => (program.to_owned(), next),
    };
    let rest = rest.map_or("", |_| ", and check the rest with `program`");
    out.add(
        site.span(range),
        format!("command lines that run `{pattern}` can start with other text"),
        |it| {
            it.with_note(format!("such as `cd a && {pattern}` and `sudo {pattern}`"))
                .with_help(format!("write `commands: [{pattern}]`{rest}"))
        },
    );
}
