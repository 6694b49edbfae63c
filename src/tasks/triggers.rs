//! Triggers of `signals.yaml`, which create signals from the facts about a run of an agent. Hooks, `policyd run` and
//! `policyd signal check` use this module, so that all of them evaluate triggers over the same facts.

use serde_json::{Map, Value};

use super::Stores;
use policyd_evaluation::signals::{Due, run};
use policyd_fact_table::record::FactRecord;
use policyd_facts::Facts;
use policyd_record::mask::mask;
use policyd_store::signals::{Draft, StoredSignal};
use policyd_world::WorldError;

/// The signal that asks for a fresh context.
pub const CLEAR: &str = "CONTEXT_CLEAR_REQUESTED";

impl Stores<'_> {
    /// A run as its conversation tells of it. Everything is counted since the context was last emptied.
    pub fn run_of(&self, facts: &Facts) -> FactRecord {
        let prompts = &facts.prompts;
        let drifts = self.signals.drifts(self.now).len();
        run()
            .with("iterations", count(prompts.count.saturating_sub(prompts.before_compaction)))
            .with("history_bytes", count(facts.history_bytes))
            .with("same_error_count", count(facts.tools.same_errors))
            .with("drift_count", i64::try_from(drifts).unwrap_or(i64::MAX))
    }

    /// Creates the signal of a trigger whose condition is true, unless a signal of this name is pending, and holds its
    /// task if a human must answer. Returns the signal, and the problems with its effects.
    pub fn raise(
        &self,
        due: &Due<'_>,
        task: &str,
        sender: &str,
    ) -> Result<Option<(StoredSignal, Vec<String>)>, WorldError> {
        let name = &due.trigger.emit;
        let kind = self.policy.signals.kind(name);
        let said = [
            ("reason", due.reason.as_str()),
            ("severity", &due.trigger.severity),
            ("task_id", task),
        ];
        let mut fields = Map::new();
        for (field, value) in said {
            if kind.is_some_and(|it| it.has_field(field)) && !value.is_empty() {
                fields.insert(field.to_owned(), Value::from(mask(value).0.into_owned()));
            }
        }
        let sender = sender.to_owned();
        let draft = Draft { name: name.clone(), fields, sender, ..Draft::default() };
        let made = self.signals.emit_once(&draft, self.now)?;
        Ok(made.map(|it| {
            let problems = self.hold_for(&draft, &it.id);
            (it, problems)
        }))
    }
}

/// A count as rules see it.
fn count(it: u64) -> i64 {
    i64::try_from(it).unwrap_or(i64::MAX)
}
