//! Writes and saves the summary of a session for the next context.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use policyd_base::id::SessionId;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::Facts;
use policyd_record::summary::{SummaryInput, markdown};
use policyd_store::file::{self, Durability, SaveOutcome};
use policyd_store::session::SessionStore;
use policyd_store::summaries::{SUMMARY_FILE, Summaries, Summary};
use policyd_workspace::error::AppError;
use policyd_workspace::git;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// A summary to save.
#[derive(Clone, Copy)]
pub struct SummaryDraft<'d> {
    pub text: &'d str,
    /// Why it was written.
    pub reason: &'d str,
    pub at: Timestamp,
    /// When a context received the summary. `None` if no context received it.
    pub told: Option<Timestamp>,
}

/// Writes the summaries of a project.
#[derive(Clone, Copy)]
pub struct SummaryWriter<'a> {
    pub world: &'a dyn World,
    /// The project.
    pub folder: &'a Path,
    /// The state directory.
    pub own: &'a Path,
    pub store: &'a SessionStore<'a>,
    pub wait: Duration,
}

impl SummaryWriter<'_> {
    /// Writes a summary of these facts and of the present state of git. `since`: the commit after which changes count.
    pub fn summarize(&self, facts: &Facts, gauge: &ContextUsage, since: Option<&str>) -> String {
        let git = git::ask(self.world, self.folder, since);
        markdown(&SummaryInput::of(facts, gauge, &git, self.folder))
    }

    /// Opens the summaries of the project.
    pub fn summaries(&self) -> Summaries<'_> {
        Summaries::new(self.world, self.own, self.durability(), self.wait)
    }

    /// Saves a summary for the next context, and as a document beside the state of its session.
    ///
    /// # Errors
    /// It could not be saved.
    pub fn keep(
        &self,
        session: &SessionId,
        iteration: u64,
        draft: SummaryDraft<'_>,
    ) -> Result<(), AppError> {
        let SummaryDraft { text, reason, at: now, told } = draft;
        let summary = Summary {
            session: session.to_string(),
            folder: self.folder.to_string_lossy().into_owned(),
            at: now,
            reason: reason.to_owned(),
            iteration,
            text: text.to_owned(),
            told,
            client: self.client(),
        };
        let failed =
            |why: &dyn Display| AppError::failed_as(format!("could not save the summary: {why}"));
        self.summaries().keep(summary).map_err(|error| failed(&error))?;
        let path = self.store.paths(session).folder.join(SUMMARY_FILE);
        // A session that was never evaluated has no directory yet; the lock creates it.
        drop(self.store.lock(session, self.wait));
        match file::save(self.world, &path, text.as_bytes(), &self.durability()) {
            SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => Ok(()),
            SaveOutcome::NotSaved { why, .. } => Err(failed(&why)),
        }
    }

    /// Returns the process id of the client, which stays the same when a session is cleared. Empty if the client does not
    /// report it (Claude Code reports it since 2.1.214).
    pub fn client(&self) -> String {
        self.world.env("CLAUDE_PID").unwrap_or_default()
    }

    fn durability(&self) -> Durability {
        self.store.durability.clone()
    }
}
