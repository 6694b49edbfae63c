//! The step of a run.
//!
//! `step(run, event, limits, now) -> (run, effects)`:
//!
//! | phase | looked | asked | ended | resumed | interrupted | cannot run |
//! |---|---|---|---|---|---|---|
//! | ready | below | no change | no change | ready | over: interrupted | over: cannot run |
//! | asking | no change | admitted: working, a turn begins; rejected: waiting, or over if the wait is too long | no change | ready | over | over |
//! | working | no change | no change | below | ready, with the known usage booked, else as a turn of unknown cost; repeats the turn | over, with the usage booked; repeats the turn once resumed | over |
//! | waiting | STOP, a no, or a human needed: over; the wait is over: as ready; otherwise no change | no change | no change | no change | over | over |
//! | paused | STOP or a no: over; no PAUSE any more: as ready; otherwise no change | no change | no change | ready | over | over |
//! | over: complete | no change | no change | no change | no change | no change | no change |
//! | over otherwise | no change | no change | no change | ready, with the cause of the end cleared | no change | no change |
//!
//! A human accepts a run that ended without a verdict: over, complete. A human dismisses a run: it waits for no human
//! until it is resumed, and its phase stays.
//!
//! Between two turns, the first true condition decides. STOP: over. A human said no: over. A human must
//! decide: over, or paused. PAUSE: paused. No turn left: over, unless the limit is extended. No money or time left:
//! over. Otherwise the breaker is asked.
//!
//! At the end of a turn, its usage is booked first. Then the first true condition decides:
//!
//! | condition | result |
//! |---|---|
//! | a claim that the stop gate accepts | over: complete. Finished work is never discarded |
//! | a claim with changes that could not be observed, if `unseen_changes` requires it, or the third in a row | over: unverified |
//! | no claim, nothing changed after earlier turns worked, and the stop gate agrees | over: complete, unclaimed |
//! | a failure that no wait fixes | over: human needed |
//! | the task was dead-lettered | over: dead letter |
//! | the money or the time is spent | over |
//! | the context is full | a new session, while restarts are left; otherwise over |
//! | a failure that is retried | waiting, then the same turn again |
//! | stuck, for enough rounds | a new session, while restarts are left; otherwise over: stuck |
//! | no change for several turns, or the health verdict `abort` | over: circuit breaker |
//! | otherwise | ready; if the run seems stuck, the agent receives a note |
//!
//! If the run then continues in the same session and a clear context was requested, it continues in
//! a new session. A request in each turn hides neither failures nor a lack of progress.

use std::time::Duration;

use super::budget::{self, BudgetLevel, percent, usd_text};
use super::iterations::{Progress, TurnPermission, allowed};
use super::unseen::describe;
use super::{Admission, ControlSignals, Run, RunEffect, RunEvent, RunLimits, RunPhase, RunStatus};
use policyd_yaml::time::Timestamp;

/// Returns the next state of a run, and the effects of the event.
#[must_use]
pub fn step(
    run: &Run,
    event: &RunEvent<'_>,
    limits: &RunLimits,
    now: Timestamp,
) -> (Run, Vec<RunEffect>) {
    let mut step = RunStep { run: run.clone(), limits, now, effects: Vec::new() };
    match (&run.phase, event) {
        (RunPhase::Over { status, .. }, RunEvent::Resumed(_)) if *status != RunStatus::Complete => {
            step.reopen();
        }
        (RunPhase::Over { status, .. }, RunEvent::Accepted(why)) if status.can_be_accepted() => {
            step.run.at_last_end = run.totals();
            step.run.unseen.clear();
            step.end(RunStatus::Complete, why);
        }
        (_, RunEvent::Dismissed) => step.run.dismissed = true,
        (RunPhase::Over { .. }, _) => return (run.clone(), Vec::new()),
        (_, RunEvent::Interrupted(used)) => {
            if let Some(used) = used {
                step.book_use(*used);
            }
            step.run.again |= run.phase == RunPhase::Working;
            step.end(RunStatus::Interrupted, "it was interrupted");
        }
        (_, RunEvent::CannotRun(why)) => {
            step.run.again |= run.phase == RunPhase::Working;
            step.end(RunStatus::CannotRun, why);
        }
        (RunPhase::Working, RunEvent::Resumed(used)) => {
            // Without known usage, the cost of the turn is unknown.
            step.book_use(used.unwrap_or_default());
            step.run.again = true;
            step.run.phase = RunPhase::Ready;
        }
        (RunPhase::Asking | RunPhase::Paused, RunEvent::Resumed(_)) => {
            step.run.phase = RunPhase::Ready
        }
        (RunPhase::Ready, RunEvent::Looked(look)) => step.look(look),
        (RunPhase::Paused, RunEvent::Looked(look)) => step.look(look),
        (RunPhase::Waiting { until_ms, .. }, RunEvent::Looked(look)) => {
            let over = now.millis() >= *until_ms;
            step.look_while_waiting(look, over);
        }
        (RunPhase::Asking, RunEvent::Asked(admission)) => step.asked(admission),
        (RunPhase::Working, RunEvent::Ended(turn)) => step.ended(turn),
        (
            RunPhase::Ready
            | RunPhase::Asking
            | RunPhase::Working
            | RunPhase::Waiting { .. }
            | RunPhase::Paused,
            RunEvent::Accepted(_),
        )
        | (RunPhase::Ready | RunPhase::Waiting { .. }, RunEvent::Resumed(_))
        | (RunPhase::Asking | RunPhase::Working, RunEvent::Looked(_))
        | (
            RunPhase::Ready | RunPhase::Working | RunPhase::Waiting { .. } | RunPhase::Paused,
            RunEvent::Asked(_),
        )
        | (
            RunPhase::Ready | RunPhase::Asking | RunPhase::Waiting { .. } | RunPhase::Paused,
            RunEvent::Ended(_),
        ) => {}
    }
    if step.run != *run {
        step.run.updated_ms = now.millis();
    }
    (step.run, step.effects)
}

/// A step in progress.
pub(super) struct RunStep<'a> {
    pub(super) run: Run,
    pub(super) limits: &'a RunLimits,
    now: Timestamp,
    pub(super) effects: Vec<RunEffect>,
}

impl RunStep<'_> {
    /// Ends the run. Names changes that could not be observed, whatever the status.
    pub(super) fn end(&mut self, status: RunStatus, why: &str) {
        let mut why = why.to_owned();
        if !self.run.unseen.is_empty()
            && !matches!(status, RunStatus::Complete | RunStatus::Unverified)
        {
            why = format!("{why}; {}", describe(&self.run.unseen));
        }
        self.run.phase = RunPhase::Over { status, why };
        self.effects.push(RunEffect::End(status));
    }

    pub(super) fn wait(&mut self, wait: Duration, why: &str) {
        let until_ms = self.now.plus(wait).millis();
        self.run.phase = RunPhase::Waiting { until_ms, why: why.to_owned() };
        self.effects.push(RunEffect::Wait { wait, why: why.to_owned() });
    }

    /// Clears the cause of the end, because the user resumes the run.
    fn reopen(&mut self) {
        let run = &mut self.run;
        run.at_last_end = run.totals();
        run.resumes = run.resumes.saturating_add(1);
        run.resumed_ms = Some(self.now.millis());
        run.phase = RunPhase::Ready;
        run.dismissed = false;
        run.idle = 0;
        run.aborts = 0;
        run.failures = 0;
        run.attempt = 0;
        run.stuck_rounds = 0;
        run.stuck_told = false;
        run.trail.marks.clear();
        run.circle.clear();
        run.unseen.clear();
        run.unverified = 0;
        run.unseen_asked = false;
    }

    fn look_while_waiting(&mut self, look: &ControlSignals, over: bool) {
        if over || look.stop || look.review.is_some() || look.refused.is_some() {
            self.look(look);
        } else {
            self.run.human.extend_from_slice(&look.input);
        }
    }

    /// Decides between two turns.
    fn look(&mut self, look: &ControlSignals) {
        let limits = self.limits;
        self.run.human.extend_from_slice(&look.input);
        if look.stop {
            let by = look.stop_by.as_str();
            let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
            return self.end(RunStatus::Stopped, &format!("STOP was emitted{by}"));
        }
        if let Some(why) = &look.refused {
            return self.end(RunStatus::HumanNeeded, why);
        }
        match &look.review {
            Some(_) if limits.wait_for_human => {
                self.run.phase = RunPhase::Paused;
                return;
            }
            Some(why) => return self.end(RunStatus::HumanNeeded, why),
            None => {}
        }
        if std::mem::take(&mut self.run.unseen_asked) {
            // The human who was asked has answered, and has accepted the changes.
            self.run.unseen.clear();
        }
        if look.pause.is_some() {
            self.run.phase = RunPhase::Paused;
            return;
        }
        if !self.run.again && !self.has_turns() {
            let most = self.run.iterations_max(limits);
            let why = self.with_last_failure(format!("all {most} turns are used up"));
            return self.end(RunStatus::MaxIterations, &why);
        }
        if !self.is_spent() {
            self.run.phase = RunPhase::Asking;
            self.effects.push(RunEffect::Ask);
        }
    }

    /// Adds why the last turn failed to the reason of an end.
    pub(super) fn with_last_failure(&self, why: String) -> String {
        let Run { failures, last_class, last_error, .. } = &self.run;
        match (*failures, last_error.as_str()) {
            (0, _) => why,
            (_, "") => format!("{why}; the last one failed ({last_class})"),
            (_, error) => format!("{why}; the last one failed ({last_class}): {error}"),
        }
    }

    /// Returns whether another turn is permitted. Extends the limit if the pack permits it.
    fn has_turns(&mut self) -> bool {
        let (run, limits) = (&mut self.run, self.limits);
        let last = run.trail.marks.last();
        let progress = Progress {
            extended: run.extended,
            tests: last.and_then(|it| it.tests),
            failures: run.failures.max(run.idle),
            claimed: !run.feedback.is_empty(),
            velocity: velocity(run),
        };
        let next = run.iteration.saturating_add(1);
        match allowed(next, run.iterations_max(limits), limits.extension, progress) {
            TurnPermission::Yes => true,
            TurnPermission::No => false,
            TurnPermission::Extended(by) => {
                run.extended = run.extended.saturating_add(1);
                run.extended_by = run.extended_by.saturating_add(by);
                self.effects.push(RunEffect::Extended(by));
                true
            }
        }
    }

    /// Ends the run if its money or time is spent, and warns before. Returns whether it ended.
    pub(super) fn is_spent(&mut self) -> bool {
        let (limits, spent) = (self.limits, self.run.spend.cost_usd);
        let limit = limits.budget_usd.unwrap_or_default();
        match budget::level(spent, limits.budget_usd, limits.warn_percent) {
            BudgetLevel::Within => {}
            BudgetLevel::Warn if self.run.warned => {}
            BudgetLevel::Warn => {
                self.run.warned = true;
                self.effects.push(RunEffect::BudgetWarning(percent(spent, limit)));
            }
            BudgetLevel::Spent => {
                let least = if self.run.unpriced > 0 { "at least " } else { "" };
                let (spent, limit) = (usd_text(spent), usd_text(limit));
                self.end(RunStatus::Budget, &format!("{least}{spent} of {limit} USD are spent"));
                return true;
            }
        }
        let worked = Duration::from_millis(self.run.worked_ms);
        if limits.time.is_some_and(|most| worked >= most) {
            self.end(RunStatus::TimeUp, "the time is over");
            return true;
        }
        false
    }

    fn asked(&mut self, admission: &Admission) {
        match admission {
            Admission::Admitted => {
                let run = &mut self.run;
                if !run.again {
                    run.iteration = run.iteration.saturating_add(1);
                    run.session_iteration = run.session_iteration.saturating_add(1);
                }
                run.again = false;
                run.phase = RunPhase::Working;
                self.effects.push(RunEffect::Begin);
            }
            Admission::Rejected { wait: Some(wait), why } if *wait <= self.limits.breaker_wait => {
                self.wait(*wait, why);
            }
            Admission::Rejected { why, .. } => self.end(RunStatus::BreakerOpen, why),
        }
    }
}

/// Returns the recent number of changed lines per turn.
fn velocity(run: &Run) -> u32 {
    let lines: Vec<u32> = run.trail.marks.iter().filter_map(|it| it.lines).collect();
    let sum = lines.iter().fold(0_u32, |sum, it| sum.saturating_add(*it));
    u32::try_from(lines.len()).ok().and_then(|it| sum.checked_div(it)).unwrap_or(0)
}
