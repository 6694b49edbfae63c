//! Puts the files of a pack over those of the packs that it extends.
//!
//! Contains: which entry overrides which, and the order of the entries.
//! Does not contain: what the entries mean.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::layers::{
    Entries, LayerEntry, Layers, SectionKey, Tops, former_ids, is_amplihacks, is_inherited,
    list_name,
};
use super::parse::{Files, read_files};
use super::shapes::{self, FileShape};
use super::shared::SharedValue;
use policyd_base::limits;
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::{Diagnostic, Source, suggest};

/// Lists of which the first true entry decides, and the last inherited entry is always true. Entries of a pack are
/// therefore put before the inherited ones.
const FIRST_DECIDES: [SectionKey; 3] =
    [("session_types.yaml", ""), ("failures.yaml", "classes"), ("signals.yaml", "drift")];

/// How entries of a list are identified.
#[derive(Clone, Copy)]
enum Identity {
    /// The entries are items of a list, each with an `id`.
    Id,
    /// The entries are values of a map; the key is the id.
    Key,
}

/// Returns how the entries of a file are identified. `None` if the file is not a list of entries.
fn identity(shape: &FileShape) -> Option<Identity> {
    let by_key = matches!(shape.kind, Kind::Map(Kind::Record(_))).then_some(Identity::Key);
    matches!(shape.kind, Kind::List(_)).then_some(Identity::Id).or(by_key)
}

/// A file, or a key of a file, that is a list of entries.
struct ListFile {
    file: SharedValue<Node>,
    /// The key of the list. Empty if the file is the list.
    key: &'static str,
    identity: Identity,
}

impl ListFile {
    fn entries(&self) -> Vec<IdentifiedEntry<'_>> {
        let list = if self.key.is_empty() { Some(&*self.file) } else { self.file.get(self.key) };
        list.map(|list| identified(list, self.identity)).unwrap_or_default()
    }
}

/// Returns the layers of the packs below. A file is read when one of its lists or settings is used. The findings in
/// a file are those of the pack that contains it.
pub(super) fn below(files: &[(String, Arc<Source>)]) -> Layers {
    let unread = |name: &str| {
        let file = files.iter().find(|(file, _)| file == name)?;
        let (file, source) = (file.clone(), Arc::clone(&file.1));
        Some(SharedValue::later(move || {
            let read = read_files(&[file], &Memo::off(), &mut Vec::new()).into_values().next();
            read.unwrap_or_else(|| Node::nothing(&source))
        }))
    };
    let (mut tops, mut parts) = (BTreeMap::new(), BTreeMap::<SectionKey, Vec<ListFile>>::new());
    for shape in shapes::FILES {
        let Some(file) = unread(shape.file) else { continue };
        if let Some(identity) = identity(shape) {
            let list = parts.entry((list_name(shape.file), "")).or_default();
            list.push(ListFile { file, key: "", identity });
            continue;
        }
        for (key, _) in shape.sections() {
            let list = parts.entry((shape.file, key)).or_default();
            list.push(ListFile { file: file.clone(), key, identity: Identity::Id });
        }
        tops.insert(shape.file, vec![file]);
    }
    let list = |files: Vec<ListFile>| {
        SharedValue::later(move || {
            let mut list = Entries::default();
            let found = files.iter().flat_map(ListFile::entries);
            let role = LayerRole { is_implicit: true, is_of_user: false };
            layer(&mut list, found.collect(), role, &mut Vec::new());
            list.into_owned()
        })
    };
    let lists = parts.into_iter().map(|(section, parts)| (section, list(parts))).collect();
    Layers { tops: Arc::new(tops), lists: Arc::new(lists), ..Layers::default() }
}

/// Puts the files of one pack on top. If `implicit`, entries override inherited ones without `override: true`.
pub(super) fn add(
    layers: &mut Layers,
    nodes: &Files,
    implicit: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let role = LayerRole { is_implicit: implicit, is_of_user: layers.adds_user_pack };
    let own = nodes.iter().filter(|(_, node)| !is_inherited(&node.span.source));
    layers.own_files.extend(own.map(|(file, _)| *file));
    let (tops, lists) = (Arc::make_mut(&mut layers.tops), Arc::make_mut(&mut layers.lists));
    let mut own = BTreeMap::<SectionKey, Vec<IdentifiedEntry<'_>>>::new();
    for shape in shapes::FILES {
        let Some(node) = nodes.get(shape.file) else { continue };
        if let Some(identity) = identity(shape) {
            let list = own.entry((list_name(shape.file), "")).or_default();
            list.extend(identified(node, identity));
            continue;
        }
        for (key, _) in shape.sections() {
            let list = node.get(key).map(|list| identified(list, Identity::Id));
            own.insert((shape.file, key), list.unwrap_or_default());
        }
        tops.entry(shape.file).or_insert_with(Tops::new).insert(0, SharedValue::new(node.clone()));
    }
    for (section, entries) in own.into_iter().filter(|(_, entries)| !entries.is_empty()) {
        let list = lists.entry(section).or_default();
        let inherited = list.len();
        layer(list, entries, role, diagnostics);
        if FIRST_DECIDES.contains(&section) && list.len() > inherited {
            list.to_mut().rotate_left(inherited);
        }
    }
}

/// An entry in a file.
struct IdentifiedEntry<'n> {
    id: &'n str,
    /// The id as the file states it.
    name: &'n Node,
    node: &'n Node,
}

/// Returns the entries of a list or a map.
fn identified(list: &Node, identity: Identity) -> Vec<IdentifiedEntry<'_>> {
    match identity {
        Identity::Id => {
            let items = list.items().unwrap_or_default().iter();
            let entries = items.filter_map(|node| {
                let name = node.get("id")?;
                Some(IdentifiedEntry { id: name.text()?, name, node })
            });
            entries.collect()
        }
        Identity::Key => {
            let entries = list.entries().unwrap_or_default().iter();
            entries
                .filter_map(|(name, node)| Some(IdentifiedEntry { id: name.text()?, name, node }))
                .collect()
        }
    }
}

/// Where the entries of a list are, by their ids.
struct EntryIndex {
    /// By id.
    ids: BTreeMap<String, usize>,
    /// By id or earlier id, of inherited entries.
    former: BTreeMap<String, usize>,
}

impl EntryIndex {
    /// Returns the places of a list whose entries beyond a number are not inherited. Of two entries with one id, the
    /// first counts.
    fn of(entries: &[Arc<LayerEntry>], inherited: usize) -> Self {
        let (mut ids, mut former) = (BTreeMap::new(), BTreeMap::new());
        for (at, entry) in entries.iter().enumerate() {
            ids.entry(entry.id.clone()).or_insert(at);
            for id in [&entry.id].into_iter().chain(&entry.formerly).filter(|_| at < inherited) {
                former.entry(id.clone()).or_insert(at);
            }
        }
        Self { ids, former }
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.ids.get(id).or_else(|| self.former.get(id)).copied()
    }
}

/// How the entries of a pack join those of the packs below.
#[derive(Debug, Clone, Copy)]
struct LayerRole {
    /// Whether an entry with an inherited id changes the inherited entry without `override: true`.
    is_implicit: bool,
    /// Whether the pack of a project can replace the entries that are added.
    is_of_user: bool,
}

/// Adds entries to a list. An entry that overrides an inherited one becomes a layer of it.
fn layer(
    into: &mut Entries,
    entries: Vec<IdentifiedEntry<'_>>,
    role: LayerRole,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let LayerRole { is_implicit, is_of_user } = role;
    if entries.is_empty() {
        return;
    }
    let into = into.to_mut();
    let inherited = into.len();
    let (mut index, mut seen) = (EntryIndex::of(into, inherited), BTreeSet::new());
    let former: Vec<_> = entries.iter().flat_map(|it| former_ids(it.node)).collect();
    for IdentifiedEntry { id, name, node } in entries {
        if id.chars().count() > limits::ID_CHARS_MAX {
            diagnostics.push(too_long(name));
            continue;
        }
        let overrides = node.get("override").and_then(Node::bool).unwrap_or(false);
        let place = index.find(id);
        // Two ids of one entry are the same id.
        let repeated = !seen.insert(place.unwrap_or(into.len()));
        match place.and_then(|at| into.get_mut(at).map(|entry| (at, entry))) {
            None => {
                if overrides {
                    diagnostics.push(nothing_to_override(id, name, into));
                    continue;
                }
                index.ids.insert(id.to_owned(), into.len());
                let mut entry = LayerEntry::new(id, node);
                entry.is_of_user = is_of_user;
                into.push(Arc::new(entry));
            }
            Some((at, entry))
                if at < inherited && !repeated && !overrides && !is_of_user && entry.is_of_user =>
            {
                *entry = Arc::new(LayerEntry::new(id, node));
            }
            Some((at, entry))
                if at < inherited
                    && !repeated
                    && (overrides || is_implicit || is_amplihacks(node)) =>
            {
                let entry = Arc::make_mut(entry);
                entry.put_over(node);
                let is_renamed = entry.id != id && is_amplihacks(node);
                if is_renamed {
                    entry.rename(id);
                }
                if is_renamed || !entry.formerly.is_empty() {
                    index = EntryIndex::of(into, inherited);
                }
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
    diagnostics.extend(former.iter().filter_map(|(id, node)| taken_id(id, node, into)));
    if into.len() > limits::RULES_MAX
        && let Some(span) = into.last().and_then(|it| it.span())
    {
        let message = format!("more than {} entries", limits::RULES_MAX);
        diagnostics.push(Diagnostic::error("limit-exceeded", span.clone(), message));
    }
}

/// Reports an earlier id that is also the id, or an earlier id, of another entry.
fn taken_id(id: &str, node: &Node, entries: &[Arc<LayerEntry>]) -> Option<Diagnostic> {
    let is_current = entries.iter().any(|it| it.id == id);
    let is_taken = is_current || entries.iter().filter(|it| it.is_named(id)).count() > 1;
    is_taken.then(|| {
        let message = format!("`{id}` is the id of an entry, so it cannot be an earlier id");
        let found = Diagnostic::error("duplicate-id", node.span.clone(), message);
        found.with_help("remove it from `formerly`")
    })
}

fn too_long(name: &Node) -> Diagnostic {
    let message = format!("an id of more than {} characters", limits::ID_CHARS_MAX);
    Diagnostic::error("limit-exceeded", name.span.clone(), message).with_help("shorten the id")
}

fn nothing_to_override(id: &str, name: &Node, known: &[Arc<LayerEntry>]) -> Diagnostic {
    if let Some(example) = policyd_book::example_with(id) {
        // The entry moved there. The rest of the pack stays valid.
        let name_of = example.name;
        let message =
            format!("`{id}` is not in the built-in pack; the example pack `{name_of}` has it");
        let found = Diagnostic::warning("unknown-name", name.span.clone(), message);
        return found.with_help(format!(
            "copy the entry from `policyd init --example {name_of}`, or remove this one"
        ));
    }
    let message = format!("no inherited pack defines `{id}`, so nothing can be overridden");
    let found = Diagnostic::error("unknown-name", name.span.clone(), message);
    let known: Vec<&str> = known.iter().map(|it| it.id.as_str()).collect();
    match suggest::nearest(id, &known) {
        Some(near) => found.suggest(name.renamed(near)),
        None => found.with_help("leave `override` out to add a new entry"),
    }
}
