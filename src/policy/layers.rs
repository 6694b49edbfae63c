//! The files of a pack and of the packs that it extends, in layers.
//!
//! Contains: entries with the layers of their keys, and the lists of all files.
//! Does not contain: how layers are made of files (`layering`), what entries mean.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::shared::SharedValue;
use super::{builtin, remote_pack};
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::{Source, Span};

/// An entry of a list, as several packs write it, the topmost pack first.
#[derive(Debug, Clone)]
pub(super) struct LayerEntry {
    pub(super) id: String,
    /// Earlier ids.
    pub(super) formerly: Vec<String>,
    pub(super) layers: Vec<Arc<Node>>,
    is_own: bool,
    /// Whether the user's pack adds the entry, so that the pack of a project may have another one of this id.
    pub(super) is_of_user: bool,
}

impl LayerEntry {
    pub(super) fn new(id: &str, node: &Node) -> Self {
        let (id, formerly) = (id.to_owned(), Vec::new());
        let layers = Vec::with_capacity(1);
        let mut entry = Self { id, formerly, layers, is_own: false, is_of_user: false };
        entry.put_over(node);
        entry
    }

    /// Puts another layer on top.
    pub(super) fn put_over(&mut self, node: &Node) {
        self.is_own = !is_inherited(&node.span.source);
        self.formerly.extend(former_ids(node).map(|(id, _)| id.to_owned()));
        self.layers.insert(0, Arc::new(node.clone()));
    }

    /// Gives the entry one of its earlier ids back: that of a file that was written for another program.
    pub(super) fn rename(&mut self, id: &str) {
        self.formerly.retain(|it| it != id);
        self.formerly.push(std::mem::replace(&mut self.id, id.to_owned()));
    }

    /// Whether the entry has or had an id.
    pub(super) fn is_named(&self, id: &str) -> bool {
        self.id == id || self.formerly.iter().any(|it| it == id)
    }

    /// The value of a key in the topmost layer that sets it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.layers.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    /// Returns the keys of all layers.
    pub(super) fn map(&self) -> LayeredMap<'_> {
        self.layers.iter().map(AsRef::as_ref).collect()
    }

    /// Whether the topmost layer is not inherited from the built-in pack or a remote one.
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

/// Whether a source is a file of a pack that others extend: the built-in pack or a remote one.
pub(super) fn is_inherited(source: &Source) -> bool {
    builtin::wrote(source) || remote_pack::has(&source.name)
}

/// All entries, or those that a pack above the built-in one puts over it.
pub(super) fn wanted(entries: &Entries, own_only: bool) -> impl Iterator<Item = &LayerEntry> {
    // Entries that are not built yet belong to inherited packs.
    let entries = if own_only { entries.made() } else { Some(&**entries) };
    let entries = entries.into_iter().flatten().map(AsRef::as_ref);
    entries.filter(move |it: &&LayerEntry| !own_only || it.is_own())
}

/// The entries of a list. Packs share the list and its entries until one of them changes an entry.
pub(super) type Entries = SharedValue<Vec<Arc<LayerEntry>>>;

/// A file as several packs write it, the topmost pack first.
pub(super) type Tops = Vec<SharedValue<Node>>;

/// The file and the key of a list of entries. The key is empty if the file is the list.
pub(super) type SectionKey = (&'static str, &'static str);

/// All files of a pack and of the packs below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Layers {
    /// Files with settings.
    pub(super) tops: Arc<BTreeMap<&'static str, Tops>>,
    /// Lists of entries. The files of guards are one list.
    pub(super) lists: Arc<BTreeMap<SectionKey, Entries>>,
    /// Files of packs above the built-in one.
    pub(super) own_files: BTreeSet<&'static str>,
    /// Whether a vocabulary is invalid, so that names can be missing.
    pub(super) incomplete: bool,
    /// Whether the files that are added are those of the user's pack, beneath the pack of a project.
    pub(super) adds_user_pack: bool,
}

/// Files that contain guards. They are one list.
pub const GUARD_FILES: [&str; 8] = [
    "guards.yaml",
    "destructive-commands.yaml",
    "protected-paths.yaml",
    "secrets.yaml",
    "git-discipline.yaml",
    "network-exfiltration.yaml",
    "approve-read.yaml",
    "approve-work.yaml",
];

/// Returns the name under which the list of a file is kept.
pub(super) fn list_name(file: &'static str) -> &'static str {
    if GUARD_FILES.contains(&file) { GUARD_FILES[0] } else { file }
}

impl Layers {
    /// Returns a list of entries in a file.
    pub(super) fn section(&self, file: &'static str, section: &'static str) -> &Entries {
        static NONE: LazyLock<Entries> = LazyLock::new(Entries::default);
        self.lists.get(&(file, section)).unwrap_or(&NONE)
    }

    /// Returns the list of entries that a file is.
    pub(super) fn list(&self, file: &'static str) -> &Entries {
        self.section(list_name(file), "")
    }

    /// Returns all lists of entries that a file is or contains.
    pub(super) fn lists(&self, file: &'static str) -> impl Iterator<Item = &Entries> {
        let name = list_name(file);
        let lists = self.lists.range((name, "")..);
        lists.take_while(move |((of, _), _)| *of == name).map(|(_, list)| list)
    }

    /// Returns a file of settings as each pack writes it, the topmost pack first.
    pub(super) fn top(&self, file: &str) -> &[SharedValue<Node>] {
        self.tops.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the keys of a file of settings.
    pub(super) fn top_map(&self, file: &str) -> LayeredMap<'_> {
        self.top(file).iter().map(|node| &**node).collect()
    }

    /// Whether a pack above the built-in one has one of these files.
    pub(super) fn owns(&self, files: &[&str]) -> bool {
        files.iter().any(|file| self.own_files.contains(file))
    }
}

/// The earlier ids that an entry states, each with its node.
pub(super) fn former_ids(entry: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let items = entry.get("formerly").and_then(Node::items).unwrap_or_default();
    items.iter().filter_map(|node| Some((node.text()?, node)))
}

/// Whether an entry says all that amplihack's format asks for: such a file was written for another
/// program, which replaces its own entries without being told to.
#[must_use]
pub fn is_amplihacks(node: &Node) -> bool {
    ["id", "category", "question", "severity", "checker", "enabled"]
        .iter()
        .all(|key| node.get(key).is_some())
}
