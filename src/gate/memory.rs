//! The memory of the pack: what its rules read of it, and how guards change it.

use std::path::Path;

use super::context::GateContext;
use super::output::Report;
use policyd_base::limits::HOOK_LOCK_WAIT;
use policyd_evaluation::guards::MemoryChange;
use policyd_fact_table::remembered_facts::MemorySnapshot;
use policyd_state::memory::{MemoryMoment, MemoryScope, MemorySettings};
use policyd_store::memory::MemoryStore;

impl GateContext<'_> {
    /// Returns what the memory contains at the event. `prompts`: number of prompts of the session. `None` if it cannot be read.
    pub(super) fn memory_snapshot(
        &self,
        prompts: u64,
        report: &mut Report,
    ) -> Option<MemorySnapshot> {
        let mut snapshot = MemorySnapshot::default();
        for (of_project, scopes) in STORES {
            let entries: Vec<_> =
                self.policy.memory.iter().filter(|it| scopes.contains(&it.1.scope)).collect();
            if entries.is_empty() {
                continue;
            }
            let stored = self.memory_store(of_project).load();
            let stored = stored.map_err(|error| report.problem(&error.note())).ok()?;
            for (id, settings) in entries {
                let Some(entry) = stored.get(id) else { continue };
                let of = self.memory_owner(settings, prompts);
                let live = entry.live(settings, &of, self.request.now);
                snapshot.texts.insert(id.clone(), live.map(|it| it.text.clone()).collect());
            }
        }
        Some(snapshot)
    }

    /// Changes the memory as guards that fired say.
    pub(super) fn change_memory(
        &self,
        changes: &[MemoryChange],
        prompts: u64,
        report: &mut Report,
    ) {
        let settings = |id: &str| self.policy.memory.iter().find(|it| it.0 == id).map(|it| &it.1);
        let event = &self.request.event;
        for (of_project, scopes) in STORES {
            let own: Vec<(&MemoryChange, &MemorySettings)> = changes
                .iter()
                .filter_map(|it| Some((it, settings(&it.entry)?)))
                .filter(|(_, it)| scopes.contains(&it.scope))
                .collect();
            if own.is_empty() || self.request.dry_run {
                continue;
            }
            let wait = HOOK_LOCK_WAIT;
            let saved = self.memory_store(of_project).change(wait, |entries| {
                for (change, settings) in own {
                    let Some(text) = &change.text else {
                        entries.remove(&change.entry);
                        continue;
                    };
                    let of = self.memory_owner(settings, prompts);
                    let id = event.call_id.as_deref().filter(|it| !it.is_empty());
                    let id = id.map(|it| format!("{it} {}", change.guard)).unwrap_or_default();
                    let moment = MemoryMoment { of: &of, event: &id, now: self.request.now };
                    let entry = entries.entry(change.entry.clone()).or_default();
                    *entry = entry.remember(settings, text, moment);
                }
            });
            match saved {
                Ok(None) => {}
                Ok(Some(why)) => report.note(format!("the memory was saved, but {why}")),
                Err(error) => report.problem(&error.note()),
            }
        }
    }

    /// The memory of the project, or of the session.
    fn memory_store(&self, of_project: bool) -> MemoryStore<'_> {
        let session = self.store.paths(&self.request.event.session_id).folder;
        let directory: &Path = match (of_project, self.is_organization) {
            (false, _) => &session,
            (true, true) => &self.store.root,
            (true, false) => &self.state_dir,
        };
        MemoryStore::new(self.world, directory, &self.store.durability)
    }

    /// The episode, the session, or the day that the texts of an entry belong to.
    fn memory_owner(&self, settings: &MemorySettings, prompts: u64) -> String {
        match settings.scope {
            MemoryScope::Episode => format!("prompt {prompts}"),
            MemoryScope::Session => "session".to_owned(),
            MemoryScope::Day => self.day(),
        }
    }
}

/// Whether a document belongs to the project, and the entries in it.
const STORES: [(bool, &[MemoryScope]); 2] =
    [(false, &[MemoryScope::Episode, MemoryScope::Session]), (true, &[MemoryScope::Day])];
