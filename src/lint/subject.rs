//! A pack as lint sees it: its own files as they were read, its entries, its expressions as trees.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use super::logic;
use crate::policy::load::{Pack, Reviewed};
use crate::policy::shapes;
use crate::script::template::{self, Piece};
use crate::script::tree::Term;
use crate::script::types::Names;
use crate::source::check;
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{Diagnostic, Level, ScalarStyle, Source, Span};
use crate::time::Timestamp;

/// Everything lint looks at.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The files of the pack.
    pub pack: &'a Pack,
    /// The pack as loaded.
    pub reviewed: &'a Reviewed,
    /// Entries of the pack's own lists and maps.
    pub entries: Vec<Entry<'a>>,
    /// Expressions of the pack's own files.
    pub sites: Vec<Site<'a>>,
    /// Every scalar of the pack's own files that says something.
    pub leaves: Vec<Leaf<'a>>,
    /// The case files beside it.
    pub cases: Vec<Arc<Source>>,
    /// Today.
    pub now: Timestamp,
}

/// One entry: a consideration, a checker, a probe…
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// File of the pack it is in.
    pub file: &'static str,
    /// Its id.
    pub id: &'a Node,
    /// All of it.
    pub node: &'a Node,
    /// Its expressions in `Subject::sites`: the first one, and one past the last.
    sites: (usize, usize),
}

impl<'a> Entry<'a> {
    /// Its id as text.
    pub fn name(&self) -> &'a str {
        self.id.text().unwrap_or_default()
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.node.get(key)?.text()
    }

    /// Whether a key says `true`.
    pub fn is(&self, key: &str, value: bool) -> bool {
        self.node.get(key).and_then(Node::bool) == Some(value)
    }
}

/// One scalar.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// File of the pack it is in.
    pub file: &'static str,
    /// The entry it belongs to, by its number in `Subject::entries`.
    pub entry: Option<usize>,
    /// The key it is the value of, or is in the list of.
    pub key: &'a str,
    /// What it should be.
    pub kind: &'static Kind,
    /// The scalar.
    pub node: &'a Node,
}

/// One expression.
#[derive(Debug)]
pub struct Site<'a> {
    /// File of the pack it is in.
    pub file: &'static str,
    /// The entry it belongs to, by its number in `Subject::entries`.
    pub entry: Option<usize>,
    /// The key it is the value of, or is in the template of.
    pub key: &'a str,
    /// Whether it must be true or false; a hole of a template need not.
    pub condition: bool,
    /// The scalar it is written in.
    pub node: &'a Node,
    /// Where it begins in the decoded text of the scalar.
    pub start: usize,
    /// Its text.
    pub text: &'a str,
    /// Its parts, where it can be read.
    pub term: Option<Term>,
    /// Whether it is always true or always false, once somebody asked.
    truth: OnceCell<Option<bool>>,
}

impl<'a> Site<'a> {
    fn new(
        (file, entry, key): (&'static str, Option<usize>, &'a str),
        node: &'a Node,
        (start, text): (usize, &'a str),
        condition: bool,
    ) -> Self {
        let term = Term::parse(text);
        Self { file, entry, key, condition, node, start, text, term, truth: OnceCell::new() }
    }

    /// Where a part of it is written.
    #[must_use]
    pub fn span(&self, range: &Range<usize>) -> Span {
        self.node.sub_span(self.start + range.start..self.start + range.end)
    }

    /// Where all of it is written.
    #[must_use]
    pub fn whole(&self) -> Span {
        self.span(&(0..self.text.trim_end().len()))
    }

    /// Whether it is always true or always false.
    pub fn truth(&self, names: &Names) -> Option<bool> {
        let term = self.term.as_ref();
        *self.truth.get_or_init(|| term.and_then(|it| logic::truth(it, names)))
    }

    /// What a part of it is written as.
    pub fn part(&self, range: &Range<usize>) -> &'_ str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Another text in the place of a part, written as its scalar is; nothing where that cannot be
    /// written so.
    pub fn edit(&self, range: &Range<usize>, text: &str) -> Option<(Span, String)> {
        let style = self.node.scalar()?.style;
        if text.contains('\n') && style != ScalarStyle::DoubleQuoted {
            return None; // Its lines would have to be indented.
        }
        let written = match style {
            ScalarStyle::DoubleQuoted => {
                text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
            }
            ScalarStyle::SingleQuoted => text.replace('\'', "''"),
            // What begins a plain scalar must not mean something to YAML.
            ScalarStyle::Plain if self.start + range.start == 0 => text
                .starts_with(|c: char| c.is_alphanumeric() || c == '(')
                .then(|| text.to_owned())?,
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => text.to_owned(),
        };
        Some((self.span(range), written))
    }

    /// Calls `look` with every part of it.
    pub fn visit<'s>(&'s self, mut look: impl FnMut(&'s Term)) {
        if let Some(term) = &self.term {
            term.visit(&mut look);
        }
    }
}

impl<'a> Subject<'a> {
    /// A pack that was loaded, as lint sees it.
    #[must_use]
    pub fn new(pack: &'a Pack, reviewed: &'a Reviewed, now: Timestamp) -> Self {
        let mut subject = Self {
            pack,
            reviewed,
            entries: vec![],
            sites: vec![],
            leaves: vec![],
            cases: vec![],
            now,
        };
        for (file, node) in &reviewed.own {
            let Some(shape) = shapes::FILES.iter().find(|it| it.file == *file) else { continue };
            subject.absorb(shape.file, &shape.kind, node);
        }
        subject
    }

    /// The same with the case files that lie beside the pack.
    #[must_use]
    pub fn with_cases(self, cases: Vec<Arc<Source>>) -> Self {
        Self { cases, ..self }
    }

    fn absorb(&mut self, file: &'static str, kind: &'static Kind, node: &'a Node) {
        let listed = node.items().unwrap_or_default().iter();
        let listed = listed.filter_map(|it| Some((it.get("id")?, it)));
        let is_map = matches!(kind, Kind::Map(_)) && file != "messages.yaml";
        let mapped = node.entries().unwrap_or_default().iter();
        let mapped = mapped.filter(|_| is_map).map(|(key, value)| (key, value));
        let first = self.entries.len();
        let entry = |(id, node)| Entry { file, id, node, sites: (0, 0) };
        self.entries.extend(listed.chain(mapped).map(entry));
        for at in first..self.entries.len() {
            let before = self.sites.len();
            if let (Some(entry), Kind::List(one) | Kind::Map(one)) = (self.entries.get(at), kind) {
                self.walk((file, Some(at), ""), one, entry.node);
            }
            let sites = (before, self.sites.len());
            if let Some(entry) = self.entries.get_mut(at) {
                entry.sites = sites;
            }
        }
        if matches!(kind, Kind::Record(_)) || file == "messages.yaml" {
            self.walk((file, None, ""), kind, node);
        }
    }

    fn walk(
        &mut self,
        at: (&'static str, Option<usize>, &'a str),
        kind: &'static Kind,
        node: &'a Node,
    ) {
        let (file, entry, key) = at;
        if node.text().is_some() && !matches!(kind, Kind::Either(_) | Kind::OneOrList(_)) {
            self.leaves.push(Leaf { file, entry, key, kind, node });
        }
        match kind {
            Kind::Expression => {
                let site = |text| Site::new((file, entry, key), node, (0, text), true);
                let site = node.text().map(site);
                self.sites.extend(site);
            }
            Kind::Template => {
                let text = node.text().unwrap_or_default();
                for piece in template::pieces(text).unwrap_or_default() {
                    if let Piece::Hole { expression, start } = piece {
                        let site = Site::new((file, entry, key), node, (start, expression), false);
                        self.sites.push(site);
                    }
                }
            }
            Kind::List(one) => {
                let items = node.items().unwrap_or_default();
                items.iter().for_each(|it| self.walk((file, entry, key), one, it));
            }
            Kind::OneOrList(one) => {
                let items = node.one_or_items();
                items.iter().for_each(|it| self.walk((file, entry, key), one, it));
            }
            Kind::Map(one) => {
                for (name, value) in node.entries().unwrap_or_default() {
                    self.walk((file, entry, name.text().unwrap_or_default()), one, value);
                }
            }
            Kind::Record(fields) => {
                for field in *fields {
                    if let Some(value) = node.get(field.name) {
                        let key =
                            if field.name == "text" && !key.is_empty() { key } else { field.name };
                        self.walk((file, entry, key), &field.kind, value);
                    }
                }
            }
            Kind::Either(kinds) => {
                if let Some(fitting) = kinds.iter().find(|it| check::fits(it, node)) {
                    self.walk(at, fitting, node);
                }
            }
            Kind::Any
            | Kind::Text
            | Kind::Bool
            | Kind::Int { .. }
            | Kind::Number { .. }
            | Kind::Choice(_)
            | Kind::Duration
            | Kind::Date
            | Kind::Regex => {}
        }
    }

    /// What the pack and those below it define.
    #[must_use]
    pub fn names(&self) -> &'a Names {
        &self.reviewed.names
    }

    /// The pack's own file, where it could be read.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&'a Node> {
        self.reviewed.own.get(name)
    }

    /// The expressions of an entry.
    pub fn sites_of(&self, entry: &Entry<'a>) -> &[Site<'a>] {
        self.sites.get(entry.sites.0..entry.sites.1).unwrap_or_default()
    }

    /// The entries of one file.
    pub fn of<'s>(&'s self, file: &'s str) -> impl Iterator<Item = &'s Entry<'a>> {
        self.entries.iter().filter(move |it| it.file == file)
    }

    /// The entry a site belongs to.
    #[must_use]
    pub fn entry_of(&self, site: &Site<'a>) -> Option<&Entry<'a>> {
        self.entries.get(site.entry?)
    }

    /// Whether the loader found an error in an expression.
    #[must_use]
    pub fn has_error(&self, site: &Site<'_>) -> bool {
        let whole = site.whole();
        self.reviewed.diagnostics.iter().any(|it| {
            it.level == Level::Error
                && it.span.source == whole.source
                && (whole.start..whole.end).contains(&it.span.start)
        })
    }

    /// The entry of a pack below that this one changes.
    #[must_use]
    pub fn inherited(&self, entry: &Entry<'_>) -> Option<&'a Node> {
        self.reviewed.inherited.get(&(entry.file, entry.name().to_owned())).map(AsRef::as_ref)
    }

    /// The innermost entry that holds a place.
    #[must_use]
    pub fn entry_at(&self, span: &Span) -> Option<&Entry<'a>> {
        let holds = |it: &&Entry<'a>| {
            let whole = it.id.span.start.min(it.node.span.start)..it.node.span.end;
            it.id.span.source == span.source && whole.contains(&span.start)
        };
        self.entries.iter().find(holds)
    }

    /// Points at the id of the entry that a finding is in, unless it is on the same line.
    pub(super) fn name_the_rule(&self, finding: &mut Diagnostic) {
        let Some(entry) = self.entry_at(&finding.span) else { return };
        let line = |span: &Span| span.line_column().0;
        let told = finding.related.iter().any(|(span, _)| line(span) == line(&entry.id.span));
        if !told && line(&finding.span) != line(&entry.id.span) {
            finding.related.push((entry.id.span.clone(), String::new()));
        }
    }
}
