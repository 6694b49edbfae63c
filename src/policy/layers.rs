//! The files of a pack over those of the packs it extends. Lives here: which entry changes which, and what
//! stands on top. What the entries mean is for `build`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::load::Files;
use super::shapes::FileShape;
use super::{builtin, guards, shapes, tables};
use crate::limits;
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{Diagnostic, Span, suggest};

/// The file that defines most names.
pub(super) const VOCABULARY: &str = "vocabulary.yaml";
/// The file whose entries are tried in their order.
pub(super) const FAILURES: &str = "failures.yaml";

/// An entry of a list or map file, the changing layer before the inherited ones.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) layers: Vec<Arc<Node>>,
    is_own: bool,
}

impl Entry {
    fn new(id: &str, node: &Node) -> Self {
        let id = id.to_owned();
        let mut entry = Self { id, layers: Vec::with_capacity(1), is_own: false };
        entry.put_over(node);
        entry
    }

    /// Puts another layer on top.
    fn put_over(&mut self, node: &Node) {
        self.is_own = !builtin::wrote(&node.span.source);
        self.layers.insert(0, Arc::new(node.clone()));
    }

    /// The value of a key in the topmost layer that sets it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.layers.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    /// Whether the topmost layer is not of the built-in pack.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether it is in use: `enabled` says otherwise.
    pub(super) fn is_used(&self) -> bool {
        self.get("enabled").and_then(Node::bool) != Some(false)
    }

    /// Where the entry is written: the id in its topmost layer, or the whole of it.
    pub(super) fn span(&self) -> Option<&Span> {
        let top = self.layers.first()?;
        Some(top.get("id").map_or(&top.span, |id| &id.span))
    }
}

/// All entries, or those that a pack above the built-in one puts over it.
pub(super) fn wanted(entries: &[Arc<Entry>], own_only: bool) -> impl Iterator<Item = &Entry> {
    entries.iter().map(AsRef::as_ref).filter(move |it: &&Entry| !own_only || it.is_own())
}

/// Entries of one list; the list and each of them is shared with the packs below as long as nothing is put
/// over it.
pub(super) type Entries = Arc<Vec<Arc<Entry>>>;

/// All files of a pack and the packs below it, layered.
#[derive(Debug, Clone, Default)]
pub(super) struct Layers {
    /// Manifests and vocabularies, topmost first.
    pub(super) manifests: Vec<Arc<Node>>,
    pub(super) vocabularies: Vec<Arc<Node>>,
    pub(super) preferences: Entries,
    pub(super) probes: Entries,
    pub(super) breakers: Entries,
    pub(super) routes: Entries,
    pub(super) session_types: Entries,
    pub(super) checkers: Entries,
    pub(super) considerations: Entries,
    pub(super) reactions: Entries,
    /// Guards of all their files.
    pub(super) guards: Entries,
    pub(super) messages: Vec<Arc<Node>>,
    /// Files of settings and lists, topmost first, by their names.
    tops: Arc<BTreeMap<&'static str, Vec<Arc<Node>>>>,
    /// Their lists of entries, by file and key.
    pub(super) sections: Arc<BTreeMap<(&'static str, &'static str), Entries>>,
    /// The files in which a pack above the built-in one says something.
    own_files: BTreeSet<&'static str>,
    /// Whether a vocabulary had to be left out, so that names may be missing.
    pub(super) incomplete: bool,
}

impl Layers {
    /// The entries of a section of a file.
    pub(super) fn section(&self, file: &'static str, section: &'static str) -> &[Arc<Entry>] {
        self.sections.get(&(file, section)).map(|it| it.as_slice()).unwrap_or_default()
    }

    /// A file of settings and lists, as each pack that has it wrote it, topmost first.
    pub(super) fn top(&self, file: &str) -> &[Arc<Node>] {
        self.tops.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a pack above the built-in one says something in one of these files.
    pub(super) fn owns(&self, files: &[&str]) -> bool {
        files.iter().any(|it| self.own_files.contains(it))
    }
}

/// Puts the files of one pack on top of what is there; whether its entries change inherited ones without
/// saying so.
pub(super) fn add(
    layers: &mut Layers,
    nodes: &Files,
    implicit: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let own = nodes.iter().filter(|(_, node)| !builtin::wrote(&node.span.source));
    layers.own_files.extend(own.map(|(file, _)| *file));
    let mut list = |file: &'static str, into: &mut Entries| {
        // Guards have several files, and are one list.
        let files = if file == guards::FILES[0] { guards::FILES.as_slice() } else { &[file] };
        let found = files.iter().filter_map(|it| nodes.get(it)).flat_map(identified);
        layer(into, found.collect(), implicit, diagnostics);
    };
    list("preferences.yaml", &mut layers.preferences);
    list("probes.yaml", &mut layers.probes);
    list("routes.yaml", &mut layers.routes);
    let inherited = layers.session_types.len();
    list("session_types.yaml", &mut layers.session_types);
    // The last inherited type holds always: what comes after it would never be reached.
    if layers.session_types.len() > inherited {
        Arc::make_mut(&mut layers.session_types).rotate_left(inherited);
    }
    list("considerations.yaml", &mut layers.considerations);
    list("reactions.yaml", &mut layers.reactions);
    list("guards.yaml", &mut layers.guards);
    if nodes.contains_key(tables::FILE) {
        let sections = Arc::make_mut(&mut layers.sections);
        list(tables::FILE, sections.entry((tables::FILE, "")).or_default());
    }
    let mut map = |file: &'static str, into: &mut Entries| {
        let entries = nodes.get(file).and_then(Node::entries).unwrap_or_default();
        let entries = entries.iter().filter_map(|(key, value)| Some((key.text()?, key, value)));
        layer(into, entries.collect(), implicit, diagnostics);
    };
    map("checkers.yaml", &mut layers.checkers);
    map("breakers.yaml", &mut layers.breakers);
    let top = |file: &str, into: &mut Vec<Arc<Node>>| {
        if let Some(node) = nodes.get(file) {
            into.insert(0, Arc::new(node.clone()));
        }
    };
    top("policyd.yaml", &mut layers.manifests);
    top(VOCABULARY, &mut layers.vocabularies);
    top("messages.yaml", &mut layers.messages);
    add_sections(layers, nodes, implicit, diagnostics);
}

/// Whether a file holds settings at the top and lists of entries below.
fn holds_sections(shape: &FileShape) -> bool {
    matches!(shape.kind, Kind::Record(_)) && !["policyd.yaml", VOCABULARY].contains(&shape.file)
}

/// Files that hold settings at the top and lists of entries below.
fn add_sections(
    layers: &mut Layers,
    nodes: &Files,
    implicit: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for shape in shapes::FILES.iter().filter(|it| holds_sections(it)) {
        let Some(node) = nodes.get(shape.file) else { continue };
        for (key, _) in shape.sections() {
            let entries = node.get(key).map(identified).unwrap_or_default();
            let into = Arc::make_mut(&mut layers.sections).entry((shape.file, key)).or_default();
            let inherited = into.len();
            layer(into, entries, implicit, diagnostics);
            if shape.file == FAILURES {
                // The first class that fits wins: one's own are tried first.
                Arc::make_mut(into).rotate_left(inherited);
            }
        }
        let tops = Arc::make_mut(&mut layers.tops);
        tops.entry(shape.file).or_default().insert(0, Arc::new(node.clone()));
    }
}

/// An entry that is put in: its id, where that is written, and the whole.
type Identified<'n> = (&'n str, &'n Node, &'n Node);

/// The entries of a list with an id each.
fn identified(list: &Node) -> Vec<Identified<'_>> {
    let items = list.items().unwrap_or_default();
    let entries = items.iter().filter_map(|it| {
        let id = it.get("id")?;
        Some((id.text()?, id, it))
    });
    entries.collect()
}

/// Adds entries, or puts them over the inherited entries of the same id.
fn layer(
    into: &mut Entries,
    entries: Vec<Identified<'_>>,
    implicit: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if entries.is_empty() {
        return;
    }
    let into = Arc::make_mut(into);
    let inherited = into.len();
    let mut seen = BTreeSet::new();
    for (id, name, node) in entries {
        let repeated = !seen.insert(id);
        let overrides = node.get("override").and_then(Node::bool).unwrap_or(false);
        let place = into.iter().position(|it| it.id == id);
        match place.and_then(|at| into.get_mut(at).map(|entry| (at, entry))) {
            None => {
                if overrides {
                    diagnostics.push(nothing_to_override(id, name, into));
                    continue;
                }
                into.push(Arc::new(Entry::new(id, node)));
            }
            Some((at, entry))
                if at < inherited
                    && !repeated
                    && (overrides || implicit || is_amplihacks(node)) =>
            {
                Arc::make_mut(entry).put_over(node);
            }
            Some((at, entry)) => {
                let message = format!("`{id}` is defined already");
                let mut found = Diagnostic::error("duplicate-id", name.span.clone(), message);
                if let Some(first) = entry.span() {
                    found = found.with_related(first.clone(), "first defined here");
                }
                if at < inherited && !repeated {
                    found = found.with_help("write `override: true` to change the inherited entry");
                }
                diagnostics.push(found);
            }
        }
    }
    if into.len() > limits::RULES_MAX
        && let Some(span) = into.last().and_then(|it| it.span())
    {
        let message = format!("more than {} entries", limits::RULES_MAX);
        diagnostics.push(Diagnostic::error("too-many-rules", span.clone(), message));
    }
}

/// Whether an entry says all that amplihack's format asks for: such a file was written for another
/// program, which replaces its own entries without being told to.
#[must_use]
pub(crate) fn is_amplihacks(node: &Node) -> bool {
    ["id", "category", "question", "severity", "checker", "enabled"]
        .iter()
        .all(|key| node.get(key).is_some())
}

fn nothing_to_override(id: &str, name: &Node, known: &[Arc<Entry>]) -> Diagnostic {
    let message = format!("there is no inherited `{id}` to override");
    let found = Diagnostic::error("unknown-override", name.span.clone(), message);
    let known: Vec<&str> = known.iter().map(|it| it.id.as_str()).collect();
    match suggest::nearest(id, &known) {
        Some(near) => found.with_help(format!("did you mean `{near}`?")),
        None => found.with_help("leave `override` out to add a new entry"),
    }
}
