//! Claims of dead letters: one agent of all hosts works on a task until its lease ends.

use std::time::Duration;

use serde_json::json;

use super::Stores;
use crate::sharing::SyncLimits;
use policyd_state::dead_letter::{Task, TaskClaim, TaskEffect, TaskEvent, TaskQueue};
use policyd_store::file::Durability;
use policyd_store::shared::action::{SharedAction, SharedResponse, TaskChange};
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{SharedStore, SyncError};
use policyd_world::WorldError;

/// Why a dead letter could not be claimed or given back.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error("could not change the task queues: {0}")]
    Local(#[from] WorldError),
    /// Only the server knows who claimed a shared task first.
    #[error("{0}")]
    Server(#[from] SyncError),
}

impl ClaimError {
    /// Returns whether the server can have made the change although its answer did not come.
    #[must_use]
    pub const fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Server(SyncError::Server(error)) if error.is_commit_unknown())
    }
}

impl Stores<'_> {
    /// Claims the first of these dead letters that is free. `None` if all are claimed or wait for a human.
    pub fn claim(
        &self,
        ids: &[String],
        holder: &str,
        lease: Duration,
        limits: SyncLimits<'_>,
    ) -> Result<Option<(Task, TaskClaim)>, ClaimError> {
        let lists = self.queues.peek();
        // A server that was restored may not know a claim.
        let is_free = |it: &&String| !lists.find(it).is_some_and(|it| it.is_claimed(self.now));
        for id in ids.iter().filter(is_free) {
            let event = TaskEvent::Claimed { holder, lease };
            let decided = self.decide(id, "claimed", event, limits)?;
            let Some((task, effects)) = decided else { continue };
            // Agents on two hosts can have the same name, so the holder does not tell who was first.
            let won = effects.contains(&TaskEffect::Claimed);
            if let Some(claim) = task.claim.clone().filter(|_| won) {
                return Ok(Some((task, claim)));
            }
        }
        Ok(None)
    }

    /// Returns the dead letters that can be claimed, the oldest first.
    pub fn claimable(&self) -> Vec<String> {
        let lists = self.queues.peek();
        let is_free = |it: &&Task| it.waits_for.is_empty() && !it.is_claimed(self.now);
        let mut free: Vec<&Task> = lists.on(TaskQueue::DeadLetter).filter(is_free).collect();
        free.sort_by_key(|it| it.first_failure);
        free.into_iter().map(|it| it.id.clone()).collect()
    }

    /// Ends a claim. Returns whether the generation was that of the claim.
    pub fn end_claim(
        &self,
        id: &str,
        generation: u64,
        is_done: bool,
        limits: SyncLimits<'_>,
    ) -> Result<bool, ClaimError> {
        let (what, event) = match is_done {
            true => ("finished", TaskEvent::Finished { generation }),
            false => ("unclaimed", TaskEvent::Unclaimed { generation }),
        };
        let decided = self.decide(id, what, event, limits)?;
        let Some((task, effects)) = decided else { return Ok(false) };
        let own = task.claim.is_some_and(|it| it.generation == generation);
        Ok(if is_done { effects.contains(&TaskEffect::Done) } else { own })
    }

    /// Lets the server decide about a shared task, and the files about any other.
    fn decide(
        &self,
        id: &str,
        what: &str,
        event: TaskEvent<'_>,
        limits: SyncLimits<'_>,
    ) -> Result<Option<(Task, Vec<TaskEffect>)>, ClaimError> {
        let found = SharedStore::find(self.world, &self.own, &Durability::default());
        let shared = found.map_err(SyncError::from)?;
        let Some(shared) = shared.filter(|it| it.settings().shares(SharedSubject::Tasks)) else {
            return Ok(self.act(id, what, event, json!({}))?);
        };
        let change = TaskChange::from(event);
        let action = SharedAction::Task { id: id.to_owned(), change };
        match shared.decide(action, limits)? {
            SharedResponse::Task(Some((task, effects))) => {
                self.audit(what, &task, json!({"shared": true}));
                Ok(Some((*task, effects)))
            }
            SharedResponse::Task(None) => Ok(None),
            SharedResponse::Breaker(_)
            | SharedResponse::Escalation(_)
            | SharedResponse::Approval(_)
            | SharedResponse::Run
            | SharedResponse::Signal(_)
            | SharedResponse::Void => Ok(None),
        }
    }
}
