//! The memory of the pack: reads it for rules, and changes it after guards fired.

use std::path::Path;

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_base::limits::HOOK_LOCK_WAIT;
use policyd_evaluation::guards::MemoryChange;
use policyd_fact_table::context::Context;
use policyd_fact_table::remembered_facts::MemorySnapshot;
use policyd_facts::event::EventKind;
use policyd_state::memory::{self, MemoryMoment, MemoryScope, MemorySettings};
use policyd_store::memory::MemoryStore;

impl GateContext<'_> {
    /// Returns what the memory contains at the event, without what the same event remembered, which two hook lines report.
    /// `None` if it cannot be read.
    pub(super) fn memory_snapshot(
        &self,
        context: &Context,
        diagnostics: &mut Diagnostics,
    ) -> Option<MemorySnapshot> {
        let mut snapshot = MemorySnapshot::default();
        for (of_project, scopes) in STORES {
            let entries: Vec<_> =
                self.policy.memory.iter().filter(|it| scopes.contains(&it.1.scope)).collect();
            if entries.is_empty() {
                continue;
            }
            let stored = self.memory_store(of_project).load();
            let stored = stored.map_err(|error| diagnostics.problem(&error.note())).ok()?;
            for (id, settings) in entries {
                let Some(owner) = self.memory_owner(settings, context) else {
                    snapshot.unknown.insert(id.clone());
                    continue;
                };
                let Some(entry) = stored.get(id) else { continue };
                let call = self.call_id();
                let live = entry.live(settings, &owner, self.request.now);
                let earlier = live.filter(|it| call.is_none_or(|id| !it.is_of_call(id)));
                snapshot.texts.insert(id.clone(), earlier.map(|it| it.text.clone()).collect());
            }
        }
        Some(snapshot)
    }

    /// Applies the changes of guards that fired.
    pub(super) fn change_memory(
        &self,
        changes: &[MemoryChange],
        context: &Context,
        diagnostics: &mut Diagnostics,
    ) {
        let settings = |id: &str| self.policy.memory.iter().find(|it| it.0 == id).map(|it| &it.1);
        for (of_project, scopes) in STORES {
            let of_store: Vec<(&MemoryChange, &MemorySettings)> = changes
                .iter()
                .filter_map(|it| Some((it, settings(&it.entry)?)))
                .filter(|(_, it)| scopes.contains(&it.scope))
                .collect();
            if of_store.is_empty() || self.request.dry_run {
                continue;
            }
            let wait = HOOK_LOCK_WAIT;
            let saved = self.memory_store(of_project).change(wait, |entries| {
                for (change, settings) in of_store {
                    let Some(text) = &change.text else {
                        entries.remove(&change.entry);
                        continue;
                    };
                    let Some(owner) = self.memory_owner(settings, context) else { continue };
                    let id = self.call_id().map(|it| format!("{it} {}", change.guard));
                    let id = id.unwrap_or_default();
                    let moment = MemoryMoment { of: &owner, event: &id, now: self.request.now };
                    let entry = entries.entry(change.entry.clone()).or_default();
                    *entry = entry.remember(settings, text, moment);
                }
                memory::bound(entries);
            });
            match saved {
                Ok(None) => {}
                Ok(Some(why)) => diagnostics.note(format!("the memory was saved, but {why}")),
                Err(error) => diagnostics.problem(&error.note()),
            }
        }
    }

    /// Opens the memory of the project, or of the session.
    fn memory_store(&self, of_project: bool) -> MemoryStore<'_> {
        let session = self.store.paths(&self.request.event.session_id).folder;
        let directory: &Path = match (of_project, self.is_organization) {
            (false, _) => &session,
            (true, true) => &self.store.root,
            (true, false) => &self.state_dir,
        };
        MemoryStore::new(self.world, directory, &self.store.durability)
    }

    /// Returns the episode, the session, or the day that the texts of an entry belong to. `None` if the episode is not known: the
    /// prompts are in the transcript of the session.
    fn memory_owner(&self, settings: &MemorySettings, context: &Context) -> Option<String> {
        let event = &self.request.event;
        Some(match settings.scope {
            MemoryScope::Session => "session".to_owned(),
            MemoryScope::Day => self.day(),
            MemoryScope::Episode => {
                if event.subagent_transcript || context.transcript_problem.is_some() {
                    return None;
                }
                // The transcript does not have the prompt yet that begins the episode.
                let begins = u64::from(event.kind == EventKind::UserPromptSubmit);
                format!("prompt {}", context.facts.prompts.count.saturating_add(begins))
            }
        })
    }

    /// Returns the id of the tool call, if the client gives it one.
    fn call_id(&self) -> Option<&str> {
        self.request.event.call_id.as_deref().filter(|it| !it.is_empty())
    }
}

/// The documents of the memory: whether it belongs to the project, and the scopes of its entries.
const STORES: [(bool, &[MemoryScope]); 2] =
    [(false, &[MemoryScope::Episode, MemoryScope::Session]), (true, &[MemoryScope::Day])];
