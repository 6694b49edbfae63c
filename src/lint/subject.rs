//! A pack as lint sees it: its own files as they were read, its entries, its expressions.

use std::sync::{Arc, OnceLock};

use super::site::{Site, SiteLocation};
use policyd_fact_table::ast::Expr;
use policyd_fact_table::template::{self, TemplatePart};
use policyd_fact_table::types::Names;
use policyd_harness::Harness;
use policyd_policy::load::{self, Pack};
use policyd_policy::review::ReviewedPolicy;
use policyd_policy::shapes::{self, FileShape};
use policyd_policy::{Policy, builtin, records};
use policyd_yaml::check;
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Level, Source, Span};

/// Everything lint looks at.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The files of the pack.
    pub pack: &'a Pack,
    /// The pack as loaded.
    pub reviewed: &'a ReviewedPolicy,
    /// Entries of the pack's own lists and maps.
    pub entries: Vec<PackEntry<'a>>,
    /// Expressions of the pack's own files.
    pub sites: Vec<Site<'a>>,
    /// Every scalar of the pack's own files that has a meaning.
    pub leaves: Vec<Leaf<'a>>,
    /// The case files beside it.
    pub cases: Vec<Arc<Source>>,
    /// The parsed case files, once a check needed them.
    case_trees: OnceLock<Vec<Arc<Option<Node>>>>,
    /// Names of policy files in subdirectories, which policyd does not load.
    pub unread: Vec<String>,
    /// The policy of the pack with its inherited packs, once a check needed it; none if it does not load.
    policy: OnceLock<Option<Policy>>,
    /// Today.
    pub now: Timestamp,
    /// The client that the pack is looked at for, where one is named.
    pub harness: Option<&'static Harness>,
    /// Number of cores that evaluate rules.
    pub cores: usize,
}

/// One entry: a consideration, a checker, a probe…
#[derive(Debug, Clone, Copy)]
pub struct PackEntry<'a> {
    /// File of the pack it is in.
    pub file: &'static str,
    /// Id of the entry.
    pub id: &'a Node,
    /// All of it.
    pub node: &'a Node,
    /// Its expressions in `Subject::sites`: the first one, and one past the last.
    sites: (usize, usize),
}

impl<'a> PackEntry<'a> {
    /// Its id as text.
    pub fn name(&self) -> &'a str {
        self.id.text().unwrap_or_default()
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.node.get(key)?.text()
    }

    /// Whether a key has this boolean value.
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

/// The names that expressions of a section see, where they speak of a record.
fn record_of(file: &str, section: &str) -> Option<&'static Names> {
    records::names(file, section).map(AsRef::as_ref)
}

impl<'a> Subject<'a> {
    /// A pack that was loaded, as lint sees it.
    #[must_use]
    pub fn new(pack: &'a Pack, reviewed: &'a ReviewedPolicy, now: Timestamp) -> Self {
        let mut subject = Self {
            pack,
            reviewed,
            entries: vec![],
            sites: vec![],
            leaves: vec![],
            cases: vec![],
            case_trees: OnceLock::new(),
            unread: vec![],
            policy: OnceLock::new(),
            now,
            harness: None,
            cores: 1,
        };
        for (file, node) in &reviewed.own {
            let Some(shape) = shapes::FILES.iter().find(|it| it.file == *file) else { continue };
            subject.absorb(shape, node);
        }
        subject
    }

    /// The same with the case files that lie beside the pack.
    #[must_use]
    pub fn with_cases(self, cases: Vec<Arc<Source>>) -> Self {
        Self { cases, ..self }
    }

    /// What the case files hold that can be read.
    pub fn case_trees(&self) -> impl Iterator<Item = &Node> {
        let read = || self.cases.iter().map(|it| self.memo().tree(it)).collect();
        self.case_trees.get_or_init(read).iter().filter_map(|it| it.as_ref().as_ref())
    }

    /// Sets the policy files in directories that policyd does not read.
    #[must_use]
    pub fn with_unread(self, unread: Vec<String>) -> Self {
        Self { unread, ..self }
    }

    /// All of the pack as its user has it, together with those below it; nothing where it does not load.
    pub fn policy(&self) -> Option<&Policy> {
        let load = || load::load_again(self.pack, &builtin::pack(), self.memo()).policy;
        self.policy.get_or_init(load).as_ref()
    }

    /// The same for one client.
    #[must_use]
    pub fn for_harness(self, harness: Option<&'static Harness>) -> Self {
        Self { harness, ..self }
    }

    /// Sets the number of cores that evaluate rules.
    #[must_use]
    pub fn on_cores(self, cores: usize) -> Self {
        Self { cores, ..self }
    }

    fn absorb(&mut self, shape: &'static FileShape, node: &'a Node) {
        let file = shape.file;
        let record = record_of(file, "").filter(|_| !matches!(shape.kind, Kind::Record(_)));
        let top = SiteLocation { file, entry: None, key: "", record };
        let listed = |list: Option<&'a Node>| {
            let items = list.and_then(Node::items).unwrap_or_default().iter();
            items.filter_map(|it| Some((it.get("id")?, it))).collect::<Vec<_>>()
        };
        if let Kind::List(one) = shape.kind {
            return self.entries_of(top, one, listed(Some(node)));
        }
        if let (Kind::Map(one), true) = (shape.kind, file != "messages.yaml") {
            let entries = node.entries().unwrap_or_default().iter();
            return self.entries_of(top, one, entries.map(|(key, value)| (key, value)).collect());
        }
        for (key, one) in shape.sections() {
            let at = SiteLocation { key, record: record_of(file, key), ..top };
            self.entries_of(at, one, listed(node.get(key)));
        }
        self.walk(top, &shape.kind, node);
    }

    fn entries_of(
        &mut self,
        at: SiteLocation<'a>,
        one: &'static Kind,
        found: Vec<(&'a Node, &'a Node)>,
    ) {
        for (id, node) in found {
            let (number, before) = (self.entries.len(), self.sites.len());
            let own = (at.file, id.text().unwrap_or_default().to_owned());
            let record = at.record.or_else(|| self.reviewed.records.get(&own));
            self.walk(SiteLocation { entry: Some(number), record, ..at }, one, node);
            let sites = (before, self.sites.len());
            self.entries.push(PackEntry { file: at.file, id, node, sites });
        }
    }

    fn walk(&mut self, at: SiteLocation<'a>, kind: &'static Kind, node: &'a Node) {
        let SiteLocation { file, entry, key, .. } = at;
        if node.text().is_some() && !matches!(kind, Kind::Either(_) | Kind::OneOrList(_)) {
            self.leaves.push(Leaf { file, entry, key, kind, node });
        }
        match kind {
            Kind::Expression => {
                let site = node.text().map(|text| Site::new(at, node, 0, text, true));
                self.sites.extend(site);
            }
            Kind::Template => {
                let text = node.text().unwrap_or_default();
                for piece in template::pieces(text).unwrap_or_default() {
                    if let TemplatePart::Hole { expression, start } = piece {
                        self.sites.push(Site::new(at, node, start, expression, false));
                    }
                }
            }
            Kind::List(one) => {
                let items = node.items().unwrap_or_default();
                items.iter().for_each(|it| self.walk(at, one, it));
            }
            Kind::OneOrList(one) => {
                node.one_or_items().iter().for_each(|it| self.walk(at, one, it));
            }
            Kind::Map(one) => {
                for (name, value) in node.entries().unwrap_or_default() {
                    let key = name.text().unwrap_or_default();
                    let record = record_of(file, key).or(at.record);
                    self.walk(SiteLocation { key, record, ..at }, one, value);
                }
            }
            Kind::Record(fields) => {
                let sections = shapes::FILES.iter().filter(|it| it.file == file && entry.is_none());
                let sections: Vec<&str> =
                    sections.flat_map(FileShape::sections).map(|(name, _)| name).collect();
                // Entries of sections were looked at as such.
                for field in fields.iter().filter(|it| !sections.contains(&it.name)) {
                    if let Some(value) = node.get(field.name) {
                        let key =
                            if field.name == "text" && !key.is_empty() { key } else { field.name };
                        self.walk(SiteLocation { key, ..at }, &field.kind, value);
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

    /// Kept results of reviews of the pack.
    #[must_use]
    pub fn memo(&self) -> &'a Memo {
        &self.reviewed.memo
    }

    /// Returns the result of a function of a text and of the names of the pack.
    pub(super) fn of_names<T: Send + Sync + 'static>(
        &self,
        function: &'static str,
        text: &str,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.memo().of_text(function, self.reviewed.names_key, text, make)
    }

    /// Returns the result of a function of an expression and of the names that it sees; the default, if the expression
    /// cannot be parsed.
    pub(super) fn of_site<T: Default + Send + Sync + 'static>(
        &self,
        function: &'static str,
        site: &Site<'_>,
        make: fn(&Expr, &Names) -> T,
    ) -> Arc<T> {
        let term = site.term.as_deref();
        let make = || term.map(|it| make(it, site.names(self.names()))).unwrap_or_default();
        match site.has_own_names() {
            true => Arc::new(make()),
            false => self.of_names(function, site.text, make),
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
    pub fn sites_of(&self, entry: &PackEntry<'a>) -> &[Site<'a>] {
        self.sites.get(entry.sites.0..entry.sites.1).unwrap_or_default()
    }

    /// The expression that is the value of a key of an entry.
    pub fn site(&self, entry: &PackEntry<'a>, key: &str) -> Option<&Site<'a>> {
        self.site_of(Some(entry), entry.node.get(key)?)
    }

    /// The expression that a value is, of an entry or of what belongs to none.
    pub fn site_of(&self, entry: Option<&PackEntry<'a>>, value: &Node) -> Option<&Site<'a>> {
        let sites = entry.map_or(self.sites.as_slice(), |it| self.sites_of(it));
        sites.iter().find(|it| std::ptr::eq(it.node, value))
    }

    /// The entries of one file.
    pub fn of<'s>(&'s self, file: &'s str) -> impl Iterator<Item = &'s PackEntry<'a>> {
        self.entries.iter().filter(move |it| it.file == file)
    }

    /// The entry a site belongs to.
    #[must_use]
    pub fn entry_of(&self, site: &Site<'a>) -> Option<&PackEntry<'a>> {
        self.entries.get(site.entry?)
    }

    /// Whether the loader found an error in an expression.
    #[must_use]
    pub fn has_error(&self, site: &Site<'_>) -> bool {
        self.has_error_in(&site.node.span, || site.whole())
    }

    /// Whether the loader found an error anywhere in an entry: what else is odd about it may follow from that.
    #[must_use]
    pub fn is_broken(&self, entry: &PackEntry<'_>) -> bool {
        self.has_error_in(&entry.node.span, || entry.node.span.clone())
    }

    /// Whether the loader found an error in a part of a node. The part is computed only for a node with an error.
    fn has_error_in(&self, node: &Span, part: impl Fn() -> Span) -> bool {
        let errors = self.reviewed.diagnostics.iter().filter(|it| it.level == Level::Error);
        let holds = |whole: &Span, at: usize| (whole.start..whole.end).contains(&at);
        let mut errors =
            errors.filter(|it| holds(node, it.span.start) && it.span.source == node.source);
        errors.any(|it| holds(&part(), it.span.start))
    }

    /// The entry of a pack below that this one changes.
    #[must_use]
    pub fn inherited(&self, entry: &PackEntry<'_>) -> Option<&'a Node> {
        self.reviewed.inherited.get(&(entry.file, entry.name().to_owned())).map(AsRef::as_ref)
    }

    /// What an entry says under a key, or the one that it changes.
    #[must_use]
    pub fn said(&self, entry: &PackEntry<'a>, key: &str) -> Option<&'a Node> {
        let said = entry.node.get(key).or_else(|| self.inherited(entry)?.get(key));
        said.filter(|it| !it.is_null())
    }

    /// The innermost entry that holds a place.
    #[must_use]
    pub fn entry_at(&self, span: &Span) -> Option<&PackEntry<'a>> {
        let holds = |it: &&PackEntry<'a>| {
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
