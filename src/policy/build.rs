//! Builds a policy from layers: names are resolved, expressions are typed, and defaults are set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::approval::ApprovalLevel;
use super::builder::{Builder, ReadFacts};
use super::considerations::{CheckerCache, Checkers};
use super::context::{self, ContextFile};
use super::exemptions::Exemption;
use super::guards::{Guard, Guards};
use super::layers::{self, LayerEntry, Layers, wanted};
use super::policy::{Policy, events, judged_at};
use super::rationalizations::Rationalizations;
use super::resilience::{DeadLetter, EscalationPolicy, Reaction};
use super::run::RunPolicy;
use super::shared::SharedValue;
use super::signals::Signals;
use super::tables::Table;
use super::vocabulary::{Vocabulary, listed_names};
use super::{
    Check, CheckDefinition, ManifestSettings, MessageChoice, Preference, Probe, Route, SessionType,
    SourceLocation, breakers, manifest, memory, messages,
};
use policyd_base::limits::PROBES_DEADLINE_MAX;
use policyd_fact_table::source::EvaluationPhase;
use policyd_fact_table::types::Names;
use policyd_facts::call::ProgramDatabase;
use policyd_facts::cursor::Key;
use policyd_facts::event::EventKind;
use policyd_facts::lens::MatcherConfig;
use policyd_state::breaker;
use policyd_state::failure::Failures;
use policyd_state::memory::MemorySettings;
use policyd_yaml::Diagnostic;
use policyd_yaml::memo::Memo;

/// The parts of a pack that packs above it can name. Each part is built when it is used first.
#[derive(Debug)]
pub(super) struct Foundation {
    settings: ManifestSettings,
    pub(super) vocabulary: Arc<Vocabulary>,
    names: Arc<Names>,
    resilience: SharedValue<Resilience>,
    context: SharedValue<ContextFile>,
    /// Voices in which messages are written.
    voices: SharedValue<BTreeSet<String>>,
    checkers: SharedValue<CheckerCache>,
}

/// Returns the foundation of packs above these layers. Findings in the layers are those of their own packs.
pub(super) fn foundation(layers: &Layers) -> Foundation {
    let mut findings = Vec::new();
    let mut builder = Builder::new(true, &mut findings);
    let settings = builder.settings(layers.top("policyd.yaml"));
    let vocabulary = Arc::new(builder.vocabulary(layers.top("vocabulary.yaml")));
    let names = names(layers, None, &vocabulary);
    let resilience = later(layers, &names, |builder, layers| builder.resilience(layers));
    let context = later(layers, &names, |builder, layers| builder.context(layers));
    let messages = layers.top("messages.yaml").to_vec();
    let voices = SharedValue::later(move || messages::voices(&messages));
    let (entries, known) = (layers.list("checkers.yaml").clone(), Arc::clone(&names));
    let checkers = SharedValue::later(move || CheckerCache::new(entries, known));
    Foundation { settings, vocabulary, names, resilience, context, voices, checkers }
}

/// Returns a part that `build` makes when it is used first.
fn later<T: 'static>(
    layers: &Layers,
    names: &Arc<Names>,
    build: fn(&mut Builder<'_>, &Layers) -> T,
) -> SharedValue<T> {
    let (layers, names) = (layers.clone(), Arc::clone(names));
    SharedValue::later(move || {
        let mut unheard = Vec::new();
        let mut builder = Builder::new(true, &mut unheard);
        builder.names = names;
        builder.phase = Some(EvaluationPhase::Message);
        build(&mut builder, &layers)
    })
}

/// The content of layers.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) settings: ManifestSettings,
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) names: Arc<Names>,
    pub(super) considerations: Vec<Check>,
    exemptions: Vec<Exemption>,
    session_types: Vec<SessionType>,
    preferences: Vec<Preference>,
    probes: Vec<Probe>,
    pub(super) resilience: SharedValue<Resilience>,
    memory: Vec<(String, MemorySettings)>,
    reads: ReadFacts,
    tables: Vec<Table>,
    pub(super) context: SharedValue<ContextFile>,
    guards: Vec<Guard>,
    disabled_guards: Vec<String>,
    /// Voices of messages.
    pub(super) voices: SharedValue<BTreeSet<String>>,
    messages: BTreeMap<String, Vec<MessageChoice>>,
}

/// Builds the content of layers with the kept results of a memo. With `base`, only entries above the packs of `base` are
/// built.
pub(super) fn build(
    layers: &Layers,
    base: Option<&Foundation>,
    memo: &Memo,
    diagnostics: &mut Vec<Diagnostic>,
) -> Built {
    let own_only = base.is_some();
    let wanted = |entries| layers::wanted(entries, own_only);
    let mut builder = Builder::new(own_only, diagnostics);
    let mut settings = match base.filter(|_| !layers.owns(&["policyd.yaml"])) {
        Some(base) => base.settings.clone(),
        None => builder.settings(layers.top("policyd.yaml")),
    };
    let vocabulary = match base.filter(|_| !layers.owns(&["vocabulary.yaml"])) {
        Some(base) => Arc::clone(&base.vocabulary),
        None => Arc::new(builder.vocabulary(layers.top("vocabulary.yaml"))),
    };
    let names = names(layers, base, &vocabulary);
    builder.names = Arc::clone(&names);
    builder.kept = Some((memo, names.fingerprint()));
    builder.deadline = manifest::own_deadline(layers.top("policyd.yaml"));
    let checkers: BTreeMap<String, CheckDefinition> = wanted(layers.list("checkers.yaml"))
        .filter_map(|it| Some((it.id.clone(), builder.checker(it)?)))
        .collect();
    let below = base.map(|base| &*base.checkers);
    let named = Checkers { own: &checkers, below, known: layers.list("checkers.yaml") };
    let considerations = wanted(layers.list("considerations.yaml"));
    let considerations =
        considerations.filter_map(|it| builder.consideration(it, &named)).collect();
    let exemptions = builder.exemptions(layers);
    builder.phase = Some(EvaluationPhase::Classification);
    let session_types = wanted(layers.list("session_types.yaml"));
    let session_types = session_types.filter_map(|it| builder.session_type(it)).collect();
    builder.phase = Some(EvaluationPhase::Gathering);
    let preferences = wanted(layers.list("preferences.yaml"));
    let preferences = preferences.filter_map(|it| builder.preference(it)).collect();
    let probes = wanted(layers.list("probes.yaml"));
    let probes: Vec<Probe> = probes.filter_map(|it| builder.probe(it)).collect();
    builder.probe_events = asked_events(layers, &probes);
    if builder.deadline.is_none() {
        extend_deadline(&mut settings, &probes);
    }
    builder.phase = Some(EvaluationPhase::Message);
    let messages = layers.top("messages.yaml").iter();
    let messages = messages.filter_map(|it| if own_only { it.made() } else { Some(it) });
    let messages = builder.messages(messages);
    let voices = match base.filter(|_| !layers.owns(&["messages.yaml"])) {
        Some(base) => base.voices.clone(),
        None => SharedValue::new(messages::voices(layers.top("messages.yaml"))),
    };
    let resilience = builder.resilience_over(layers, base);
    let memory = builder.memory(layers);
    builder.memory.extend(memory.iter().cloned());
    let (guards, disabled_guards) = builder.guards(layers);
    Built {
        settings,
        guards,
        disabled_guards,
        voices,
        vocabulary,
        names,
        considerations,
        exemptions,
        session_types,
        preferences,
        probes,
        resilience,
        memory,
        reads: std::mem::take(&mut builder.reads),
        tables: builder.tables(layers),
        context: match base.filter(|_| !layers.owns(&[context::FILE])) {
            Some(base) => base.context.clone(),
            None => SharedValue::new(builder.context(layers)),
        },
        messages,
    }
}

/// Returns the events at which guards may ask each probe. Those of the packs below are built with them.
fn asked_events(layers: &Layers, probes: &[Probe]) -> BTreeMap<String, Vec<EventKind>> {
    let below = layers.list("probes.yaml").iter().map(|it| (it.id.clone(), Vec::new()));
    below.chain(probes.iter().map(|it| (it.id.clone(), it.at.clone()))).collect()
}

/// Extends the deadline to the slowest probe: a pack that enables a slow probe means the probe to have
/// its time.
fn extend_deadline(settings: &mut ManifestSettings, probes: &[Probe]) {
    let slowest = probes.iter().filter(|it| it.enabled).map(|it| it.timeout).max();
    let slowest = slowest.unwrap_or_default().min(PROBES_DEADLINE_MAX);
    settings.deadline = settings.deadline.max(slowest);
}

/// Returns the names that expressions can use: those of `base` if the layers add none.
fn names(layers: &Layers, base: Option<&Foundation>, vocabulary: &Arc<Vocabulary>) -> Arc<Names> {
    let base = base.filter(|it| Arc::ptr_eq(&it.vocabulary, vocabulary) && !layers.incomplete);
    let files =
        ["preferences.yaml", "probes.yaml", "session_types.yaml", memory::FILE, context::FILE];
    if let Some(base) = base.filter(|_| !layers.owns(&files)) {
        return Arc::clone(&base.names);
    }
    let ids = |entries: &[Arc<LayerEntry>]| {
        entries.iter().map(|it| it.id.clone()).collect::<BTreeSet<_>>()
    };
    Arc::new(Names {
        command_kinds: vocabulary.lens.commands.iter().map(|it| it.name.clone()).collect(),
        path_lists: vocabulary.lens.paths.iter().map(|it| it.name.clone()).collect(),
        file_kinds: vocabulary.lens.files.iter().map(|it| it.name.clone()).collect(),
        contents: vocabulary.lens.contents.iter().map(|it| it.name.clone()).collect(),
        texts: vocabulary.texts.keys().cloned().collect(),
        preferences: ids(layers.list("preferences.yaml")),
        probes: ids(layers.list("probes.yaml")),
        session_types: ids(layers.list("session_types.yaml")),
        forges: vocabulary.forges.iter().map(|(name, _)| name.clone()).collect(),
        memory: layers
            .list(memory::FILE)
            .iter()
            .filter(|it| it.is_used())
            .map(|it| it.id.clone())
            .collect(),
        tiers: ids(layers.section(context::FILE, context::TIERS)),
        incomplete: layers.incomplete,
        record: None,
    })
}

/// Returns the policy of layers that were built without a base.
pub(super) fn policy(name: String, built: Built) -> Policy {
    let resilience = built.resilience.into_owned();
    let vocabulary = Arc::unwrap_or_clone(built.vocabulary);
    let ContextFile { rules: context, told_at: context_told_at } = built.context.into_owned();
    let block_headers = messages::block_headers(&built.messages);
    let lens =
        MatcherConfig { block_headers, kept_calls: built.reads.kept_calls, ..vocabulary.lens };
    // A program that only an approval names is not dangerous behind an unknown wrapper.
    let guarded = built.guards.iter().filter(|it| it.level == ApprovalLevel::None);
    let guarded = guarded.flat_map(|it| it.commands.iter());
    let listed = listed_names(&lens, &vocabulary.knowledge, guarded).into();
    let knowledge = ProgramDatabase { listed, ..vocabulary.knowledge };
    Policy {
        name,
        settings: built.settings,
        judged_at: judged_at(&built.considerations),
        considerations: built.considerations.into(),
        exemptions: built.exemptions.into(),
        session_types: built.session_types.into(),
        preferences: built.preferences.into(),
        probes: built.probes.into(),
        breakers: resilience.breakers.into(),
        failures: resilience.failures.into(),
        memory: built.memory.into(),
        sources: built.reads.sources,
        zones: built.reads.zones,
        project_questions: built.reads.questions.into_iter().collect(),
        breaker_origins: resilience.origins.into(),
        routes: resilience.routes.into(),
        rationalization_words: resilience.rationalizations.words(),
        rationalizations: resilience.rationalizations.into(),
        messages: built.messages.into(),
        dead_letter: resilience.dead_letter.into(),
        escalation: resilience.escalation.into(),
        reacts_to: events(resilience.reactions.iter().map(|it| &it.on)),
        reactions: resilience.reactions.into(),
        signals: resilience.signals.into(),
        approvals: ApprovalLevel::None,
        guarded: events(built.guards.iter().map(|it| &it.on)),
        guards: Guards {
            rules: built.guards.into(),
            disabled: built.disabled_guards.into(),
            knowledge: knowledge.into(),
        }
        .into(),
        run: resilience.run.into(),
        tables: built.tables.into(),
        context: context.into(),
        context_told_at,
        skipped_layer: String::new(),
        lens_key: Key::of(&lens),
        lens,
        texts: vocabulary.texts.into(),
        stop_words: vocabulary.stop_words.into(),
        main_branches: vocabulary.main_branches,
        forges: vocabulary.forges.into(),
    }
}

/// The content of the files in [`FILES`].
#[derive(Debug, Clone)]
pub(crate) struct Resilience {
    pub(crate) breakers: Vec<(String, breaker::BreakerSettings)>,
    /// Locations of the settings of breakers.
    pub(crate) origins: Vec<(String, BTreeMap<String, SourceLocation>)>,
    pub(crate) routes: Vec<Route>,
    pub(crate) failures: Failures,
    pub(crate) rationalizations: Rationalizations,
    pub(crate) dead_letter: DeadLetter,
    pub(crate) escalation: EscalationPolicy,
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) signals: Signals,
    pub(crate) run: RunPolicy,
}

/// Files about failures and tasks.
const FILES: [&str; 9] = [
    "breakers.yaml",
    "routes.yaml",
    "reactions.yaml",
    "dead_letter.yaml",
    "escalation.yaml",
    "signals.yaml",
    "rationalizations.yaml",
    "run.yaml",
    "failures.yaml",
];

impl Builder<'_> {
    /// Builds the content of [`FILES`], or returns that of `base` if the layers do not change it. Reports unknown
    /// signals that checks create.
    pub(super) fn resilience_over(
        &mut self,
        layers: &Layers,
        base: Option<&Foundation>,
    ) -> SharedValue<Resilience> {
        let resilience = match base.filter(|_| !layers.owns(&FILES)) {
            Some(base) => base.resilience.clone(),
            None => SharedValue::new(self.resilience(layers)),
        };
        let considerations = wanted(layers.list("considerations.yaml"), self.own_only);
        for node in considerations.filter_map(|it| it.get("emit")) {
            self.known_signal(node, &resilience.signals);
        }
        resilience
    }

    /// Builds the content of [`FILES`].
    pub(super) fn resilience(&mut self, layers: &Layers) -> Resilience {
        let signals = self.signals(layers);
        let routes = wanted(layers.list("routes.yaml"), self.own_only);
        let failures = self.failures(layers);
        Resilience {
            run: self.run(layers, failures.pause),
            breakers: self.breakers(layers.list("breakers.yaml")),
            origins: breakers::origins(layers.list("breakers.yaml")),
            routes: routes.filter_map(|it| self.route(it)).collect(),
            failures,
            rationalizations: self.rationalizations(layers),
            dead_letter: self.dead_letter(layers),
            escalation: self.escalation(layers),
            reactions: self.reactions(layers, &signals),
            signals,
        }
    }
}
