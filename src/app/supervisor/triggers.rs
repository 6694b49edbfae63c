//! What a run asks for by itself at the end of a turn: the triggers of `signals.yaml`, as hooks evaluate
//! them, over the conversation of the whole run and what is known of its turns.

use serde_json::json;

use super::Supervisor;
use crate::tasks::CLEAR;
use policyd_evaluation::signals;
use policyd_fact_table::record::FactRecord;
use policyd_state::run::{ContextRequest, Run, RunEvent, TurnResult, step};

/// Who creates the signals.
const SENDER: &str = "policyd run";

impl Supervisor<'_> {
    /// Creates the signals that are due after a turn, if the run continues in the same session. A trigger creates one
    /// signal while its condition stays true. A trigger that requests a clear context creates one after every such
    /// turn, because these requests are counted.
    pub(super) fn raise(&mut self, turn: &mut TurnResult) {
        turn.raised.clone_from(&self.run.raised);
        let (next, _) = step(&self.run, &RunEvent::Ended(turn), &self.limits, self.world.now());
        let goes_on = next.status().is_none() && next.turns_left(&self.limits);
        if !goes_on || next.session != self.run.session {
            return;
        }
        let (record, task) = (self.trigger_record(&next), self.task().id);
        let policy = &self.ready.policy;
        let (due, failed) = signals::due(&policy.signals, record, None);
        for (trigger, why) in failed {
            self.problem(&format!("{}: `{}` is unknown: {why}", trigger.when.place, trigger.id));
        }
        turn.raised.clear();
        for it in due {
            let clears = it.trigger.emit == CLEAR;
            if clears && !policy.context.clear_requests.holds(true) {
                continue;
            }
            if !clears {
                turn.raised.push(it.trigger.id.clone());
            }
            if self.run.raised.contains(&it.trigger.id) {
                continue;
            }
            match self.stores().raise(&it, &task, SENDER) {
                Ok(Some((made, problems))) => {
                    problems.iter().for_each(|it| self.problem(it));
                    let fields = [
                        ("iteration", json!(self.run.iteration)),
                        ("signal", json!(made.name)),
                        ("trigger", json!(it.trigger.id)),
                        ("reason", json!(it.reason)),
                    ];
                    self.report("loop.signal", &fields);
                }
                Ok(None) => {}
                Err(error) => self.problem(&format!("{}: {error}", it.trigger.emit)),
            }
        }
        if turn.context == ContextRequest::Fits && self.wants_clear() {
            turn.context = ContextRequest::ClearRequested;
        }
    }

    /// The run as triggers see it, after a turn.
    fn trigger_record(&self, next: &Run) -> FactRecord {
        let facts = self.facts();
        let of_tools = i64::try_from(facts.tools.same_errors).unwrap_or(i64::MAX);
        let errors = of_tools.max(next.same_error_of_session().into());
        let told = self.stores().run_of(&facts);
        told.with("supervised", true)
            .with("task_id", self.task().id.as_str())
            // A turn that is made again is one turn, however often its prompt was said.
            .with("iterations", i64::from(next.session_iteration))
            .with("same_error_count", errors)
            .with("consecutive_failures", i64::from(next.failures))
            .with("cost_usd_per_hour", next.usd_per_hour())
    }
}
