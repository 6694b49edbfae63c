//! `rationalizations.yaml`: phrases that an agent uses instead of doing the work, why they are wrong, and what the
//! agent must do instead.

use serde::{Deserialize, Serialize};

use super::Expression;
use super::builder::Builder;
use super::fields::{DESCRIPTION, OVERRIDE, REGEX_LIST, TEXTS, enabled};
use super::layers::{LayerEntry, Layers, wanted};
use super::record::{REGEXES, record};
use policyd_fact_table::pattern::TextPatternSource;
use policyd_fact_table::source::EvaluationPhase;
use policyd_yaml::Diagnostic;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::shape::Kind;

const FILE: &str = "rationalizations.yaml";

/// All that `rationalizations.yaml` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rationalizations {
    /// Regexes for sentences that quote another author. They are skipped.
    pub unless: Vec<String>,
    /// What is looked for, in order.
    pub entries: Vec<Row>,
}

/// An entry that stays encoded while none of its words was said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Words in small letters, one per line, of which a text must hold one; an empty one where any
    /// text may match.
    pub words: String,
    /// What is looked for.
    pub entry: Lazy<Rationalization>,
}

/// One excuse, or one red flag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rationalization {
    pub id: String,
    /// Family of the rationalization, such as `red_flag`.
    pub family: String,
    /// Pattern of the sentences that match.
    pub pattern: TextPatternSource,
    /// Why it is wrong.
    pub wrong: String,
    /// What is to be done instead.
    pub action: String,
    /// Holds where it counts; always, where absent.
    pub when: Option<Expression>,
    /// Holds where what happened speaks against it.
    pub blocking: Option<Expression>,
}

/// The families of the seed: its table of excuses, and five of red flags.
pub const FAMILIES: &[&str] = &[
    EXCUSE,
    "hedging",
    "minimization",
    "scope_change",
    "verification_skipping",
    "unverified_claim",
];

/// The family of the table of excuses.
pub const EXCUSE: &str = "rationalization";

impl Rationalizations {
    /// Words in small letters, one per line, of which a text must hold one before anything else is
    /// looked at. Most packs are asked about texts that hold none.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words: Vec<&str> =
            self.entries.iter().flat_map(|it| it.words.split('\n')).collect();
        if words.contains(&"") {
            return "\n".to_owned();
        }
        words.sort_unstable();
        words.dedup();
        words.join("\n")
    }
}

impl Default for Rationalization {
    fn default() -> Self {
        Self {
            id: String::new(),
            family: EXCUSE.to_owned(),
            pattern: TextPatternSource::default(),
            wrong: String::new(),
            action: String::new(),
            when: None,
            blocking: None,
        }
    }
}

record! {
    const ENTRY: RecordType<Rationalization> = {
        id [mandatory()]: Kind::Text => id, "Name of the rationalization.";
        family: Kind::Choice(FAMILIES) => family,
            "The family it belongs to; `rationalization` by default.";
        phrases: TEXTS => pattern.phrases, "Whole words of the agent's last text, any case.";
        regexes: REGEX_LIST => pattern.regexes by REGEXES,
            "Tried on each sentence, case not counted.";
        unless: REGEX_LIST => pattern.unless by REGEXES,
            "Found in the same sentence, they excuse it.";
        when: Kind::Expression => when, "Holds where it counts; always, where absent.";
        wrong [needed()]: Kind::Text => wrong, "Why it is wrong.";
        action [needed()]: Kind::Text => action, "What is to be done instead.";
        blocking: Kind::Expression => blocking,
            "Holds where what happened speaks against it: it blocks there, and warns elsewhere.";
        use enabled("Whether it is looked for at all; `true` by default.");
        use DESCRIPTION;
        use OVERRIDE;
    }

    pub(super) const RATIONALIZATIONS: RecordType<Rationalizations> = {
        unless: REGEX_LIST, "Sentences that quote another author; they are skipped.";
        entries: ENTRY.list, "Rationalizations; every match is reported.";
    }
}

impl Builder<'_> {
    pub(super) fn rationalizations(&mut self, layers: &Layers) -> Rationalizations {
        let lists = layers.top(FILE).iter().filter_map(|file| file.get("unless"));
        let unless = lists.filter_map(|list| (REGEXES.read)(list, self)).flatten().collect();
        let before = self.phase.replace(EvaluationPhase::Excuse);
        let entries = wanted(layers.section(FILE, "entries"), self.own_only);
        let entries = entries.filter_map(|entry| self.rationalization(entry)).collect();
        self.phase = before;
        Rationalizations { unless, entries }
    }

    fn rationalization(&mut self, entry: &LayerEntry) -> Option<Row> {
        self.must_have(entry, &ENTRY, "every excuse is countered");
        let built = ENTRY.read(&entry.map(), self);
        if built.pattern.phrases.is_empty() && built.pattern.regexes.is_empty() {
            self.missing(entry, "phrases", "without `phrases` or `regexes` it is never found");
        }
        let is_prose = built.blocking.as_ref().is_some_and(|condition| condition.words_only);
        if let Some(node) = entry.get("blocking").filter(|_| is_prose) {
            let message = "words prove nothing, and this condition reads nothing else";
            let found = Diagnostic::warning("words-only", node.span.clone(), message);
            self.diagnostics
                .push(found.with_help("ask for what happened: commands, files, results"));
        }
        let words = built.pattern.words().join("\n");
        entry.is_used().then(|| Row { words, entry: built.into() })
    }
}
