//! The answer of a human to an escalation: the question is closed first, then its tasks move. Commands and the dashboard
//! share it.

use serde_json::json;

use super::{ReviewRow, Stores};
use policyd_state::dead_letter::TaskEvent;
use policyd_state::escalation::{Escalation, EscalationEffect, EscalationEvent};
use policyd_world::WorldError;

/// Result of an answer.
#[derive(Debug)]
pub enum AnswerOutcome {
    /// The question is closed. Contains what the review did to its tasks.
    Moved(Vec<ReviewRow>),
    /// It was closed before; the first decision stays.
    AlreadyResolved,
}

/// Which part of an answer could not be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPart {
    Escalation,
    Tasks,
}

/// Why an answer was not saved.
#[derive(Debug)]
pub struct AnswerError {
    pub part: AnswerPart,
    pub source: WorldError,
}

impl Stores<'_> {
    /// Closes an escalation in the name of a human.
    ///
    /// # Errors
    /// The escalation or its tasks could not be saved.
    pub fn answer(
        &self,
        found: &Escalation,
        approved: bool,
        decision: &str,
        by: &str,
    ) -> Result<AnswerOutcome, AnswerError> {
        let at = |part| move |source| AnswerError { part, source };
        let (decision, by) = (decision.to_owned(), by.to_owned());
        let event = EscalationEvent::Closed { approved, decision: decision.clone(), by };
        let (closed, effect) = self
            .escalations
            .step(&found.id, event, self.now)
            .map_err(at(AnswerPart::Escalation))?;
        let tasks = self.affected_tasks(&closed);
        if effect == EscalationEffect::AlreadyClosed {
            // The first answer was saved, but its tasks might not have moved.
            if !tasks.is_empty() {
                self.review(&tasks).map_err(at(AnswerPart::Tasks))?;
            }
            return Ok(AnswerOutcome::AlreadyResolved);
        }
        if tasks.is_empty() {
            return Ok(AnswerOutcome::Moved(Vec::new()));
        }
        let details = json!({"escalation": found.id, "decision": decision, "approved": approved});
        for task in &tasks {
            let event = if approved {
                TaskEvent::Answered { by: &found.id }
            } else {
                TaskEvent::GivenUp { reason: "human" }
            };
            self.act(task, "answered", event, details.clone()).map_err(at(AnswerPart::Tasks))?;
        }
        let reviewed = self.review(&tasks).map_err(at(AnswerPart::Tasks))?;
        Ok(AnswerOutcome::Moved(reviewed.rows))
    }

    /// Returns the tasks that an escalation is about: its own, and those that wait for it.
    fn affected_tasks(&self, it: &Escalation) -> Vec<String> {
        let lists = self.queues.peek();
        let waiting =
            lists.tasks.iter().filter(|task| task.waits_for == it.id || task.id == it.task_id);
        waiting.map(|task| task.id.clone()).collect()
    }
}
