//! The policy as meant: every rule resolved, every expression typed. No YAML, no spans to render.
//! Lives here: the values. `load` makes them from files; `shapes` says what files may hold.

pub mod breakers;
mod build;
mod builder;
pub mod builtin;
mod considerations;
pub mod context;
mod expression;
pub mod failures;
mod fields;
pub mod guards;
mod layering;
pub(crate) mod layers;
pub mod load;
mod manifest;
mod messages;
mod parse;
mod probes;
pub mod rationalizations;
mod record;
pub mod records;
pub mod resilience;
pub mod review;
pub mod run;
pub mod shapes;
mod shared;
pub mod signals;
pub mod tables;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::context::ContextRules;
use self::rationalizations::Rationalizations;
use crate::checksum::fingerprint;
use crate::deferred::Deferred;
use crate::facts::cursor::Key;
use crate::facts::event::EventKind;
use crate::facts::glob::{specificity, word_matches};
use crate::facts::lens::Lens;
use crate::script::pattern::KeptPattern;
use crate::source::Source;
use crate::state::breaker;
use crate::state::failure::Failures;
pub use breakers::{Route, Tier};
pub use considerations::{Check, CheckBody, Consideration, Mode, Severity};
pub use expression::{Choice, Expression, MessageChoice, Place};
use guards::Guards;
pub use manifest::{Durability, Forgotten, LayoutName, OnError, Paths, Settings};
pub use probes::{Parse, Preference, Probe};
use resilience::{DeadLetter, Escalation, Reaction};
use signals::Signals;
use tables::Table;

/// A pack that loaded, with all it extends.
///
/// It is `Serialize` only for the compiled-pack cache; its written form is the pack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Name of the pack.
    pub name: String,
    /// What the manifest sets.
    pub settings: Settings,
    /// Checks at a stop, in the order of the files.
    pub considerations: Deferred<Vec<Consideration>>,
    /// Neutral names of the events that there are considerations for, switched off or not.
    pub judged_at: Vec<EventKind>,
    /// Classification, first match wins.
    pub session_types: Vec<SessionType>,
    /// User preferences looked for in files.
    pub preferences: Deferred<Vec<Preference>>,
    /// External commands whose output is a fact.
    pub probes: Deferred<Vec<Probe>>,
    /// Texts, by message id; the first choice whose condition holds is used.
    pub messages: Deferred<BTreeMap<String, Vec<MessageChoice>>>,
    /// What the fold notices.
    pub lens: Lens,
    /// What a cursor depends on of it; made here so that no call has to.
    pub lens_key: Key,
    /// Text patterns by name.
    pub texts: BTreeMap<String, KeptPattern>,
    /// Words that are never significant in a question.
    pub stop_words: Deferred<Vec<String>>,
    /// Branches that everybody builds on.
    pub main_branches: Vec<String>,
    /// Settings of circuit breakers by the glob over their names.
    pub breakers: Deferred<Vec<(String, breaker::Settings)>>,
    /// What a failure is, and what is done about it.
    pub failures: Deferred<Failures>,
    /// Whether an expression of the pack asks where breakers stand: only then is that read.
    pub reads_breakers: bool,
    /// Whether an expression of the pack asks what waits: only then is that read.
    pub reads_waiting: bool,
    /// Whether an expression of the pack asks which signals wait: only then is that read.
    pub reads_signals: bool,
    /// Where those settings are written, by the same globs.
    pub breaker_origins: Deferred<Vec<(String, BTreeMap<String, Place>)>>,
    /// Chains of fallbacks.
    pub routes: Deferred<Vec<Route>>,
    /// Excuses and red flags.
    pub rationalizations: Deferred<Rationalizations>,
    /// Words of which a text must hold one before they are looked for, one per line.
    pub rationalization_words: String,
    /// Forges by name, with what the host of a remote there contains.
    pub forges: Deferred<Vec<(String, Vec<String>)>>,
    /// What fails again and again.
    pub dead_letter: Deferred<DeadLetter>,
    /// When a human is needed.
    pub escalation: Deferred<Escalation>,
    /// Events that have reactions.
    pub reacts_to: Vec<EventKind>,
    /// What is noted when something happens.
    pub reactions: Deferred<Vec<Reaction>>,
    /// What processes tell each other.
    pub signals: Deferred<Signals>,
    /// Events that have guards.
    pub guarded: Vec<EventKind>,
    /// Rules on any event.
    pub guards: Deferred<Guards>,
    /// How an agent's command is supervised.
    pub run: Deferred<run::RunPolicy>,
    /// Decision tables.
    pub tables: Deferred<Vec<Table>>,
    /// How full the context may be, and what is done about it.
    pub context: Deferred<ContextRules>,
    /// Neutral names of the events at which its tiers are told.
    pub context_told_at: Vec<String>,
    /// Whether an expression of the pack asks how full the context is: only then is that told.
    pub reads_context: bool,
}

/// One pack as read from its folder.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Name shown to people: the folder, or `builtin`.
    pub name: String,
    /// Its files: name within the folder, and the text with the name shown to people.
    pub files: Vec<(String, Arc<Source>)>,
}

/// One session type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionType {
    /// Its id.
    pub id: String,
    /// Holds where a session is of this type.
    pub when: Expression,
}

impl Policy {
    /// Whether a session type has this name, in any case.
    #[must_use]
    pub fn has_session_type(&self, name: &str) -> bool {
        self.session_types.iter().any(|it| it.id.eq_ignore_ascii_case(name))
    }

    /// The settings of a breaker: those of the most specific glob that its name matches.
    #[must_use]
    pub fn breaker(&self, key: &str) -> breaker::Settings {
        let settings =
            most_specific(&self.breakers, key).map(|(_, it)| it.clone()).unwrap_or_default();
        breaker::Settings { salt: fingerprint(&[key]), ..settings }
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
        let looked_at = uses.filter_map(|it| {
            let (name, _) = it.strip_prefix("breakers[\"")?.split_once("\"]")?;
            Some(name.to_owned())
        });
        named.cloned().chain(looked_at).collect()
    }

    /// Whether an enabled check is evaluated at this event.
    #[must_use]
    pub fn judges(&self, event: EventKind) -> bool {
        self.judged_at.contains(&event)
            && self.considerations.iter().any(|it| it.enabled && it.on.contains(&event))
    }

    /// The first tier of a chain of fallbacks that a model belongs to: one of its models is in the
    /// model's name.
    #[must_use]
    pub fn tier_of(&self, model: &str) -> Option<&Tier> {
        let has = |it: &&Tier| it.models.iter().any(|name| model.contains(name.as_str()));
        self.routes.iter().flat_map(|it| &it.tiers).find(has)
    }

    /// The glob that decides over a breaker, and where its settings are written.
    #[must_use]
    pub fn breaker_origin(&self, key: &str) -> Option<&(String, BTreeMap<String, Place>)> {
        most_specific(&self.breaker_origins, key)
    }
}

/// The most specific glob that a name matches, with what belongs to it.
fn most_specific<'k, T>(known: &'k [(String, T)], key: &str) -> Option<&'k (String, T)> {
    let fitting = known.iter().filter(|(glob, _)| word_matches(glob, key));
    fitting.max_by_key(|(glob, _)| specificity(glob))
}
