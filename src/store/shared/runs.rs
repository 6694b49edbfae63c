//! The registry of supervised runs of all hosts. The host of a run alone writes its record.

use serde_json::json;

use super::action::SharedAction;
use super::mirror::RUNS;
use super::run_record::SharedRun;
use super::{SharedStore, position};
use crate::document::DocumentError;
use policyd_world::WorldError;

impl SharedStore<'_> {
    /// Records a run for all hosts.
    ///
    /// # Errors
    /// The record was not saved.
    pub fn record_run(&self, record: &SharedRun) -> Result<(), WorldError> {
        let client = position::client(self.world, &self.folder)?;
        let id = format!("{client}-{}", record.run);
        self.mirror(RUNS).change(|all| {
            let action = SharedAction::Run { id: id.clone(), record: Box::new(record.clone()) };
            self.push(action, self.world.now())?;
            all.insert(id, json!(record));
            Ok(())
        })
    }

    /// Returns the runs of the local copy, the newest record first.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn runs(&self) -> Result<Vec<SharedRun>, DocumentError> {
        let all = self.mirror(RUNS).all()?.into_values();
        let mut all: Vec<SharedRun> =
            all.filter_map(|it| serde_json::from_value(it).ok()).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.updated));
        Ok(all)
    }
}
