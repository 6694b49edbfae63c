//! A pack with its nodes and findings, for lint. The pack that several packs extend is read and built once, and only
//! as far as lint uses it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::build::{self, Resilience};
pub use super::considerations::{DEFAULT_SESSION_TYPE, applicable_types};
use super::context::{ContextFile, ContextRules};
use super::layering;
use super::layers::{LayerEntry, Layers};
use super::load;
use super::parse::{Files, read_files};
use super::run::RunPolicy;
use super::shared::SharedValue;
use super::vocabulary::Vocabulary;
use super::{Check, ManifestSettings, Pack, remote, tables};
use policyd_fact_table::types::Names;
use policyd_facts::glob::word_matches;
use policyd_state::breaker;
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::{Diagnostic, Level};

/// Names of programs, each with the words that can follow it.
pub type Programs = BTreeMap<String, BTreeSet<String>>;

/// The packs that many packs extend. Each part is read and built once, when it is used first.
#[derive(Debug)]
pub struct Base {
    layers: Layers,
    built: build::Foundation,
    programs: SharedValue<Programs>,
    memo: Arc<Memo>,
}

impl Base {
    /// Returns the base of packs that extend `pack`.
    #[must_use]
    pub fn new(pack: &Pack) -> Self {
        let layers = layering::below(&pack.files);
        let built = build::foundation(&layers);
        let (below, vocabulary) = (layers.clone(), Arc::clone(&built.vocabulary));
        let programs = SharedValue::later(move || programs(&below, &vocabulary));
        Self { layers, built, programs, memo: Arc::new(Memo::off()) }
    }

    /// Keeps results of reviews, for a program that reviews a pack after each change.
    #[must_use]
    pub fn with_memo(self) -> Self {
        Self { memo: Arc::new(Memo::on()), ..self }
    }

    /// The kept results of reviews.
    #[must_use]
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// Returns the base of a pack that also extends remote packs. Reports the errors in these.
    fn with_remote(
        &self,
        packs: &[Pack],
        extends_builtin: bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut layers = if extends_builtin { self.layers.clone() } else { Layers::default() };
        let mut found = Vec::new();
        load::put_remote(&mut layers, packs, &mut found);
        build::build(&layers, None, &self.memo, &mut found);
        diagnostics.extend(found.into_iter().filter(|it| it.level == Level::Error));
        let built = build::foundation(&layers);
        let (programs, memo) = (self.programs.clone(), Arc::clone(&self.memo));
        Self { layers, built, programs, memo }
    }
}

/// Returns the programs of the command patterns in the vocabulary and in guards.
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

/// A pack with the nodes of its files.
#[derive(Debug)]
pub struct ReviewedPolicy {
    /// Findings of the loader.
    pub diagnostics: Vec<Diagnostic>,
    /// Valid files of the pack, by name.
    pub own: Files,
    /// Names that the pack and the packs below it define.
    pub names: Arc<Names>,
    /// Inherited entries that the pack overrides, by file and id.
    pub inherited: BTreeMap<(&'static str, String), Arc<Node>>,
    /// Names that only the expressions of one entry see, by file and id.
    pub records: BTreeMap<(&'static str, String), Names>,
    /// Content of the entries of the pack.
    pub meant: Meant,
    /// Whether the pack, or a remote pack that it extends, extends the built-in pack.
    pub extends_builtin: bool,
    /// Kept results of reviews.
    pub memo: Arc<Memo>,
    /// Hash of `names`, the context of results of expressions.
    pub names_key: u64,
}

/// Content of a pack, together with the packs below it.
#[derive(Debug)]
pub struct Meant {
    /// Settings of the manifest.
    pub settings: ManifestSettings,
    /// Checks that the pack adds or overrides.
    pub considerations: Vec<Check>,
    pub(super) voices: SharedValue<BTreeSet<String>>,
    pub(super) resilience: SharedValue<Resilience>,
    pub(super) context: SharedValue<ContextFile>,
    pub(super) layers: Layers,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Programs of the base, even if the pack does not extend it.
    pub(super) programs: SharedValue<Programs>,
}

impl Meant {
    /// Voices of messages.
    pub fn voices(&self) -> impl Iterator<Item = &str> {
        self.voices.iter().map(String::as_str)
    }

    /// Breakers by the glob over their names.
    #[must_use]
    pub fn breakers(&self) -> &[(String, breaker::BreakerSettings)] {
        &self.resilience.breakers
    }

    /// Returns the settings of runs.
    #[must_use]
    pub fn run(&self) -> &RunPolicy {
        &self.resilience.run
    }

    /// Returns the windows and tiers of contexts.
    #[must_use]
    pub fn context(&self) -> &ContextRules {
        &self.context.rules
    }

    /// Session types in their order, each with its condition.
    pub fn session_types(&self) -> impl Iterator<Item = (&str, &str)> {
        self.layers.list("session_types.yaml").iter().map(|entry| {
            let when = entry.get("when").and_then(Node::text).unwrap_or_default();
            (entry.id.as_str(), when)
        })
    }

    /// Checks and their categories, those of the packs below among them.
    pub fn categories(&self) -> impl Iterator<Item = (&str, &str)> {
        let checks = self.layers.list("considerations.yaml").iter();
        checks.filter_map(|it| Some((it.id.as_str(), it.get("category")?.text()?)))
    }

    /// Ids of the entries of a section of a file, those of the packs below among them.
    pub fn ids(&self, file: &'static str, section: &'static str) -> impl Iterator<Item = &str> {
        self.layers.section(file, section).iter().map(|it| it.id.as_str())
    }

    /// Ids of all entries of a file that is a list of them, those of the packs below among them.
    pub fn ids_of(&self, file: &'static str) -> impl Iterator<Item = &str> {
        self.layers.lists(file).flat_map(|list| list.iter().map(|it| it.id.as_str()))
    }

    /// Earlier ids of the entries of a file, each with the present one.
    pub fn former_ids_of(&self, file: &'static str) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.layers.lists(file).flat_map(|list| list.iter());
        entries.flat_map(|it| it.formerly.iter().map(|former| (former.as_str(), it.id.as_str())))
    }

    /// Ids of the guards that may be asked, those of the packs below among them.
    pub fn guards(&self) -> impl Iterator<Item = &str> {
        self.layers.list("guards.yaml").iter().filter(|it| it.is_used()).map(|it| it.id.as_str())
    }

    /// Ids of the guards that the pack disables. A set that its manifest disables is not looked at.
    pub fn disabled_guards(&self) -> impl Iterator<Item = &str> {
        let used: BTreeSet<&str> = self.guards().collect();
        self.ids_of("guards.yaml").filter(move |it| !used.contains(it))
    }

    /// Returns the globs over tools of a guard. Empty: all tools.
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

    /// Classes of commands.
    pub fn command_classes(&self) -> impl Iterator<Item = &str> {
        self.vocabulary.lens.commands.iter().map(|it| it.name.as_str())
    }

    /// Tools that run commands.
    pub fn shell_tools(&self) -> impl Iterator<Item = &str> {
        self.vocabulary.lens.shell_tools.iter().map(String::as_str)
    }

    /// Returns the fields of a signal. `None` if the kind of the signal is unknown or has none.
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
        self.layers.list("probes.yaml").iter().map(|entry| {
            match entry.get("breaker").and_then(Node::text) {
                Some(own) => Cow::Borrowed(own),
                None => Cow::Owned(format!("probe/{}", entry.id)),
            }
        })
    }

    /// Probes whose answer is a text.
    pub fn text_probes(&self) -> impl Iterator<Item = &str> {
        let says = |it: &&Arc<LayerEntry>| it.get("parse").is_some_and(|it| it.says("text"));
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
        self.layers.section("failures.yaml", "classes").iter().map(|entry| {
            let errors = entry.get("errors").and_then(Node::items).unwrap_or_default();
            (entry.id.as_str(), errors.iter().filter_map(Node::text).collect())
        })
    }

    /// Probes, and the words of their commands.
    pub fn probe_commands(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.layers.list("probes.yaml").iter().filter_map(|entry| {
            let words = entry.get("command")?.items()?.iter().filter_map(Node::text).collect();
            Some((entry.id.as_str(), words))
        })
    }

    /// Returns the programs of the base.
    #[must_use]
    pub fn known_programs(&self) -> &Programs {
        &self.programs
    }

    /// Programs that only start others.
    pub fn wrappers(&self) -> impl Iterator<Item = &str> {
        let wrappers = self.vocabulary.lens.wrappers.iter().filter(|it| !it.kept);
        wrappers.map(|it| it.command.as_str())
    }

    /// Returns whether a command pattern has the option with which a wrapper only checks its input: `bash -n`.
    pub fn is_check(&self, pattern: &str) -> bool {
        let (wrappers, mut words) = (self.vocabulary.lens.wrappers.iter(), pattern.split(' '));
        let (program, option) = (words.next(), words.next());
        let mut wrappers = wrappers.filter(|it| Some(it.command.as_str()) == program);
        wrappers.any(|it| !it.check_option.is_empty() && Some(it.check_option.as_str()) == option)
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

impl ReviewedPolicy {
    /// Loads `pack`, which can extend `base`.
    #[must_use]
    pub fn new(pack: &Pack, base: &Base) -> Self {
        let mut diagnostics = Vec::new();
        let own = read_files(&pack.files, &base.memo, &mut diagnostics);
        let extends_builtin = load::extends(pack, &own);
        let remote = remote::usable(pack, own.get("policyd.yaml"), &mut diagnostics);
        let with_remote = (!remote.is_empty())
            .then(|| base.with_remote(&remote, extends_builtin, &mut diagnostics));
        let below = with_remote.as_ref().or(Some(base).filter(|_| extends_builtin));
        let mut layers = below.map(|it| it.layers.clone()).unwrap_or_default();
        load::put_over(&mut layers, pack, &own, &mut diagnostics);
        let built =
            build::build(&layers, below.map(|base| &base.built), &base.memo, &mut diagnostics);
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
        let (names, memo) = (built.names, Arc::clone(&base.memo));
        let names_key = names.fingerprint();
        Self {
            diagnostics,
            own,
            names,
            inherited,
            records,
            meant,
            extends_builtin,
            memo,
            names_key,
        }
    }
}

/// Returns the inherited entries that a pack overrides.
fn inherited(layers: &Layers, own: &Files) -> BTreeMap<(&'static str, String), Arc<Node>> {
    let entries = own.keys().flat_map(|file| layers.lists(file).map(move |list| (*file, list)));
    let entries = entries.flat_map(|(file, list)| list.iter().map(move |it| (file, it)));
    let changed = entries.filter_map(|(file, it)| {
        let below = it.layers.get(1)?;
        Some(((file, it.id.clone()), Arc::clone(below)))
    });
    changed.collect()
}
