//! Checks of regular expressions and of lists of patterns.

use std::collections::BTreeMap;
use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::entries::guards;
use super::terms::constant;
use crate::site::{Calls, Site};
use crate::subject::Leaf;
use crate::{Findings, Subject};
use policyd_fact_table::ast::ExprKind;
use policyd_fact_table::members::{self, Member};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::pattern::matches_every_text;
use policyd_fact_table::types::Domain;
use policyd_facts::glob::path_matches;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::{ScalarStyle, Span, Suggestion};

/// A regular expression, a glob or a command pattern, in a list or as an argument.
pub(super) struct Pattern<'s> {
    pub(super) text: &'s str,
    pub(super) place: PatternOrigin<'s>,
}

/// The fix of a pattern.
#[derive(Debug, Clone)]
pub(super) enum PatternFix {
    /// Another pattern.
    Write(String),
    /// Only the author knows the pattern.
    Advice(String),
}

impl PatternFix {
    pub(super) fn advice(help: &str) -> Self {
        Self::Advice(help.to_owned())
    }

    /// The pattern if it is certain, else the help.
    pub(super) fn write_if(is_certain: bool, text: &str, help: &str) -> Self {
        if is_certain { Self::Write(text.to_owned()) } else { Self::advice(help) }
    }

    /// The suggestion for a scalar.
    pub(super) fn of(self, node: &Node) -> Suggestion {
        match self {
            Self::Write(text) => node.rewritten(&text),
            Self::Advice(help) => help.into(),
        }
    }

    /// The suggestion for a text constant of an expression.
    pub(super) fn at(self, site: &Site<'_>, range: &Range<usize>) -> Suggestion {
        match self {
            Self::Write(text) => site.write_text(range, &text),
            Self::Advice(help) => help.into(),
        }
    }
}

pub(super) enum PatternOrigin<'s> {
    /// A scalar of its own.
    Node(&'s Node),
    /// An argument in an expression, and the call that it is of.
    Argument(&'s Site<'s>, &'s Range<usize>, Fact<'s>),
}

impl Pattern<'_> {
    pub(super) fn span(&self) -> Span {
        match self.place {
            PatternOrigin::Node(node) => node.sub_span(0..self.text.len()),
            PatternOrigin::Argument(site, range, _) => site.span(range),
        }
    }

    /// Returns the suggestion to write another pattern.
    pub(super) fn write(&self, text: &str) -> Suggestion {
        self.fix(PatternFix::Write(text.to_owned()))
    }

    /// Returns the suggestion to write the options of an item of a list as separate items. `None` if anything else is
    /// between the separators.
    pub(super) fn separated(&self, separators: &[char]) -> Option<Suggestion> {
        let PatternOrigin::Argument(site, range, _) = self.place else { return None };
        let options: Vec<&str> = self.text.split(separators).filter(|it| !it.is_empty()).collect();
        let is_list = options.len() > 1 && options.iter().all(|it| it.starts_with('-'));
        let quoted: Vec<String> = options.iter().map(|it| format!("{it:?}")).collect();
        is_list.then(|| site.write(range, quoted.join(", ")))
    }

    /// Returns the fix of the pattern.
    pub(super) fn fix(&self, fix: PatternFix) -> Suggestion {
        match self.place {
            PatternOrigin::Node(node) => fix.of(node),
            PatternOrigin::Argument(site, range, _) => fix.at(site, range),
        }
    }

    /// Whether it is an argument in an expression.
    pub(super) const fn is_argument(&self) -> bool {
        matches!(self.place, PatternOrigin::Argument(..))
    }

    /// Whether it is the argument of a call with these names.
    pub(super) fn is_argument_of(&self, names: &str) -> bool {
        match self.place {
            PatternOrigin::Node(_) => false,
            PatternOrigin::Argument(.., call) => call.is(names),
        }
    }

    /// Where a part of it is written; all of it, where escapes keep that from being told.
    pub(super) fn part(&self, range: Range<usize>) -> Span {
        match self.place {
            PatternOrigin::Node(node) => node.sub_span(range),
            PatternOrigin::Argument(site, whole, _)
                if site.part(whole).get(1..=self.text.len()) == Some(self.text) =>
            {
                site.span(&(whole.start + 1 + range.start..whole.start + 1 + range.end))
            }
            PatternOrigin::Argument(..) => self.span(),
        }
    }
}

/// Constant arguments of the functions that take texts of a kind, and texts of lists, anywhere in an expression.
pub(super) fn arguments<'s>(subject: &'s Subject<'_>, domain: Domain) -> Vec<Pattern<'s>> {
    let takes = |row: &&Member| row.params.is_some_and(|it| it.iter().any(|it| it.1 == domain));
    let calls = Calls::of(members::tables().filter(takes).map(|it| it.name));
    let mut found = Vec::new();
    for site in subject.sites.iter().filter(|it| it.may_call(calls)) {
        let names = site.names(subject.names());
        let is_such = |call: Fact<'_>| call.member(names).is_some_and(|it| takes(&it));
        site.visit(|term| {
            for call in term.fact().into_iter().flat_map(Fact::owners) {
                let Some(last) = call.last().filter(|_| is_such(call)) else { continue };
                for argument in last.arguments {
                    let texts = if let ExprKind::List(items) = &argument.kind {
                        items.as_slice()
                    } else {
                        std::slice::from_ref(argument)
                    };
                    found.extend(texts.iter().filter_map(constant).map(|(text, range)| Pattern {
                        text,
                        place: PatternOrigin::Argument(site, range, call),
                    }));
                }
            }
        });
    }
    found
}

pub(super) fn leaves<'s>(
    subject: &'s Subject<'_>,
    wanted: impl Fn(&Leaf<'_>) -> bool,
) -> impl Iterator<Item = Pattern<'s>> {
    let fitting = subject.leaves.iter().filter(move |it| wanted(it));
    fitting.filter_map(|it| {
        Some(Pattern { text: it.node.text()?, place: PatternOrigin::Node(it.node) })
    })
}

pub(super) fn regexes<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = Pattern<'s>> {
    let own = leaves(subject, |it| matches!(it.kind, Kind::Regex));
    own.chain(arguments(subject, Domain::Regex))
}

pub(super) fn hir(text: &str) -> Option<Hir> {
    regex_syntax::parse(text).ok()
}

/// Lists of patterns: keys, and what they hold.
#[rustfmt::skip]
const PATTERN_KEYS: [&str; 12] = [
    "regexes", "unless", "unless_inside", "failed", "failed_if_hidden", "empty", "passed", "passed_unless_empty",
    "globs", "except", "programs", "phrases",
];

pub(crate) fn finds_no_number(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in arguments(subject, Domain::Regex) {
        let PatternOrigin::Argument(.., call) = pattern.place else { continue };
        let reads_number = call.last().is_some_and(|it| ["number", "sum"].contains(&it.name));
        let Some(hir) = hir(pattern.text).filter(|_| reads_number) else { continue };
        if !may_be_number(captured(&hir).unwrap_or(&hir)) {
            let help = "put the digits into a group: `(\\\\d+) passed`";
            out.help(pattern.span(), "what this finds is never a whole number", help);
        }
    }
}

/// Returns the first group of a regex.
fn captured(hir: &Hir) -> Option<&Hir> {
    match hir.kind() {
        HirKind::Capture(group) => Some(&group.sub),
        HirKind::Repetition(it) => captured(&it.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().find_map(captured),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

/// Returns whether a regex can match a text that is a whole number.
fn may_be_number(hir: &Hir) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+- \t".contains(byte);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(text) => text.0.iter().all(is_part),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|it| it.start() <= '9' && it.end() >= '0')
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().any(|it| it.start() <= b'9' && it.end() >= b'0')
        }
        HirKind::Repetition(it) => it.min == 0 || may_be_number(&it.sub),
        HirKind::Capture(group) => may_be_number(&group.sub),
        HirKind::Concat(parts) => parts.iter().all(may_be_number),
        HirKind::Alternation(parts) => parts.iter().any(may_be_number),
    }
}

pub(crate) fn ends_in_newline(subject: &Subject<'_>, out: &mut Findings) {
    let listed = |it: &Leaf<'_>| matches!(it.kind, Kind::Regex) || PATTERN_KEYS.contains(&it.key);
    for pattern in leaves(subject, listed) {
        if pattern.text.ends_with('\n') {
            out.add(pattern.span(), "this pattern ends in a line break", |it| {
                it.with_note("lines do not contain one, so it never matches")
                    .with_help("write `|-` or `>-` instead of `|` or `>`, or use quotes")
            });
        }
    }
}

pub(crate) fn backspace(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in &subject.leaves {
        let text = leaf.node.text().unwrap_or_default();
        let Some(at) = text.find('\u{8}') else { continue };
        let quoted = leaf.node.scalar().is_some_and(|it| it.style == ScalarStyle::DoubleQuoted);
        let span = leaf.node.sub_span(at..at + 1);
        out.add(span.clone(), "`\\b` in double quotes is a backspace, not a word boundary", |it| {
            it.suggest(match quoted {
                true => Suggestion::write(span, "\\\\b").because(", or use single quotes"),
                false => "write `\\\\b`, or use single quotes".into(),
            })
        });
    }
}

pub(crate) fn matches_everything(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let text = pattern.text;
        let extent = subject.memo().of_text("extent", 0, text, || Extent::of(text));
        match *extent {
            Extent::Some => {}
            Extent::NotEmpty => {
                let help = "write the text to find: a pattern matches anywhere";
                out.help(pattern.span(), "this matches every text except the empty one", help);
            }
            Extent::All => {
                let help =
                    "require at least one character: `+` instead of `*`, no empty alternative";
                let message = "this matches the empty string, and therefore everything";
                out.help(pattern.span(), message, help);
            }
        }
    }
}

/// Texts that a regex matches.
enum Extent {
    All,
    /// All but the empty one.
    NotEmpty,
    Some,
}

impl Extent {
    fn of(text: &str) -> Self {
        let Some(hir) = hir(text) else { return Self::Some };
        // `.` and `.+` match whatever is not empty.
        let anything = matches!(text.trim_end_matches(['+', '?', '*']), "." | "^." | "[^\\n]");
        if anything && hir.properties().minimum_len() == Some(1) {
            Self::NotEmpty
        } else if matches_every_text(&hir) {
            Self::All
        } else {
            Self::Some
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

pub(crate) fn covered_pattern(subject: &Subject<'_>, out: &mut Findings) {
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
    for entry in guards(subject) {
        let nodes = entry.node.get("commands").map(Node::one_or_items).unwrap_or_default();
        let list: Vec<_> = nodes.iter().filter_map(|it| Some((it.text()?, it))).collect();
        cover(&list, &starts_with_words);
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

pub(crate) fn doubled_backslash(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in regexes(subject) {
        let text = pattern.text;
        // What begins so may be a path of Windows.
        if text.ends_with("\\\\b") {
            out.add(pattern.span(), "this matches a literal backslash and a `b`", |it| {
                it.with_note("double a backslash only within double quotes").suggest(
                    pattern.write(&text.replace("\\\\b", "\\b")).because(" for the end of a word"),
                )
            });
        }
    }
}
