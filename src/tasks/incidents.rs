//! Incidents: what one failure left in the stores, so that one answer clears it.
//!
//! Contains: [`Incident`], which begins at a question or at a dead letter. Does not contain: the answer (`answers`).

use std::collections::BTreeSet;

use super::Stores;
use policyd_evaluation::dead_letter::last_failure;
use policyd_evaluation::message::in_one_line;
use policyd_state::breaker::{Breaker, BreakerEvent};
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_state::escalation::Escalation;
use policyd_store::queues::Lists;
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// Characters of an error that a question quotes, at most and at least: a shorter error says too little.
const QUOTED_MAX: usize = 120;
const QUOTED_MIN: usize = 10;
/// Begins the name of an agent, and the id of a task, that is a run.
const RUN_AGENT: &str = "run ";
const RUN_TASK: &str = "run/";

/// What belongs to one failure: its tasks, the breakers that it opened until a human resets them, and the runs that it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incident {
    /// Ids of the tasks.
    pub tasks: Vec<String>,
    /// Keys of the breakers.
    pub breakers: Vec<String>,
    /// Ids of the runs.
    pub runs: BTreeSet<String>,
}

impl Incident {
    /// Returns what belongs to a question: its tasks, and breakers whose last error ends it or was the last one of its tasks.
    #[must_use]
    pub fn of_question(it: &Escalation, lists: &Lists, breakers: &[(String, Breaker)]) -> Self {
        let is_asked = |task: &&Task| task.waits_for == it.id || task.id == it.task_id;
        let tasks = lists.tasks.iter().filter(is_asked).collect();
        Self::of(tasks, &in_one_line(&it.reason), breakers)
    }

    /// Returns what belongs to a dead letter without a question.
    #[must_use]
    pub fn of_task(task: &Task, breakers: &[(String, Breaker)]) -> Self {
        Self::of(vec![task], "", breakers)
    }

    /// Returns what belongs to the end of a run without a task: the breakers with its last error.
    #[must_use]
    pub fn of_error(error: &str, breakers: &[(String, Breaker)]) -> Self {
        Self::of(Vec::new(), &in_one_line(error), breakers)
    }

    fn of(tasks: Vec<&Task>, reason: &str, breakers: &[(String, Breaker)]) -> Self {
        let causes: BTreeSet<String> = tasks
            .iter()
            .filter_map(|it| last_failure(it))
            .map(|it| in_one_line(&it.error))
            .collect();
        let is_same = |it: &Breaker| {
            let error = in_one_line(&it.last_error);
            let quoted: String = error.chars().take(QUOTED_MAX).collect();
            let is_long = quoted.len() < error.len() && reason.contains(&format!(": {quoted}"));
            let is_quoted =
                quoted.chars().count() >= QUOTED_MIN && (reason.ends_with(&error) || is_long);
            it.needs_human && (is_quoted || causes.contains(&error))
        };
        let found = breakers.iter().filter(|(_, breaker)| is_same(breaker));
        Self {
            breakers: found.map(|(key, _)| key.clone()).collect(),
            runs: tasks.iter().flat_map(|it| runs_of(it)).map(str::to_owned).collect(),
            tasks: tasks.iter().map(|it| it.id.clone()).collect(),
        }
    }
}

/// Returns the runs that failed at a task.
fn runs_of(task: &Task) -> impl Iterator<Item = &str> {
    let agents = task.attempts.iter().filter_map(|it| it.agent.strip_prefix(RUN_AGENT));
    agents.chain(task.id.strip_prefix(RUN_TASK))
}

/// Whether the task of a run was abandoned after its last step, so that the run is not continued.
#[must_use]
pub fn is_given_up(lists: &Lists, run: &str, updated: Timestamp) -> bool {
    let is_of_run = |it: &Task| runs_of(it).any(|it| it == run);
    let mut abandoned = lists.on(TaskQueue::Abandoned).filter(|it| is_of_run(it));
    abandoned.any(|it| it.abandoned.is_some_and(|it| it >= updated))
}

impl Stores<'_> {
    /// Resets the breakers that a failure opened, after a human said that work continues.
    ///
    /// # Errors
    /// A breaker was not saved.
    pub fn reset_breakers(&self, incident: &Incident) -> Result<(), WorldError> {
        incident.breakers.iter().try_for_each(|key| {
            let settings = self.policy.breaker(key);
            self.breakers.record(key, BreakerEvent::Reset, &settings, self.now).map(|_| ())
        })
    }
}
