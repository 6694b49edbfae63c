//! Excuses and red flags as meant: what is looked for in an agent's last text, why it is wrong, and
//! what is to be done instead.

use serde::{Deserialize, Serialize};

use super::Expression;
use crate::deferred::Deferred;
use crate::script::pattern::TextPatternSource;

/// All that `rationalizations.yaml` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rationalizations {
    /// Regexes for sentences that tell what somebody else said.
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
    pub entry: Deferred<Rationalization>,
}

/// One excuse, or one red flag.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rationalization {
    /// Its name.
    pub id: String,
    /// The family it belongs to.
    pub family: String,
    /// How it is recognised.
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
