//! The files of a pack over those of the packs it extends. Lives here: which entry changes which, and what
//! stands on top. What the entries mean is for `build`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::load::{self, Files};
use super::shapes::FileShape;
use super::shared::Shared;
use super::{builtin, guards, shapes, tables};
use crate::limits;
use crate::source::layered_map::LayeredMap;
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{Diagnostic, Source, Span, suggest};

/// The file that defines most names.
pub(super) const VOCABULARY: &str = "vocabulary.yaml";
/// The file whose entries are tried in their order.
pub(super) const FAILURES: &str = "failures.yaml";

/// The rules of which the first that holds says what a drift leads to.
const DRIFT: Section = ("signals.yaml", "drift");

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

    /// Returns the keys of all layers.
    pub(super) fn map(&self) -> LayeredMap<'_> {
        self.layers.iter().map(AsRef::as_ref).collect()
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
pub(super) fn wanted(entries: &Entries, own_only: bool) -> impl Iterator<Item = &Entry> {
    // What nobody made yet is of the packs below.
    let entries = if own_only { entries.made() } else { Some(&**entries) };
    let entries = entries.into_iter().flatten().map(AsRef::as_ref);
    entries.filter(move |it: &&Entry| !own_only || it.is_own())
}

/// Entries of one list; the list and each of them is shared with the packs below as long as nothing is put
/// over it.
pub(super) type Entries = Shared<Vec<Arc<Entry>>>;

/// A file as each pack that has it wrote it, topmost first.
pub(super) type Tops = Vec<Shared<Node>>;

/// All files of a pack and the packs below it, layered.
#[derive(Debug, Clone, Default)]
pub(super) struct Layers {
    pub(super) manifests: Tops,
    pub(super) vocabularies: Tops,
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
    pub(super) messages: Tops,
    /// Files of settings and lists, by their names.
    tops: Arc<BTreeMap<&'static str, Tops>>,
    /// Their lists of entries, by file and key.
    sections: Arc<BTreeMap<Section, Entries>>,
    /// The files in which a pack above the built-in one says something.
    own_files: BTreeSet<&'static str>,
    /// Whether a vocabulary had to be left out, so that names may be missing.
    pub(super) incomplete: bool,
}

/// The file and the key of a list of entries; no key where the file is the list.
pub(super) type Section = (&'static str, &'static str);

impl Layers {
    /// The entries of a section of a file.
    pub(super) fn section(&self, file: &'static str, section: &'static str) -> &Entries {
        static NONE: LazyLock<Entries> = LazyLock::new(Entries::default);
        self.sections.get(&(file, section)).unwrap_or(&NONE)
    }

    /// All lists of entries that a file is, belongs to or holds.
    pub(super) fn lists(&self, file: &'static str) -> impl Iterator<Item = &Entries> {
        let whole = match file {
            "preferences.yaml" => Some(&self.preferences),
            "probes.yaml" => Some(&self.probes),
            "breakers.yaml" => Some(&self.breakers),
            "routes.yaml" => Some(&self.routes),
            "session_types.yaml" => Some(&self.session_types),
            "checkers.yaml" => Some(&self.checkers),
            "considerations.yaml" => Some(&self.considerations),
            "reactions.yaml" => Some(&self.reactions),
            other => guards::FILES.contains(&other).then_some(&self.guards),
        };
        let sections = self.sections.range((file, "")..);
        let sections = sections.take_while(move |((of, _), _)| *of == file).map(|(_, list)| list);
        whole.into_iter().chain(sections)
    }

    /// A file of settings and lists, as each pack that has it wrote it, topmost first.
    pub(super) fn top(&self, file: &str) -> &[Shared<Node>] {
        self.tops.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the keys of a file of settings.
    pub(super) fn top_map(&self, file: &str) -> LayeredMap<'_> {
        self.top(file).iter().map(|node| &**node).collect()
    }

    /// Whether a pack above the built-in one says something in one of these files.
    pub(super) fn owns(&self, files: &[&str]) -> bool {
        files.iter().any(|it| self.own_files.contains(it))
    }
}

/// Where the layers keep something.
type Seat<T> = fn(&mut Layers) -> &mut T;

/// The entries of a file.
type Finder = fn(&Node) -> Vec<Identified<'_>>;

/// The files that are lists, or maps, of entries as a whole; guards have several files, and are one list.
const LISTS: [(&[&str], Finder, Seat<Entries>); 10] = [
    (&["preferences.yaml"], identified, |it| &mut it.preferences),
    (&["probes.yaml"], identified, |it| &mut it.probes),
    (&["routes.yaml"], identified, |it| &mut it.routes),
    (&["session_types.yaml"], identified, |it| &mut it.session_types),
    (&["considerations.yaml"], identified, |it| &mut it.considerations),
    (&["reactions.yaml"], identified, |it| &mut it.reactions),
    (&guards::FILES, identified, |it| &mut it.guards),
    (&[tables::FILE], identified, |it| {
        Arc::make_mut(&mut it.sections).entry((tables::FILE, "")).or_default()
    }),
    (&["checkers.yaml"], keyed, |it| &mut it.checkers),
    (&["breakers.yaml"], keyed, |it| &mut it.breakers),
];

/// Files that are kept as they were written.
const TOPS: [(&str, Seat<Tops>); 3] = [
    ("policyd.yaml", |it| &mut it.manifests),
    (VOCABULARY, |it| &mut it.vocabularies),
    ("messages.yaml", |it| &mut it.messages),
];

/// Files that hold settings at the top and lists of entries below.
fn with_sections() -> impl Iterator<Item = &'static FileShape> {
    let other = ["policyd.yaml", VOCABULARY];
    shapes::FILES
        .iter()
        .filter(move |it| matches!(it.kind, Kind::Record(_)) && !other.contains(&it.file))
}

/// The files of a pack that others extend, each read when somebody looks at what it holds; what is wrong with
/// them is said where they are looked at themselves.
pub(super) fn below(files: &[(String, Arc<Source>)]) -> Layers {
    let unread = |name: &str| {
        let file = files.iter().find(|(it, _)| it == name)?;
        let (file, source) = (file.clone(), Arc::clone(&file.1));
        Some(Shared::later(move || {
            let read = load::read_files(&[file], &mut Vec::new()).into_values().next();
            read.unwrap_or_else(|| Node::nothing(&source))
        }))
    };
    let mut layers = Layers::default();
    for (names, find, seat) in LISTS {
        let files: Vec<Shared<Node>> = names.iter().filter_map(|it| unread(it)).collect();
        *seat(&mut layers) = Shared::later(move || entries(files.iter().flat_map(|it| find(it))));
    }
    for (file, seat) in TOPS {
        *seat(&mut layers) = unread(file).into_iter().collect();
    }
    let (mut tops, mut sections) = (BTreeMap::new(), Arc::unwrap_or_clone(layers.sections));
    for shape in with_sections() {
        let Some(file) = unread(shape.file) else { continue };
        for (key, _) in shape.sections() {
            let file = file.clone();
            let list =
                Shared::later(move || entries(file.get(key).into_iter().flat_map(identified)));
            sections.insert((shape.file, key), list);
        }
        tops.insert(shape.file, vec![file]);
    }
    Layers { tops: Arc::new(tops), sections: Arc::new(sections), ..layers }
}

/// Entries that nothing is below of.
fn entries<'n>(found: impl Iterator<Item = Identified<'n>>) -> Vec<Arc<Entry>> {
    let mut list = Entries::default();
    layer(&mut list, found.collect(), true, &mut Vec::new());
    list.into_owned()
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
    for (names, find, seat) in LISTS {
        let files = names.iter().filter_map(|it| nodes.get(it));
        let found: Vec<Identified<'_>> = files.flat_map(find).collect();
        if found.is_empty() {
            continue;
        }
        let into = seat(layers);
        let inherited = into.len();
        layer(into, found, implicit, diagnostics);
        // The last inherited type holds always: what comes after it would never be reached.
        if names == ["session_types.yaml"] && into.len() > inherited {
            into.to_mut().rotate_left(inherited);
        }
    }
    for (file, seat) in TOPS {
        if let Some(node) = nodes.get(file) {
            seat(layers).insert(0, Shared::new(node.clone()));
        }
    }
    for shape in with_sections() {
        let Some(node) = nodes.get(shape.file) else { continue };
        for (key, _) in shape.sections() {
            let found = node.get(key).map(identified).unwrap_or_default();
            let into = Arc::make_mut(&mut layers.sections).entry((shape.file, key)).or_default();
            let inherited = into.len();
            layer(into, found, implicit, diagnostics);
            let first_wins = shape.file == FAILURES || (shape.file, key) == DRIFT;
            if first_wins && into.len() > inherited {
                // The first that fits wins, and the last inherited one always fits: one's own are tried first.
                into.to_mut().rotate_left(inherited);
            }
        }
        let tops = Arc::make_mut(&mut layers.tops);
        tops.entry(shape.file).or_default().insert(0, Shared::new(node.clone()));
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

/// The entries of a map by their keys.
fn keyed(map: &Node) -> Vec<Identified<'_>> {
    let entries = map.entries().unwrap_or_default();
    entries.iter().filter_map(|(key, value)| Some((key.text()?, key, value))).collect()
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
    let into = into.to_mut();
    let inherited = into.len();
    let mut seen = BTreeSet::new();
    for (id, name, node) in entries {
        if id.chars().count() > limits::ID_CHARS_MAX {
            diagnostics.push(too_long(name));
            continue;
        }
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

fn too_long(name: &Node) -> Diagnostic {
    let message = format!("an id of more than {} characters", limits::ID_CHARS_MAX);
    Diagnostic::error("id-too-long", name.span.clone(), message).with_help("shorten the id")
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
