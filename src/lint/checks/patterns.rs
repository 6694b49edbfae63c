//! Checks of regular expressions and of lists of patterns.

use std::collections::BTreeMap;
use std::ops::Range;

use regex_syntax::hir::{Hir, HirKind};

use super::programs::command_patterns;
use super::terms::{asked, compared, constant, each_part_asking, last_argument};
use super::vocabulary::wrong_branch;
use crate::facts::glob::path_matches;
use crate::lint::site::{Calls, Site};
use crate::lint::subject::Leaf;
use crate::lint::{Findings, Subject, with_edit};
use crate::script::pattern::matches_every_text;
use crate::script::tree::{Form, Term};
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{ScalarStyle, Span};

/// A regular expression, a glob or a command pattern, in a list or as an argument.
pub(super) struct Pattern<'s> {
    pub(super) text: &'s str,
    pub(super) place: Place<'s>,
}

pub(super) enum Place<'s> {
    /// A scalar of its own.
    Node(&'s Node),
    /// An argument in an expression.
    Argument(&'s Site<'s>, &'s Range<usize>),
}

impl Pattern<'_> {
    pub(super) fn span(&self) -> Span {
        match self.place {
            Place::Node(node) => node.sub_span(0..self.text.len()),
            Place::Argument(site, range) => site.span(range),
        }
    }

    /// Where a part of it is written; all of it, where escapes keep that from being told.
    pub(super) fn part(&self, range: Range<usize>) -> Span {
        match self.place {
            Place::Node(node) => node.sub_span(range),
            Place::Argument(site, whole)
                if site.part(whole).get(1..=self.text.len()) == Some(self.text) =>
            {
                site.span(&(whole.start + 1 + range.start..whole.start + 1 + range.end))
            }
            Place::Argument(..) => self.span(),
        }
    }

    /// The pattern replaced, where it is written without escapes.
    fn replaced(&self, from: &str, by: &str) -> Option<(Span, String)> {
        let span = self.span();
        (span.text().matches(from).count() == 1)
            .then(|| span.text().replacen(from, by, 1))
            .map(|text| (span, text))
    }
}

/// Functions whose arguments are patterns, by how their calls end.
pub(super) struct Functions {
    ends: &'static [&'static str],
    calls: Calls,
}

impl Functions {
    pub(super) const fn new(ends: &'static [&'static str]) -> Self {
        Self { ends, calls: Calls::of_ends(ends) }
    }
}

/// What takes a regular expression.
const MATCHES: Functions = Functions::new(&["matches("]);

/// Constant arguments of the calls of these functions, and texts of lists, anywhere in an expression.
pub(super) fn arguments<'s>(subject: &'s Subject<'_>, functions: &Functions) -> Vec<Pattern<'s>> {
    let mut found = Vec::new();
    for site in subject.sites.iter().filter(|it| it.may_call(functions.calls)) {
        site.visit(|term| {
            let Form::Fact(path, arguments) = &term.form else { return };
            for argument in arguments {
                // Whose argument it is, the path tells by how it begins there.
                let (begins, texts) = if let Form::List(items) = &argument.form {
                    ("[", items.as_slice())
                } else {
                    (site.part(&argument.range), std::slice::from_ref(argument))
                };
                if calls_with(path, functions.ends, begins) {
                    found.extend(texts.iter().filter_map(|it| text_of(site, it)));
                }
            }
        });
    }
    found
}

/// Whether a path calls one of these functions with what begins so.
fn calls_with(path: &str, functions: &[&str], begins: &str) -> bool {
    memchr::memchr_iter(b'(', path.as_bytes()).any(|open| {
        let (Some(call), Some(rest)) = (path.get(..=open), path.get(open + 1..)) else {
            return false;
        };
        rest.starts_with(begins) && functions.iter().any(|it| call.ends_with(it))
    })
}

/// A constant text of an expression as a pattern.
fn text_of<'s>(site: &'s Site<'s>, term: &'s Term) -> Option<Pattern<'s>> {
    let Term { form: Form::Text(text), range, .. } = term else { return None };
    Some(Pattern { text, place: Place::Argument(site, range) })
}

pub(super) fn leaves<'s>(
    subject: &'s Subject<'_>,
    wanted: impl Fn(&Leaf<'_>) -> bool,
) -> impl Iterator<Item = Pattern<'s>> {
    let fitting = subject.leaves.iter().filter(move |it| wanted(it));
    fitting.filter_map(|it| Some(Pattern { text: it.node.text()?, place: Place::Node(it.node) }))
}

pub(super) fn regexes<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = Pattern<'s>> {
    let own = leaves(subject, |it| matches!(it.kind, Kind::Regex));
    own.chain(arguments(subject, &MATCHES))
}

pub(super) fn hir(text: &str) -> Option<Hir> {
    regex_syntax::parse(text).ok()
}

/// Lists of patterns: keys, and what they hold.
const PATTERN_KEYS: [&str; 10] = [
    "regexes",
    "unless",
    "failed",
    "failed_if_hidden",
    "empty",
    "passed",
    "globs",
    "except",
    "programs",
    "phrases",
];

pub(in crate::lint) fn ends_in_newline(subject: &Subject<'_>, out: &mut Findings) {
    let listed = |it: &Leaf<'_>| matches!(it.kind, Kind::Regex) || PATTERN_KEYS.contains(&it.key);
    for pattern in leaves(subject, listed) {
        if pattern.text.ends_with('\n') {
            out.add(pattern.span(), "this pattern ends in a line break", |it| {
                it.with_note("no line holds one, so it never matches")
                    .with_help("write `|-` or `>-` in place of `|` or `>`, or quotes")
            });
        }
    }
}

pub(in crate::lint) fn backspace(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in &subject.leaves {
        let text = leaf.node.text().unwrap_or_default();
        let Some(at) = text.find('\u{8}') else { continue };
        let quoted = leaf.node.scalar().is_some_and(|it| it.style == ScalarStyle::DoubleQuoted);
        let span = leaf.node.sub_span(at..at + 1);
        out.add(span.clone(), "`\\b` in double quotes is a backspace, no word boundary", |it| {
            let it = it.with_help("write `\\\\b`, or single quotes");
            with_edit(it, false, quoted.then(|| (span, "\\\\b".to_owned())))
        });
    }
}

pub(in crate::lint) fn matches_everything(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let Some(hir) = hir(pattern.text) else { continue };
        // `.` and `.+` match whatever is not empty.
        let anything =
            matches!(pattern.text.trim_end_matches(['+', '?', '*']), "." | "^." | "[^\\n]");
        if anything && hir.properties().minimum_len() == Some(1) {
            let help = "say what is looked for: a pattern matches anywhere";
            out.help(pattern.span(), "this matches every text but the empty one", help);
        } else if matches_every_text(&hir) {
            out.add(pattern.span(), "this matches the empty text, and so everything", |it| {
                it.with_help("demand at least one character: `+` in place of `*`, no empty branch")
            });
        }
    }
}

pub(in crate::lint) fn regex_without_pattern(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in arguments(subject, &MATCHES) {
        let plain = hir(pattern.text).is_some_and(|it| matches!(it.kind(), HirKind::Literal(_)));
        if plain {
            let help = "use `contains`, which counts case; or keep it where case must not count";
            out.help(pattern.span(), "this regular expression is plain text", help);
        }
    }
}

pub(in crate::lint) fn redundant_affix(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let text = pattern.text;
        let repeats = |it: &str| it.starts_with(['?', '*', '+', '{']);
        let before = text.strip_prefix(".*").is_some_and(|it| !it.is_empty() && !repeats(it));
        let after = text.ends_with(".*") && !text.ends_with("\\.*") && text.len() > 2;
        if hir(text).is_none() {
            continue;
        }
        if before || after {
            let side = if before { "begins" } else { "ends" };
            let message = format!("a pattern that {side} with `.*` finds nothing more");
            out.add(pattern.span(), message, |it| {
                let it = it.with_help("leave it out: a pattern matches anywhere");
                with_edit(it, true, pattern.replaced(".*", ""))
            });
        }
    }
}

/// The lists of one section of the vocabulary: `globs` and `except`, `programs` and `except`.
pub(super) fn section<'s>(
    subject: &Subject<'s>,
    name: &str,
) -> Vec<(&'s str, Vec<(&'s str, &'s Node)>)> {
    let kinds = subject.file("vocabulary.yaml").and_then(|it| it.get(name));
    let kinds = kinds.and_then(Node::entries).unwrap_or_default();
    let lists = kinds.iter().flat_map(|(_, kind)| kind.entries().unwrap_or_default());
    let wanted = |key: &str| matches!(key, "globs" | "except" | "programs" | "phrases");
    let list = |node: &'s Node| {
        node.items().unwrap_or_default().iter().filter_map(|it| Some((it.text()?, it))).collect()
    };
    lists
        .filter_map(|(key, node)| Some((key.text().filter(|it| wanted(it))?, list(node))))
        .collect()
}

pub(in crate::lint) fn covered_pattern(subject: &Subject<'_>, out: &mut Findings) {
    let mut cover = |list: &[(&str, &Node)], covers: &dyn Fn(&str, &str) -> bool| {
        let mut told: BTreeMap<usize, ()> = BTreeMap::new();
        for (at, (text, node)) in list.iter().enumerate() {
            let covering = list.iter().enumerate().find(|(other, (wider, _))| {
                let same = wider == text;
                *other != at
                    && !told.contains_key(other)
                    && (if same { *other < at } else { covers(wider, text) })
            });
            if let Some((_, (wider, first))) = covering {
                told.insert(at, ());
                let same = wider == text;
                let message = if same {
                    format!("`{text}` is listed twice")
                } else {
                    format!("`{text}` is covered by `{wider}`")
                };
                out.add(node.span.clone(), message, |it| {
                    let role = if same { "listed here" } else { "covers it" };
                    it.with_related(first.span.clone(), role).with_help("delete one of them")
                });
            }
        }
    };
    for (_, list) in section(subject, "files") {
        cover(&list, &|wider, text| !text.contains(['*', '?', '{']) && path_matches(wider, text));
    }
    for (_, list) in section(subject, "commands") {
        cover(&list, &starts_with_words);
    }
    for (_, list) in section(subject, "texts") {
        cover(&list, &holds_words);
    }
}

/// Whether a command pattern is the beginning of another one.
fn starts_with_words(wider: &str, text: &str) -> bool {
    let rest = text.strip_prefix(wider);
    rest.is_some_and(|it| it.starts_with(' ')) && !wider.is_empty()
}

/// Whether a phrase is a part of another one.
fn holds_words(wider: &str, text: &str) -> bool {
    let folded = |it: &str| {
        let words: Vec<String> = it.split_whitespace().map(str::to_lowercase).collect();
        format!(" {} ", words.join(" "))
    };
    !wider.trim().is_empty() && folded(text).contains(&folded(wider))
}

/// Ends of names that are hardly meant as patterns.
const ENDINGS: [&str; 16] = [
    "com", "org", "net", "io", "rs", "py", "js", "ts", "md", "json", "yaml", "yml", "toml", "txt",
    "sh", "go",
];

pub(in crate::lint) fn unescaped_dot(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let found = pattern.text.match_indices('.').find(|(at, _)| {
            let before = pattern.text.get(..*at).unwrap_or_default();
            let after = pattern.text.get(at + 1..).unwrap_or_default();
            let word: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
            before.ends_with(|c: char| c.is_ascii_alphanumeric())
                && !before.ends_with("\\w")
                && !before.ends_with("\\d")
                && ENDINGS.contains(&word.as_str())
        });
        if let Some((at, _)) = found {
            let rest = pattern.text.get(at..).unwrap_or_default();
            let message = format!("the dot of `{rest}` stands for any character");
            out.help(pattern.part(at..at + 1), message, "write `\\.`");
        }
    }
}

/// Programs that run what a project calls as it likes: `npm run test.unit`.
const RUNNERS: [&str; 8] = ["make", "gmake", "just", "rake", "npm", "yarn", "pnpm", "bun"];

/// Command patterns that are written as regular expressions.
fn regex_as_command(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let text = pattern.text;
        let mut words = text.split_whitespace();
        let program = words.next().filter(|it| !RUNNERS.contains(it));
        let known = program.and_then(|it| subject.reviewed.meant.known_programs().get(it));
        // `mkfs.*` is a glob; no word of `git` goes on with a dot.
        let stem = words.next().and_then(|it| it.strip_suffix(".*"));
        let of_regex = stem.zip(known).is_some_and(|(it, known)| known.contains(it));
        let ends = text.starts_with('^') || text.starts_with("\\b") || text.ends_with("\\b");
        // What belongs to the shell is told already.
        if (ends || text.ends_with('$') || of_regex) && !text.contains('|') {
            let message = format!("`{text}` is a command pattern, and no regular expression");
            out.add(pattern.span(), message, |it| {
                it.with_note("no program is met by it").with_help(
                    "write the words of the program: `git push`; `*` stands for any letters",
                )
            });
        }
    }
}

/// Facts that are compared whole, of which hardly one holds a `*`, and what knows patterns in their place.
const WHOLE: [(&str, &str); 7] = [
    ("session.branch", "ask `session.branch.matches(…)`"),
    ("files.last_path", "ask `files.matching(…)`"),
    ("program.name", "write it as a pattern under `commands`"),
    ("event.tool", "write it under `tools` of a guard, or ask `event.tool.starts_with(…)`"),
    ("action.tool", "write it under `tools` of the guard"),
    ("event.source", "name each: `event.source in [\"startup\", \"resume\"]`"),
    ("event.permission_mode", "name each: `event.permission_mode in [\"plan\", \"default\"]`"),
];
/// Lists of names, which hold no patterns either.
const OF_NAMES: [(&str, &str); 4] = [
    ("action.programs", "name each, or write patterns under `commands`"),
    ("tools.count", "it counts the calls of one tool: name it whole"),
    ("signals.pending", "name each signal"),
    ("signals.count", "name each signal"),
];

/// Globs, alternatives, and names of branches that no checkout has, among what facts are compared with.
fn glob_as_text(subject: &Subject<'_>, out: &mut Findings) {
    let members = ["branch", "last_path", "name", "tool", "source", "permission_mode"];
    each_part_asking(subject, &members, |site, term| {
        for (fact, instead) in WHOLE {
            for (text, range) in compared(term, |it| it == fact) {
                let wrong = if fact == "session.branch" { wrong_branch(text) } else { None };
                let glob = text.contains('*') && text.contains(char::is_alphanumeric);
                // That a name has no folder is told already.
                let glob = glob && (fact != "program.name" || !text.contains(['/', ' ']));
                let told = || (format!("`{text}` is compared as it stands"), instead.to_owned());
                let found = wrong.or_else(|| either(fact, text)).or_else(|| glob.then(told));
                if let Some((message, help)) = found {
                    out.help(site.span(range), message, help);
                }
            }
        }
    });
    each_part_asking(subject, &["programs", "count", "pending"], |site, term| {
        let Some((fact, names)) = asked(term) else { return };
        let Some((_, help)) = OF_NAMES.iter().find(|(it, _)| *it == fact) else { return };
        for (text, range) in names.into_iter().filter(|(it, _)| it.contains('*')) {
            out.help(site.span(range), format!("`{text}` is compared as it stands"), *help);
        }
    });
}

/// Names with `|` between them: what is wrong with them, and what to write.
fn either(fact: &str, text: &str) -> Option<(String, String)> {
    let names: Vec<&str> = text.split('|').collect();
    let is_name =
        |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || "-_/.".contains(c));
    (names.len() > 1 && names.iter().all(is_name)).then(|| {
        (format!("`{text}` is compared as it stands"), format!("write `{fact} in {names:?}`"))
    })
}

/// What only regular expressions make something of.
const OF_REGEXES: [&str; 6] = ["\\s+", "\\d+", "\\w+", ".*", ".+", "(?i)"];

/// Functions that take a text as it stands.
const LITERAL: [&str; 3] = ["contains", "starts_with", "ends_with"];

pub(in crate::lint) fn regex_in_literal(subject: &Subject<'_>, out: &mut Findings) {
    regex_as_command(subject, out);
    glob_as_text(subject, out);
    each_part_asking(subject, &LITERAL, |site, term| {
        for name in LITERAL {
            let Some((text, range)) = last_argument(term, name).and_then(constant) else {
                continue;
            };
            let ends = match name {
                "starts_with" => {
                    text.starts_with('^') || (text.ends_with('*') && !text.starts_with('*'))
                }
                "ends_with" => text.ends_with('$'),
                _ => text.starts_with('^') && text.ends_with('$'),
            };
            let ends = ends || text.starts_with("\\b") || text.ends_with("\\b");
            // What commands and files say may well be written like this.
            let owner = site.part(&term.range);
            let prose = ["transcript.", "event.prompt", "event.model", "session.", "tokens."];
            let prose = prose.iter().any(|it| owner.starts_with(it));
            let words = |it: &str| {
                let plain = it.chars().all(|c| c.is_alphanumeric() || c == ' ');
                plain && !it.is_empty() && it.trim() == it
            };
            let either = text.contains('|') && text.split('|').all(words);
            let of_regex = OF_REGEXES.iter().any(|it| text.contains(it)) || either;
            if prose && text.len() > 1 && (ends || of_regex) {
                out.add(
                    site.span(range),
                    format!("`{name}` looks for `{text}` as it stands"),
                    |it| {
                        it.with_note("it is no pattern here")
                            .with_help("use `matches`, or write the text alone")
                    },
                );
            }
        }
    });
    for phrase in leaves(subject, |it| it.key == "phrases") {
        let text = phrase.text;
        if text.contains(".*") || text.contains("\\b") || text.split('|').count() > 1 {
            out.add(phrase.span(), "a phrase is looked for word by word", |it| {
                it.with_note("it is no regular expression").with_help("write it under `regexes`")
            });
        }
    }
}

pub(in crate::lint) fn doubled_backslash(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let text = pattern.text;
        // What begins so may be a path of Windows.
        if text.ends_with("\\\\b") {
            out.add(pattern.span(), "this looks for a backslash and a `b`", |it| {
                it.with_note("a backslash is doubled within double quotes only")
                    .with_help("write `\\b` for the end of a word")
            });
        }
    }
}
