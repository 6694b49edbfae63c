//! Loads a pack: file texts in, policy and every complaint out. Nothing stops at the first error.
//! Lives here: parsing, shapes, and the layering of a pack over the one it extends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::build::{self, Resilience, Scope, Vocabulary};
use super::context::ContextRules;
use super::run::RunPolicy;
use super::shapes::FileShape;
use super::{Consideration, Policy, Settings, builtin, guards, shapes};
use crate::limits;
use crate::script::types::Names;
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{Diagnostic, Level, Source, Span, check, suggest, yaml};
use crate::state::breaker;

/// One pack as read from its folder.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Name shown to people: the folder, or `builtin`.
    pub name: String,
    /// Its files: name within the folder, and the text with the name shown to people.
    pub files: Vec<(String, Arc<Source>)>,
}

/// The files of a pack that could be read, by name.
pub type Files = BTreeMap<&'static str, Node>;

/// Names of programs, and of each the words that follow it.
pub type Programs = BTreeMap<String, BTreeSet<String>>;

/// A pack and what is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    /// The policy, unless something is an error.
    pub policy: Option<Policy>,
    /// Everything wrong, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// What the manifest says about errors, where the manifest itself is sound.
    pub on_error: Option<super::OnError>,
    /// Whether the manifest switches the pack on or off, where the manifest itself is sound.
    pub enabled: Option<bool>,
    /// Built-in sets of guards that the manifest leaves out, where the manifest itself is sound.
    pub sets_off: Vec<&'static str>,
}

/// An entry of a list or map file, the changing layer before the inherited ones.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) layers: Vec<Arc<Node>>,
    is_own: bool,
}

impl Entry {
    fn new(id: String, node: Node) -> Self {
        let mut entry = Self { id, layers: Vec::with_capacity(1), is_own: false };
        entry.put_over(node);
        entry
    }

    /// Puts another layer on top.
    fn put_over(&mut self, node: Node) {
        self.is_own = !builtin::wrote(&node.span.source);
        self.layers.insert(0, Arc::new(node));
    }

    /// The value of a key in the topmost layer that sets it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.layers.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    /// Whether the topmost layer is not of the built-in pack.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Where the entry is written: the id in its topmost layer, or the whole of it.
    pub(super) fn span(&self) -> Option<&Span> {
        let top = self.layers.first()?;
        Some(top.get("id").map_or(&top.span, |id| &id.span))
    }
}

/// Entries of one list; shared with the packs below as long as nothing is put over them.
pub(super) type Entries = Arc<Vec<Entry>>;

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
    pub(super) tops: BTreeMap<&'static str, Vec<Arc<Node>>>,
    /// Their lists of entries, by file and key.
    pub(super) sections: BTreeMap<(&'static str, &'static str), Entries>,
    /// Whether a vocabulary had to be left out, so that names may be missing.
    pub(super) incomplete: bool,
}

impl Layers {
    /// The entries of a section of a file.
    pub(super) fn section(&self, file: &'static str, section: &'static str) -> &[Entry] {
        self.sections.get(&(file, section)).map(|it| it.as_slice()).unwrap_or_default()
    }

    /// Whether a pack above the built-in one says something in a file of settings and lists.
    pub(super) fn owns(&self, file: &str) -> bool {
        let tops = self.tops.get(file).into_iter().flatten();
        let listed = self.sections.iter().filter(|((it, _), _)| *it == file);
        let mut tops = tops;
        tops.any(|it| !builtin::wrote(&it.span.source))
            || listed.flat_map(|(_, entries)| entries.iter()).any(Entry::is_own)
    }

    /// Whether it says something about the resilience systems.
    pub(super) fn owns_resilience(&self) -> bool {
        let lists = [&self.breakers, &self.routes, &self.reactions];
        let files = [
            "dead_letter.yaml",
            "escalation.yaml",
            "signals.yaml",
            "rationalizations.yaml",
            "run.yaml",
            FAILURES,
        ];
        lists.into_iter().flat_map(|it| it.iter()).any(Entry::is_own)
            || files.iter().any(|it| self.owns(it))
    }
}

/// The file that defines most names.
const VOCABULARY: &str = "vocabulary.yaml";
/// The file whose entries are tried in their order.
pub(super) const FAILURES: &str = "failures.yaml";

/// The packs below, read once, for whoever looks at many packs on top of them. Only what those may
/// name is built of it, checkers when one is named.
#[derive(Debug)]
pub struct Base {
    pub(super) layers: Layers,
    pub(super) built: build::Built,
    pub(super) checkers: build::Named,
    pub(super) programs: Arc<Programs>,
}

impl Base {
    /// Reads and builds a pack that others extend.
    #[must_use]
    pub fn new(pack: &Pack) -> Self {
        Self::of(&files_below(&pack.files))
    }

    /// Builds what packs stand on that extend the one with these files.
    #[must_use]
    pub fn of(files: &Files) -> Self {
        let mut diagnostics = Vec::new();
        let mut layers = Layers::default();
        add(&mut layers, files, true, &mut diagnostics);
        let built = build::build(&layers, &Scope::Foundation, &mut diagnostics);
        let checkers = build::Named::new(&layers);
        let programs = Arc::new(programs(&layers, &built));
        Self { layers, built, checkers, programs }
    }
}

/// The programs that command patterns name, in the vocabulary and in guards.
fn programs(layers: &Layers, built: &build::Built) -> Programs {
    let commands = layers.guards.iter().filter_map(|it| it.get("commands"));
    let commands = commands.flat_map(Node::one_or_items).filter_map(Node::text);
    let mut known = Programs::new();
    for pattern in built.vocabulary.patterns().chain(commands) {
        let mut words = pattern.split_whitespace().map(str::to_owned);
        if let Some(program) = words.next() {
            known.entry(program).or_default().extend(words.take(1));
        }
    }
    known
}

/// A pack with its own files as they were read, for whoever looks closer than the loader.
#[derive(Debug)]
pub struct Reviewed {
    /// What the loader complains of.
    pub diagnostics: Vec<Diagnostic>,
    /// The files of the pack itself that could be read, by name.
    pub own: Files,
    /// What the pack and those below it define.
    pub names: Arc<Names>,
    /// Entries of the packs below that it changes, by file and id; the changing one is in `own`.
    pub inherited: BTreeMap<(&'static str, String), Arc<Node>>,
    /// Names that the expressions of one entry alone see, by file and id.
    pub records: BTreeMap<(&'static str, String), Names>,
    /// What its entries mean; those of the packs below are left out.
    pub meant: Meant,
}

/// What a pack means together with those below it.
#[derive(Debug)]
pub struct Meant {
    /// The settings in force.
    pub settings: Settings,
    /// Voices of messages.
    pub voices: BTreeSet<String>,
    /// Considerations that the pack itself writes or changes.
    pub considerations: Vec<Consideration>,
    pub(super) resilience: Arc<Resilience>,
    pub(super) context: Arc<(ContextRules, Vec<String>)>,
    pub(super) session_types: Entries,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Programs that the base knows, whether the pack extends it or not.
    pub(super) programs: Arc<Programs>,
}

impl Meant {
    /// Breakers by the glob over their names.
    #[must_use]
    pub fn breakers(&self) -> &[(String, breaker::Settings)] {
        &self.resilience.breakers
    }

    /// What `run.yaml` says of runs.
    #[must_use]
    pub fn run(&self) -> &RunPolicy {
        &self.resilience.run
    }

    /// What `context.yaml` says of contexts.
    #[must_use]
    pub fn context(&self) -> &ContextRules {
        &self.context.0
    }

    /// Session types in their order, each with its condition.
    pub fn session_types(&self) -> impl Iterator<Item = (&str, &str)> {
        self.session_types.iter().map(|it| {
            let when = it.get("when").and_then(Node::text).unwrap_or_default();
            (it.id.as_str(), when)
        })
    }

    /// Programs that the base knows.
    #[must_use]
    pub fn known_programs(&self) -> &Programs {
        &self.programs
    }

    /// Tools that the vocabulary names.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        let lens = &self.vocabulary.lens;
        lens.shell_tools.iter().chain(&lens.edit_tools).map(String::as_str)
    }
}

/// Loads `pack`, which may extend `builtin`.
#[must_use]
pub fn load(pack: &Pack, builtin: &Pack) -> Loaded {
    let mut diagnostics = Vec::new();
    let own = read_files(&pack.files, &mut diagnostics);
    let manifest = own.get("policyd.yaml");
    let own_name = manifest.and_then(|it| it.get("name")).and_then(Node::text);
    let name = own_name.unwrap_or(&pack.name).to_owned();
    let on_error = manifest
        .and_then(|it| it.get("on_error"))
        .and_then(|it| it.text())
        .and_then(build::on_error);
    let enabled = manifest.and_then(|it| it.get("enabled")).and_then(Node::bool);
    let extends = extends(pack, &own);
    let is_off = |set: &&&str| {
        let said = manifest.and_then(|it| it.get("guard_sets")?.get(set)).and_then(Node::bool);
        !extends || said == Some(false)
    };
    let sets_off = guards::SETS.iter().filter(is_off).copied().collect();
    let mut layers = Layers::default();
    if extends {
        add(&mut layers, &read_files(&builtin.files, &mut diagnostics), true, &mut diagnostics);
    }
    put_over(&mut layers, pack, &own, &mut diagnostics);
    let policy = build::policy(name, build::build(&layers, &Scope::Whole, &mut diagnostics));
    let sound = diagnostics.iter().all(|it| it.level != Level::Error);
    let policy = Some(policy).filter(|_| sound);
    Loaded { policy, diagnostics, on_error, enabled, sets_off }
}

/// Loads `pack`, which may extend what `base` is made of, and keeps what it was made of.
#[must_use]
pub fn review(pack: &Pack, base: &Base) -> Reviewed {
    let mut diagnostics = Vec::new();
    let own = read_files(&pack.files, &mut diagnostics);
    let below = Some(base).filter(|_| extends(pack, &own));
    let mut layers = below.map(|it| it.layers.clone()).unwrap_or_default();
    put_over(&mut layers, pack, &own, &mut diagnostics);
    let scope = below.map_or(Scope::Whole, Scope::Over);
    let built = build::build(&layers, &scope, &mut diagnostics);
    let records = build::own_names(&layers);
    let (meant, names) = build::meant(&layers, built, base);
    let inherited = inherited(&layers, &own);
    Reviewed { diagnostics, own, names, inherited, records, meant }
}

/// The entries that those of a pack's own files change.
fn inherited(layers: &Layers, own: &Files) -> BTreeMap<(&'static str, String), Arc<Node>> {
    let lists: [(&'static str, &[Entry]); 8] = [
        ("reactions.yaml", &layers.reactions),
        ("preferences.yaml", &layers.preferences),
        ("probes.yaml", &layers.probes),
        ("breakers.yaml", &layers.breakers),
        ("routes.yaml", &layers.routes),
        ("session_types.yaml", &layers.session_types),
        ("checkers.yaml", &layers.checkers),
        ("considerations.yaml", &layers.considerations),
    ];
    let sections = layers.sections.iter().map(|((file, _), list)| (*file, list.as_slice()));
    let guards = guards::FILES.into_iter().map(|it| (it, layers.guards.as_slice()));
    let lists = lists.into_iter().chain(sections).chain(guards);
    let lists = lists.filter(|(file, _)| own.contains_key(file));
    let entries = lists.flat_map(|(file, list)| list.iter().map(move |it| (file, it)));
    let changed = entries.filter_map(|(file, it)| {
        let below = it.layers.get(1)?;
        Some(((file, it.id.clone()), Arc::clone(below)))
    });
    changed.collect()
}

/// Whether a pack builds on the built-in one.
fn extends(pack: &Pack, own: &Files) -> bool {
    let named = own.get("policyd.yaml").and_then(|it| it.get("extends"));
    named.is_none_or(names_builtin) && pack.name != builtin::NAME
}

/// Puts a pack's own files over those it extends.
fn put_over(layers: &mut Layers, pack: &Pack, own: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let owns_vocabulary = own.contains_key(VOCABULARY);
    // A folder without a manifest is an amplihack folder: its entries change the inherited ones.
    add(layers, own, manifest_less(pack), diagnostics);
    let written = pack.files.iter().any(|(file, _)| file == VOCABULARY);
    layers.incomplete = written && !owns_vocabulary;
}

fn manifest_less(pack: &Pack) -> bool {
    pack.files.iter().all(|(file, _)| file != "policyd.yaml")
}

fn names_builtin(extends: &Node) -> bool {
    extends.items().is_some_and(|items| items.iter().any(|it| it.text() == Some("builtin")))
}

/// The files of a pack that others extend; what is wrong with them is said where it is looked at.
#[must_use]
pub fn files_below(files: &[(String, Arc<Source>)]) -> Files {
    read_files(files, &mut Vec::new())
}

/// Parses every file and checks its shape; unsound files are left out.
fn read_files(files: &[(String, Arc<Source>)], diagnostics: &mut Vec<Diagnostic>) -> Files {
    let mut nodes = Files::new();
    for (file, source) in files {
        let (node, complaints) = yaml::parse(source);
        diagnostics.extend(complaints);
        let Some(node) = node else { continue };
        let Some(known) = shapes::FILES.iter().find(|it| it.file == file) else {
            diagnostics.push(unknown_file(file, &node));
            continue;
        };
        let before = diagnostics.len();
        if !builtin::wrote(source) {
            // A test holds those of the built-in pack against their shapes.
            check::check(&node, &known.kind, diagnostics);
        }
        if diagnostics.len() == before || matches!(known.kind, Kind::List(_) | Kind::Map(_)) {
            nodes.insert(known.file, node);
        }
    }
    nodes
}

fn unknown_file(file: &str, node: &Node) -> Diagnostic {
    let known: Vec<&str> = shapes::FILES.iter().map(|it| it.file).collect();
    let start = node.span.clone();
    let message = format!("`{file}` is not a file of a pack");
    let found = Diagnostic::error("unknown-file", start, message);
    found.with_help_if(suggest::did_you_mean(file, &known))
}

/// Puts the files of one pack on top of what is there.
fn add(layers: &mut Layers, nodes: &Files, implicit: bool, diagnostics: &mut Vec<Diagnostic>) {
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
    list("tables.yaml", layers.sections.entry(("tables.yaml", "")).or_default());
    let mut map = |file: &'static str, into: &mut Entries| {
        let entries = nodes.get(file).and_then(Node::entries).unwrap_or_default();
        let entries = entries
            .iter()
            .filter_map(|(key, value)| Some((key.text()?.to_owned(), key.clone(), value.clone())));
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
            let into = layers.sections.entry((shape.file, key)).or_default();
            let inherited = into.len();
            layer(into, entries, implicit, diagnostics);
            if shape.file == FAILURES {
                // The first class that fits wins: one's own are tried first.
                Arc::make_mut(into).rotate_left(inherited);
            }
        }
        layers.tops.entry(shape.file).or_default().insert(0, Arc::new(node.clone()));
    }
}

/// The entries of a list with an id each: the id, where it is written, and the whole.
fn identified(list: &Node) -> Vec<(String, Node, Node)> {
    let items = list.items().unwrap_or_default();
    let entries = items.iter().filter_map(|it| {
        let id = it.get("id")?;
        Some((id.text()?.to_owned(), id.clone(), it.clone()))
    });
    entries.collect()
}

/// Adds entries, or puts them over the inherited entries of the same id.
fn layer(
    into: &mut Entries,
    entries: Vec<(String, Node, Node)>,
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
        let repeated = !seen.insert(id.clone());
        let overrides = node.get("override").and_then(Node::bool).unwrap_or(false);
        let place = into.iter().position(|it| it.id == id);
        match place.and_then(|at| into.get_mut(at).map(|entry| (at, entry))) {
            None => {
                if overrides {
                    diagnostics.push(nothing_to_override(&id, &name, into));
                    continue;
                }
                into.push(Entry::new(id, node));
            }
            Some((at, entry))
                if at < inherited
                    && !repeated
                    && (overrides || implicit || is_amplihacks(&node)) =>
            {
                entry.put_over(node);
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
        && let Some(span) = into.last().and_then(Entry::span)
    {
        let message = format!("more than {} entries", limits::RULES_MAX);
        diagnostics.push(Diagnostic::error("too-many-rules", span.clone(), message));
    }
}

/// Whether an entry says all that amplihack's format asks for: such a file was written for another
/// program, which replaces its own entries without being told to.
#[must_use]
pub fn is_amplihacks(node: &Node) -> bool {
    ["id", "category", "question", "severity", "checker", "enabled"]
        .iter()
        .all(|key| node.get(key).is_some())
}

fn nothing_to_override(id: &str, name: &Node, known: &[Entry]) -> Diagnostic {
    let message = format!("there is no inherited `{id}` to override");
    let found = Diagnostic::error("unknown-override", name.span.clone(), message);
    let known: Vec<&str> = known.iter().map(|it| it.id.as_str()).collect();
    match suggest::nearest(id, &known) {
        Some(near) => found.with_help(format!("did you mean `{near}`?")),
        None => found.with_help("leave `override` out to add a new entry"),
    }
}
