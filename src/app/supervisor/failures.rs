//! Failed turns: classification, breaker, task, and the wait before the next attempt.

use std::time::Duration;

use serde_json::json;

use super::Supervisor;
use super::process_output::{TurnExit, TurnOutput};
use crate::sharing;
use crate::tasks::{FailureReport, Stores};
use crate::workspace::local_time::WallClock;
use policyd_base::limits::EVIDENCE_CHARS_MAX;
use policyd_evaluation::message::cut;
use policyd_policy::failures::{FailureClassification, FailureClassifier, RetryContext};
use policyd_record::mask::mask;
use policyd_state::breaker;
use policyd_state::dead_letter::{Attempt, Task};
use policyd_state::run::TurnFailure;

/// The class of a failure that a fresh context cures.
pub(super) const CONTEXT_CLASS: &str = "context_exhaustion";

impl Supervisor<'_> {
    /// Classifies a failed turn, and records it in its breaker and its task.
    pub(super) fn failure(&mut self, heard: &TurnOutput) -> Option<TurnFailure> {
        let output = &heard.output;
        let ended = matches!(heard.ending, TurnExit::Code(Some(0)) | TurnExit::Spent);
        let worked = ended && !output.failed;
        let key = self.breaker_key();
        let stores = self.stores();
        if worked {
            self.record_call(&stores, &key, breaker::BreakerEvent::success());
            return None;
        }
        let text = words(heard);
        let name = match heard.ending {
            TurnExit::Late | TurnExit::Silent => "timeout",
            TurnExit::Code(_) | TurnExit::Spent | TurnExit::Interrupted | TurnExit::Lost => {
                output.error.as_str()
            }
        };
        let found = self.policy().classify(name, &text);
        let told = failure_line(heard, &text);
        let line = match found.is_permanent() {
            // The cause and its fix, because the task is not what failed.
            true => {
                format!("{} The command reported: {told}", found.class.description.trim())
            }
            false => told,
        };
        let line = line.trim_start().to_owned();
        let settings = self.policy().breaker(&key);
        let effect = settings.effect_of(&found.class.id).unwrap_or(found.class.effect);
        let again = !found.class.attempt && found.class.id != CONTEXT_CLASS;
        let attempt = if again {
            self.run.attempt
        } else {
            self.run.failures.min(found.retry.max.saturating_sub(1))
        };
        let wait = self.wait(&found, &text, attempt.saturating_add(1));
        let retry = wait.clone().filter(|_| again);
        // Where the turn is made again the run itself waits as long as it is asked to; the breaker, which
        // would open for at least its cooldown, only counts.
        let asked = self.policy().failures.waits.retry_after(&text, stores.now);
        let retry_after = asked.filter(|_| retry.is_none());
        let failed =
            breaker::BreakerFailure { effect, retry_after, ..breaker::BreakerFailure::new(&line) };
        self.record_call(&stores, &key, breaker::BreakerEvent::Failure(failed));
        let given_up = retry.is_none() && found.class.id != CONTEXT_CLASS;
        let put_aside = given_up && self.fail_task(&stores, &found, &line);
        Some(TurnFailure {
            class: found.class.id.clone(),
            text: line,
            permanent: found.is_permanent(),
            wait: wait.filter(|_| !again && found.class.id != CONTEXT_CLASS),
            retry,
            put_aside,
        })
    }

    /// How long to wait before the next attempt, and why.
    fn wait(
        &mut self,
        found: &FailureClassification,
        text: &str,
        attempt: u32,
    ) -> Option<(Duration, String)> {
        let now = self.world.now();
        let millis = now.millis().rem_euclid(86_400_000).unsigned_abs();
        let waits = self.policy().failures.waits;
        let mut unknown_zone = None;
        let until_reset = WallClock::until_reset(self.world, now, &waits, text, |it| {
            unknown_zone = Some(it.to_owned());
        });
        if let Some(problem) = unknown_zone {
            self.problem(&problem);
        }
        let at = RetryContext {
            now,
            until_reset,
            attempt,
            requests_per_minute: None,
            // Runs that wait for the same moment must not all continue in the same millisecond.
            chance: u16::try_from(millis % 1_000).map_or(0.0, f64::from) / 1_000.0,
        };
        self.policy().failures.wait(found, text, &at)
    }

    fn record_call(&mut self, stores: &Stores<'_>, key: &str, event: breaker::BreakerEvent<'_>) {
        if key.is_empty() {
            return;
        }
        let settings = self.policy().breaker(key);
        if let Err(error) = stores.breakers.record(key, event, &settings, self.world.now()) {
            self.problem(&format!("could not record the call in breaker `{key}`: {error}"));
        }
        if sharing::has_waiting(self.world, &stores.own) {
            self.synchronize(sharing::QUICK);
        }
    }

    /// Counts a failed turn against its task; returns whether the task is a dead letter now.
    fn fail_task(
        &mut self,
        stores: &Stores<'_>,
        found: &FailureClassification,
        line: &str,
    ) -> bool {
        let report = FailureReport {
            task: self.task(),
            attempt: Attempt {
                error_type: found.class.id.clone(),
                error: line.to_owned(),
                agent: format!("run {}", self.run.id),
                counts: found.class.attempt,
                // A turn is reported once, whatever becomes of this process.
                key: format!("{}-{}", self.mark(), self.run.attempt),
                ..Attempt::default()
            },
            at_once: false,
        };
        match stores.fail(&report) {
            Ok(taken) => {
                taken.problems.iter().for_each(|it| self.problem(it));
                if !taken.entered.is_empty() {
                    self.report("loop.dead_letter", &[("task_id", json!(taken.task.id))]);
                }
                !taken.entered.is_empty()
            }
            Err(error) => {
                self.problem(&format!("the failure could not be counted: {error}"));
                false
            }
        }
    }

    /// What the run works on: the task that the project names, else the run itself.
    pub(super) fn task(&self) -> Task {
        let (id, title) = self.stores().current_task();
        let own = id.is_empty();
        let goal: String =
            self.run.goal.lines().next().unwrap_or_default().chars().take(120).collect();
        Task {
            id: if own { format!("run/{}", self.run.id) } else { id },
            title: if own || title.is_empty() { goal } else { title },
            ..Task::default()
        }
    }
}

/// Returns the error text of a failed turn: how it ended, the standard error of the command, and its answer if the
/// command reports a failure. Only without all of these, the last lines of the agent's text.
fn words(heard: &TurnOutput) -> String {
    const LAST_LINES: usize = 5;
    let complaint = String::from_utf8_lossy(&heard.complaint).into_owned();
    let answer = if heard.output.failed { heard.output.answer.as_str() } else { "" };
    let cause = end_cause(heard.ending);
    let told = [cause.as_str(), complaint.trim(), answer].into_iter().filter(|it| !it.is_empty());
    let told: Vec<&str> = told.collect();
    if !told.is_empty() {
        return told.join("\n");
    }
    let said = heard.output.last_texts();
    let last: Vec<&str> = said.lines().rev().take(LAST_LINES).collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Returns the last line of the text of a failure, after the signal or the timeout that ended the turn.
fn failure_line(heard: &TurnOutput, text: &str) -> String {
    let (cause, line) = (end_cause(heard.ending), one_line(text));
    if cause.is_empty() || line.contains(&cause) { line } else { format!("{cause}: {line}") }
}

/// Returns the signal or the timeout that ended a turn. Empty if the command ended by itself.
fn end_cause(ending: TurnExit) -> String {
    match ending {
        TurnExit::Late => "the turn timed out".to_owned(),
        TurnExit::Silent => "the command timed out: it said nothing".to_owned(),
        TurnExit::Code(None) => "it was ended by a signal".to_owned(),
        TurnExit::Lost => "it could not be waited for".to_owned(),
        TurnExit::Code(Some(code)) => signal(code).unwrap_or_default(),
        TurnExit::Spent | TurnExit::Interrupted => String::new(),
    }
}

/// The signal that an exit code reports, as shells do: 128 and its number. 128 and 129 are codes of usage
/// errors (`git`).
fn signal(code: i32) -> Option<String> {
    let number = code.checked_sub(128).filter(|it| (2..=31).contains(it))?;
    // Numbers that differ between systems have no name here.
    let name = match number {
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => return Some("killed by signal 9 (SIGKILL), often because memory ran out".to_owned()),
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        _ => return Some(format!("ended by signal {number}")),
    };
    Some(format!("ended by signal {number} ({name})"))
}

/// The last line that says something, without secrets.
pub(super) fn one_line(text: &str) -> String {
    let line = text.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or("no output");
    cut(&mask(line.trim()).0, EVIDENCE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use policyd_hook::agent_output::AgentOutput;

    use super::*;

    #[test]
    fn the_line_of_a_failure_names_what_ended_the_turn() {
        let line = |ending, complaint: &str| {
            let heard = TurnOutput {
                output: AgentOutput::default(),
                complaint: complaint.as_bytes().to_vec(),
                ending,
                took: Duration::ZERO,
            };
            failure_line(&heard, &words(&heard))
        };
        for (ending, complaint, text) in [
            (TurnExit::Code(Some(143)), "", "ended by signal 15 (SIGTERM)"),
            (TurnExit::Code(Some(143)), "a\nbye\n", "ended by signal 15 (SIGTERM): bye"),
            (TurnExit::Code(Some(150)), "", "ended by signal 22"),
            (TurnExit::Late, "still busy", "the turn timed out: still busy"),
            (TurnExit::Code(Some(1)), "no key", "no key"),
            (TurnExit::Code(Some(129)), "", "no output"),
        ] {
            assert_eq!(line(ending, complaint), text);
        }
    }
}
