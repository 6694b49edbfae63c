//! The policy of a pack: all rules and settings, and what is looked up in them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::approval::ApprovalLevel;
use super::breakers::{LoadTier, Route};
use super::considerations::{Check, SessionType};
use super::context::ContextRules;
use super::exemptions::Exemption;
use super::expression::{MessageChoice, SourceLocation};
use super::guards::{Guard, Guards};
use super::manifest::ManifestSettings;
use super::probes::{Preference, Probe};
use super::rationalizations::Rationalizations;
use super::resilience::{DeadLetter, EscalationPolicy, Reaction};
use super::run::RunPolicy;
use super::signals::Signals;
use super::tables::Table;
use policyd_fact_table::clock_facts::ZoneRules;
use policyd_fact_table::pattern::StoredPattern;
use policyd_fact_table::project_facts::ProjectQuestion;
use policyd_fact_table::source::FactSources;
use policyd_facts::cursor::Key;
use policyd_facts::event::EventKind;
use policyd_facts::glob::{specificity, word_matches};
use policyd_facts::lens::MatcherConfig;
use policyd_state::breaker;
use policyd_state::failure::Failures;
use policyd_state::memory::MemorySettings;
use policyd_yaml::checksum::fingerprint;
use policyd_yaml::deferred::Lazy;

/// A loaded pack, together with the packs that it extends.
///
/// The serialized form is used by the cache of compiled packs only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Name of the pack.
    pub name: String,
    /// Settings of the manifest.
    pub settings: ManifestSettings,
    /// Checks at a stop, in the order of the files.
    pub considerations: Lazy<Vec<Check>>,
    /// Situations in which checks do not block, in the order of the files.
    pub exemptions: Lazy<Vec<Exemption>>,
    /// Events at which an enabled check is evaluated. [`Policy::change_checks`] keeps them current.
    pub judged_at: Vec<EventKind>,
    /// Session types. The first true condition classifies a session.
    pub session_types: Lazy<Vec<SessionType>>,
    /// Preferences of the user.
    pub preferences: Lazy<Vec<Preference>>,
    /// External commands whose output is a fact.
    pub probes: Lazy<Vec<Probe>>,
    /// Texts by message id. The first text whose condition is true is used.
    pub messages: Lazy<BTreeMap<String, Vec<MessageChoice>>>,
    /// Data that the fold of a transcript collects.
    pub lens: MatcherConfig,
    /// Key of `lens` for transcript cursors.
    pub lens_key: Key,
    /// Text patterns by name.
    pub texts: Lazy<BTreeMap<String, StoredPattern>>,
    /// Words that are never significant in a question.
    pub stop_words: Lazy<Vec<String>>,
    /// Shared branches, such as `main`.
    pub main_branches: Vec<String>,
    /// Settings of circuit breakers by the glob over their names.
    pub breakers: Lazy<Vec<(String, breaker::BreakerSettings)>>,
    /// Classes of failures, and their retries.
    pub failures: Lazy<Failures>,
    /// Sources of the facts that expressions use.
    pub sources: FactSources,
    /// What rules remember, by the ids of `memory.yaml`.
    pub memory: Lazy<Vec<(String, MemorySettings)>>,
    /// Files of the project that expressions of checks and messages name.
    pub project_questions: Vec<ProjectQuestion>,
    /// Rules of the time zones that expressions name.
    pub zones: ZoneRules,
    /// Locations of the settings of breakers, by the same globs.
    pub breaker_origins: Lazy<Vec<(String, BTreeMap<String, SourceLocation>)>>,
    /// Fallback chains.
    pub routes: Lazy<Vec<Route>>,
    /// Phrases that agents use instead of doing the work.
    pub rationalizations: Lazy<Rationalizations>,
    /// Words, one per line. Rationalizations are searched only in texts that contain one of them.
    pub rationalization_words: String,
    /// Code hosts by name, each with parts of the host names of its remotes.
    pub forges: Lazy<Vec<(String, Vec<String>)>>,
    /// Settings and rules of the dead-letter queue.
    pub dead_letter: Lazy<DeadLetter>,
    /// Conditions under which a human is needed, and notification channels.
    pub escalation: Lazy<EscalationPolicy>,
    /// Events that have reactions.
    pub reacts_to: Vec<EventKind>,
    /// Reactions to events.
    pub reactions: Lazy<Vec<Reaction>>,
    /// Kinds of signals, triggers, and rules about drifts.
    pub signals: Lazy<Signals>,
    /// Up to which level calls are approved in place of the user. Not stored: a pack cannot choose it.
    #[serde(skip)]
    pub approvals: ApprovalLevel,
    /// Events that have guards.
    pub guarded: Vec<EventKind>,
    /// Guards.
    pub guards: Lazy<Guards>,
    /// Settings of supervised runs.
    pub run: Lazy<RunPolicy>,
    /// Decision tables.
    pub tables: Lazy<Vec<Table>>,
    /// Windows of models, and tiers of context usage.
    pub context: Lazy<ContextRules>,
    /// Names of the events at which tiers are reported.
    pub context_told_at: Vec<String>,
    /// Why the pack of the user is not a layer beneath this pack, although it exists. Otherwise empty.
    pub skipped_layer: String,
}

impl Policy {
    /// Adds what the expressions of another policy read, whose rules this policy takes over.
    pub fn add_reads(&mut self, other: &Self) {
        self.sources = self.sources.union(other.sources);
        self.zones.extend(other.zones.clone());
        self.project_questions.extend(other.project_questions.iter().cloned());
        self.lens.kept_calls.extend(other.lens.kept_calls.iter().cloned());
        self.lens_key = Key::of(&self.lens);
    }

    /// Whether a session type has this name, in any case.
    #[must_use]
    pub fn has_session_type(&self, name: &str) -> bool {
        self.session_types.iter().any(|it| it.id.eq_ignore_ascii_case(name))
    }

    /// Returns the settings of a breaker: those of the most specific glob that matches its name.
    #[must_use]
    pub fn breaker(&self, key: &str) -> breaker::BreakerSettings {
        let settings =
            most_specific(&self.breakers, key).map(|(_, it)| it.clone()).unwrap_or_default();
        breaker::BreakerSettings { salt: fingerprint(&[key]), ..settings }
    }

    /// Names of breakers that the pack speaks of: those of probes and chains of fallbacks, those that
    /// have an entry of their own, and those that its considerations look at.
    #[must_use]
    pub fn breaker_names(&self) -> BTreeSet<String> {
        let tiers = self.routes.iter().flat_map(|it| &it.tiers);
        let plain = self.breakers.iter().map(|(glob, _)| glob);
        let told = self.reactions.iter().map(|it| &it.breaker);
        let named = self
            .probes
            .iter()
            .map(|it| &it.breaker)
            .chain(tiers.map(|it| &it.breaker))
            .chain(told.filter(|it| !it.is_empty() && !it.contains("${")))
            .chain(plain.filter(|it| !it.contains('*')));
        let uses = self.considerations.iter().flat_map(|it| it.check.uses.iter());
        let looked_at = uses.filter_map(|used| {
            let (name, _) = used.strip_prefix("breakers[\"")?.split_once("\"]")?;
            Some(name.to_owned())
        });
        named.cloned().chain(looked_at).collect()
    }

    /// Returns the present id of a check or a guard, by its id or an earlier one.
    #[must_use]
    pub fn rule_id(&self, name: &str) -> Option<&str> {
        let checks = self.considerations.iter().map(|it| it.id.as_str());
        let mut present = checks.chain(self.guards.rules.iter().map(|it| it.id.as_str()));
        let former = || self.former_ids().find(|(former, _)| *former == name).map(|(_, id)| id);
        present.find(|id| *id == name).or_else(former)
    }

    /// Returns the earlier ids of checks and guards, each with the present id.
    pub fn former_ids(&self) -> impl Iterator<Item = (&str, &str)> {
        let checks = self.considerations.iter().map(|it| (&it.id, &it.formerly));
        let rules = checks.chain(self.guards.rules.iter().map(|it| (&it.id, &it.formerly)));
        rules.flat_map(|(id, former)| former.iter().map(|it| (it.as_str(), id.as_str())))
    }

    /// Makes rules observe: they are evaluated and logged, and have no effect. `is_observed` gets the names of a rule:
    /// its id, its earlier ids, and the set of a guard.
    pub fn observe(&mut self, is_observed: impl Fn(&[&str]) -> bool) {
        let is_observed = |id: &str, formerly: &[String], set: Option<&str>| {
            let former = formerly.iter().map(String::as_str);
            is_observed(&std::iter::once(id).chain(former).chain(set).collect::<Vec<_>>())
        };
        let checks = |all: &mut Vec<Check>| {
            all.iter_mut().for_each(|it| it.observed = is_observed(&it.id, &it.formerly, None));
        };
        self.change_checks(checks);
        let guards = |rules: &mut Vec<Guard>| {
            let rules = rules.iter_mut();
            rules.for_each(|it| it.observed = is_observed(&it.id, &it.formerly, Some(&it.set)));
        };
        self.guards.change(|all| all.rules.change(guards));
    }

    /// Changes the checks.
    pub fn change_checks<R>(&mut self, change: impl FnOnce(&mut Vec<Check>) -> R) -> R {
        let changed = self.considerations.change(change);
        self.judged_at = judged_at(&self.considerations);
        changed
    }

    /// Whether an enabled check is evaluated at this event. Decodes no check, because each tool call asks.
    #[must_use]
    pub fn judges(&self, event: EventKind) -> bool {
        self.judged_at.contains(&event)
    }

    /// Returns the first tier of a fallback chain that contains a model: the name of one of its models is in the
    /// model's name.
    #[must_use]
    pub fn tier_of(&self, model: &str) -> Option<&LoadTier> {
        let has = |it: &&LoadTier| it.models.iter().any(|name| model.contains(name.as_str()));
        self.routes.iter().flat_map(|it| &it.tiers).find(has)
    }

    /// Returns the most specific glob that matches a breaker, and the locations of its settings.
    #[must_use]
    pub fn breaker_origin(&self, key: &str) -> Option<&(String, BTreeMap<String, SourceLocation>)> {
        most_specific(&self.breaker_origins, key)
    }
}

/// Returns the most specific glob that matches a name, with its value.
fn most_specific<'k, T>(known: &'k [(String, T)], key: &str) -> Option<&'k (String, T)> {
    let fitting = known.iter().filter(|(glob, _)| word_matches(glob, key));
    fitting.max_by_key(|(glob, _)| specificity(glob))
}

/// Returns the events of all rules, each once.
pub(super) fn events<'r>(rules: impl Iterator<Item = &'r Vec<EventKind>>) -> Vec<EventKind> {
    let kinds: BTreeSet<EventKind> = rules.flatten().copied().collect();
    kinds.into_iter().collect()
}

/// Returns the events at which an enabled check is evaluated.
pub(super) fn judged_at(checks: &[Check]) -> Vec<EventKind> {
    events(checks.iter().filter(|it| it.enabled).map(|it| &it.on))
}
