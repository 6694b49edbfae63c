//! `exemptions.yaml`: situations in which checks do not block, such as a human who ends the work.

use policyd_fact_table::source::EvaluationPhase;
use serde::{Deserialize, Serialize};

use super::builder::Builder;
use super::fields::{CHOICES, DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS, WHEN};
use super::layers::{Layers, wanted};
use super::record::record;
use super::{Check, Choice, Expression};

pub(super) const FILE: &str = "exemptions.yaml";

/// A situation in which checks do not block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exemption {
    /// Id, unique in `exemptions.yaml`.
    pub id: String,
    /// Condition under which the checks do not block.
    pub when: Expression,
    /// Ids of the checks; `*` is all.
    pub checks: Vec<String>,
    /// Text for the user. Empty: none.
    pub notice: Vec<Choice>,
    /// Text for the agent, which is blocked once if no human is present. Empty: it is not blocked.
    pub insist: Vec<Choice>,
}

impl Default for Exemption {
    fn default() -> Self {
        Self {
            id: String::new(),
            when: Expression::default(),
            checks: vec!["*".to_owned()],
            notice: Vec::new(),
            insist: Vec::new(),
        }
    }
}

impl Exemption {
    /// Returns whether the exemption covers a check.
    #[must_use]
    pub fn covers(&self, check: &Check) -> bool {
        self.checks.iter().any(|it| it == "*" || *it == check.id || check.formerly.contains(it))
    }
}

record! {
    /// An entry of `exemptions.yaml`.
    pub(super) const EXEMPTION: RecordType<Exemption> = {
        use ID => id;
        use DESCRIPTION;
        use WHEN => when;
        checks: TEXTS => checks, "Ids of the checks that do not block; `*`, the default, is all.";
        notice: CHOICES => notice, "What the user reads; nothing, where absent.";
        insist: CHOICES => insist,
            "What the agent reads if no human is present: it is blocked once before.";
        use ENABLED;
        use OVERRIDE;
    }
}

impl Builder<'_> {
    /// Builds the exemptions. A check that they name and that no pack has is an error.
    pub(super) fn exemptions(&mut self, layers: &Layers) -> Vec<Exemption> {
        let checks = layers.list("considerations.yaml").iter();
        let known: Vec<&str> =
            checks.flat_map(|it| it.formerly.iter().chain([&it.id])).map(String::as_str).collect();
        for node in wanted(layers.section(FILE, ""), self.own_only)
            .filter_map(|entry| entry.get("checks")?.items())
            .flatten()
        {
            let name = node.text().unwrap_or_default();
            if name != "*" && !known.contains(&name) && !layers.incomplete {
                self.unknown("unknown-name", "check", node, &known);
            }
        }
        let phase = self.phase.replace(EvaluationPhase::Message);
        let entries = wanted(layers.section(FILE, ""), self.own_only);
        let built = entries.filter_map(|entry| {
            if entry.get("when").is_none() {
                self.missing(entry, "when", "an exemption says when it holds");
                return None;
            }
            let exemption = EXEMPTION.read(&entry.map(), self);
            entry.is_used().then_some(exemption)
        });
        let built = built.collect();
        self.phase = phase;
        built
    }
}
