//! A pack for whoever looks closer than the loader: what it was made of, and what is wrong with it. Packs
//! that stand on the same one are looked at on top of it, and it is read once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::build::{self, Resilience};
pub use super::considerations::{DEFAULT_SESSION_TYPE, applicable_types};
use super::context::{ContextFile, ContextRules};
use super::layering;
use super::layers::{Entry, Layers};
use super::load;
use super::parse::{Files, read_files};
use super::run::RunPolicy;
use super::shared::Shared;
use super::vocabulary::Vocabulary;
use super::{Consideration, Pack, Settings, tables};
use crate::facts::glob::word_matches;
use crate::script::types::Names;
use crate::source::Diagnostic;
use crate::source::node::Node;
use crate::state::breaker;

/// Names of programs, and of each the words that follow it.
pub type Programs = BTreeMap<String, BTreeSet<String>>;

/// The packs below, for whoever looks at many packs on top of them: what those look at is read and built
/// once, and nothing else.
#[derive(Debug)]
pub struct Base {
    layers: Layers,
    built: build::Foundation,
    programs: Shared<Programs>,
}

impl Base {
    /// What packs stand on that extend this one.
    #[must_use]
    pub fn new(pack: &Pack) -> Self {
        let layers = layering::below(&pack.files);
        let built = build::foundation(&layers);
        let (below, vocabulary) = (layers.clone(), Arc::clone(&built.vocabulary));
        let programs = Shared::later(move || programs(&below, &vocabulary));
        Self { layers, built, programs }
    }
}

/// The programs that command patterns name, in the vocabulary and in guards.
fn programs(layers: &Layers, vocabulary: &Vocabulary) -> Programs {
    let commands = layers.list("guards.yaml").iter().filter_map(|it| it.get("commands"));
    let commands = commands.flat_map(Node::one_or_items).filter_map(Node::text);
    let mut known = Programs::new();
    for pattern in vocabulary.patterns().chain(commands) {
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
    /// Considerations that the pack itself writes or changes.
    pub considerations: Vec<Consideration>,
    pub(super) voices: Shared<BTreeSet<String>>,
    pub(super) resilience: Shared<Resilience>,
    pub(super) context: Shared<ContextFile>,
    pub(super) layers: Layers,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Programs that the base knows, whether the pack extends it or not.
    pub(super) programs: Shared<Programs>,
}

impl Meant {
    /// Voices of messages.
    pub fn voices(&self) -> impl Iterator<Item = &str> {
        self.voices.iter().map(String::as_str)
    }

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
        &self.context.rules
    }

    /// Session types in their order, each with its condition.
    pub fn session_types(&self) -> impl Iterator<Item = (&str, &str)> {
        self.layers.list("session_types.yaml").iter().map(|it| {
            let when = it.get("when").and_then(Node::text).unwrap_or_default();
            (it.id.as_str(), when)
        })
    }

    /// Ids of the entries of a section of a file, those of the packs below among them.
    pub fn ids(&self, file: &'static str, section: &'static str) -> impl Iterator<Item = &str> {
        self.layers.section(file, section).iter().map(|it| it.id.as_str())
    }

    /// Ids of all entries of a file that is a list of them, those of the packs below among them.
    pub fn ids_of(&self, file: &'static str) -> impl Iterator<Item = &str> {
        self.layers.lists(file).flat_map(|list| list.iter().map(|it| it.id.as_str()))
    }

    /// Ids of the guards that may be asked, those of the packs below among them.
    pub fn guards(&self) -> impl Iterator<Item = &str> {
        self.layers.list("guards.yaml").iter().filter(|it| it.is_used()).map(|it| it.id.as_str())
    }

    /// The tools that a guard looks at, by glob; none, where it looks at all.
    #[must_use]
    pub fn tools_of(&self, guard: &str) -> Vec<&str> {
        let entry = self.layers.list("guards.yaml").iter().find(|it| it.id == guard);
        let nodes = entry.and_then(|it| it.get("tools")).map(Node::one_or_items);
        nodes.unwrap_or_default().iter().filter_map(Node::text).collect()
    }

    /// The parts of the prompt of a run that are used, those of the packs below among them.
    pub fn prompt_parts(&self) -> impl Iterator<Item = &str> {
        let parts = self.layers.section("run.yaml", "prompt").iter().filter(|it| it.is_used());
        parts.filter_map(|it| it.get("text")?.text())
    }

    /// Probes, and whether each is switched on.
    pub fn all_probes(&self) -> impl Iterator<Item = (&str, bool)> {
        self.layers.list("probes.yaml").iter().map(|it| (it.id.as_str(), it.is_used()))
    }

    /// Tools that run commands.
    pub fn shell_tools(&self) -> impl Iterator<Item = &str> {
        self.vocabulary.lens.shell_tools.iter().map(String::as_str)
    }

    /// The fields that `signals.yaml` gives a signal, where it gives it some.
    #[must_use]
    pub fn signal_fields(&self, name: &str) -> Option<&[(Node, Node)]> {
        let kinds = self.layers.section("signals.yaml", "signals");
        let exact = kinds.iter().find(|it| it.id == name);
        let fitting = kinds.iter().filter(|it| word_matches(&it.id, name));
        exact.or_else(|| fitting.max_by_key(|it| it.id.len()))?.get("fields")?.entries()
    }

    /// Names of breakers that something of the pack tells of calls or asks, beside those of probes; what a
    /// template fills in is `*`.
    pub fn told_breakers(&self) -> impl Iterator<Item = String> {
        let reactions = self.layers.list("reactions.yaml").iter();
        let channels = self.layers.section("escalation.yaml", "channels").iter();
        let own = reactions.chain(channels).filter_map(|it| it.get("breaker")?.text());
        let routes =
            self.layers.list("routes.yaml").iter().filter_map(|it| it.get("tiers")?.items());
        let tiers = routes.flatten().filter_map(|it| it.get("breaker")?.text());
        own.chain(tiers).map(|name| match name.split_once("${") {
            Some((before, _)) => format!("{before}*"),
            None => name.to_owned(),
        })
    }

    /// Names of the breakers of probes.
    pub fn probe_breakers(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.layers.list("probes.yaml").iter().map(|it| {
            match it.get("breaker").and_then(Node::text) {
                Some(own) => Cow::Borrowed(own),
                None => Cow::Owned(format!("probe/{}", it.id)),
            }
        })
    }

    /// Probes whose answer is a text.
    pub fn text_probes(&self) -> impl Iterator<Item = &str> {
        let says = |it: &&Arc<Entry>| it.get("parse").is_some_and(|it| it.says("text"));
        self.layers.list("probes.yaml").iter().filter(says).map(|it| it.id.as_str())
    }

    /// The session types that each consideration in use is for, those of the packs below among them.
    pub fn asked_of(&self) -> impl Iterator<Item = Vec<&str>> {
        self.layers
            .list("considerations.yaml")
            .iter()
            .filter(|it| it.is_used())
            .map(|it| applicable_types(it.get("applicable_session_types")))
    }

    /// Classes of failures and the names of errors that each has, those of the packs below among them.
    pub fn failure_classes(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.layers.section("failures.yaml", "classes").iter().map(|it| {
            let errors = it.get("errors").and_then(Node::items).unwrap_or_default();
            (it.id.as_str(), errors.iter().filter_map(Node::text).collect())
        })
    }

    /// Probes, and the words of their commands.
    pub fn probe_commands(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.layers.list("probes.yaml").iter().filter_map(|it| {
            let words = it.get("command")?.items()?.iter().filter_map(Node::text).collect();
            Some((it.id.as_str(), words))
        })
    }

    /// Programs that the base knows.
    #[must_use]
    pub fn known_programs(&self) -> &Programs {
        &self.programs
    }

    /// Programs that only start others.
    pub fn wrappers(&self) -> impl Iterator<Item = &str> {
        let wrappers = self.vocabulary.lens.wrappers.iter().filter(|it| !it.kept);
        wrappers.map(|it| it.command.as_str())
    }

    /// Options of a program, or of its subcommands, that take a value.
    pub fn value_options<'m>(&'m self, program: &'m str) -> impl Iterator<Item = &'m str> {
        let rows = self.vocabulary.lens.value_options.iter();
        let own = rows.filter(move |it| it.program.split(' ').next() == Some(program));
        own.flat_map(|it| it.options.iter().map(String::as_str))
    }

    /// Tools that read files.
    pub fn read_tools(&self) -> impl Iterator<Item = &str> {
        self.vocabulary.knowledge.read_tools.iter().map(String::as_str)
    }

    /// Tools that the vocabulary names.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        let lens = &self.vocabulary.lens;
        lens.shell_tools.iter().chain(&lens.edit_tools).map(String::as_str)
    }
}

impl Reviewed {
    /// Loads `pack`, which may extend what `base` is made of, and keeps what it was made of.
    #[must_use]
    pub fn new(pack: &Pack, base: &Base) -> Self {
        let mut diagnostics = Vec::new();
        let own = read_files(&pack.files, &mut diagnostics);
        let below = Some(base).filter(|_| load::extends(pack, &own));
        let mut layers = below.map(|it| it.layers.clone()).unwrap_or_default();
        load::put_over(&mut layers, pack, &own, &mut diagnostics);
        let built = build::build(&layers, below.map(|base| &base.built), &mut diagnostics);
        let records = tables::own_names(&layers);
        let inherited = inherited(&layers, &own);
        let meant = Meant {
            settings: built.settings,
            voices: built.voices,
            considerations: built.considerations,
            resilience: built.resilience,
            context: built.context,
            layers,
            vocabulary: built.vocabulary,
            programs: base.programs.clone(),
        };
        Self { diagnostics, own, names: built.names, inherited, records, meant }
    }
}

/// The entries that those of a pack's own files change.
fn inherited(layers: &Layers, own: &Files) -> BTreeMap<(&'static str, String), Arc<Node>> {
    let entries = own.keys().flat_map(|file| layers.lists(file).map(move |list| (*file, list)));
    let entries = entries.flat_map(|(file, list)| list.iter().map(move |it| (file, it)));
    let changed = entries.filter_map(|(file, it)| {
        let below = it.layers.get(1)?;
        Some(((file, it.id.clone()), Arc::clone(below)))
    });
    changed.collect()
}
