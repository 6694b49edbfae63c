//! The answer of a human to an escalation: the question is closed first, then its tasks move. Commands and the dashboard
//! share it. A shared store that refuses the answer makes none of the changes that belong to it.

use serde_json::{Value, json};

use super::incidents::Incident;
use super::{ReviewRow, Stores};
use policyd_state::dead_letter::TaskEvent;
use policyd_state::escalation::{Escalation, EscalationEffect, EscalationEvent};
use policyd_world::WorldError;

/// Result of an answer.
#[derive(Debug)]
pub enum AnswerOutcome {
    /// The question is closed.
    Moved {
        /// What the review did to its tasks.
        rows: Vec<ReviewRow>,
        /// Keys of the breakers that were reset.
        breakers: Vec<String>,
    },
    /// It was closed before; the first decision stays.
    AlreadyResolved,
}

/// Which part of an answer could not be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPart {
    Escalation,
    Tasks,
    Breakers,
}

/// Why an answer was not saved.
#[derive(Debug)]
pub struct AnswerError {
    pub part: AnswerPart,
    pub source: WorldError,
}

impl Stores<'_> {
    /// Closes an escalation in the name of a human. A yes also resets the breakers that the same failure opened.
    ///
    /// # Errors
    /// The escalation, its tasks, or a breaker could not be saved.
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
        let answer = self.answer_id(&found.id);
        let escalations = self.escalations.clone().in_answer(&answer);
        let step = escalations.step(&found.id, event, self.now);
        let (closed, effect) = step.map_err(at(AnswerPart::Escalation))?;
        // What cannot be read is not reset.
        let breakers = self.breakers.all().unwrap_or_default();
        let incident = Incident::of_question(&closed, &self.queues.peek(), &breakers);
        let tasks = &incident.tasks;
        if effect == EscalationEffect::AlreadyClosed {
            // The first answer was saved, but its tasks might not have moved.
            if !tasks.is_empty() {
                self.review(tasks).map_err(at(AnswerPart::Tasks))?;
            }
            return Ok(AnswerOutcome::AlreadyResolved);
        }
        let details = json!({"escalation": found.id, "decision": decision, "approved": approved});
        let stores = self.in_answer(&answer, tasks);
        let rows = stores.move_tasks(&closed, tasks, &details).map_err(at(AnswerPart::Tasks))?;
        if !approved {
            return Ok(AnswerOutcome::Moved { rows, breakers: Vec::new() });
        }
        stores.reset_breakers(&incident).map_err(at(AnswerPart::Breakers))?;
        Ok(AnswerOutcome::Moved { rows, breakers: incident.breakers })
    }

    /// Lets the tasks of an approved question continue, and abandons those of a rejected one.
    fn move_tasks(
        &self,
        answered: &Escalation,
        tasks: &[String],
        details: &Value,
    ) -> Result<Vec<ReviewRow>, WorldError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let approved = answered.closed.as_ref().is_some_and(|it| it.approved);
        for task in tasks {
            let event = if approved {
                TaskEvent::Answered { by: &answered.id }
            } else {
                TaskEvent::GivenUp { reason: "human" }
            };
            self.act(task, "answered", event, details.clone())?;
        }
        Ok(self.review(tasks)?.rows)
    }
}
