//! The step of a run.
//!
//! `step(run, event, limits, now) -> (run, effects)`:
//!
//! | phase | looked | asked | ended | resumed | interrupted | cannot run |
//! |---|---|---|---|---|---|---|
//! | ready | below | nothing | nothing | ready | over: interrupted | over: cannot run |
//! | asking | nothing | admitted: working, a turn begins; rejected: waiting, or over where that is too long | nothing | ready | over | over |
//! | working | nothing | nothing | below | ready, with what it is known to have used booked; the same turn again | over, with what it used booked; the same turn again, once resumed | over |
//! | waiting | STOP or a human needed: over; the time is over: as ready; else nothing | nothing | nothing | stays | over | over |
//! | paused | STOP: over; PAUSE is gone: as ready; else nothing | nothing | nothing | ready | over | over |
//! | over: complete | nothing | nothing | nothing | nothing | nothing | nothing |
//! | over otherwise | nothing | nothing | nothing | ready, with what led to the end forgotten | nothing | nothing |
//!
//! Between two turns the first that holds decides: STOP: over; a human must decide: over, or paused;
//! PAUSE: paused; no turn left: over, unless it is extended; no money or time left: over; else a
//! breaker is asked.
//!
//! At the end of a turn the first that holds decides. What it used is booked before anything else.
//!
//! | holds | then |
//! |---|---|
//! | a claim that the gate accepts | over: complete. Finished work is never thrown away |
//! | a claim with changes that could not be observed, if `unseen_changes` says so, or the third in a row | over: unverified |
//! | a failure that no waiting cures | over: human needed |
//! | its task was dead-lettered | over: dead letter |
//! | the money, or the time, is spent | over |
//! | the context is full | another session, while restarts are left; else over |
//! | a failure that is tried again | waiting, then the same turn again |
//! | stuck, the rounds over | another session, while restarts are left; else over: stuck |
//! | no change, turn after turn; or a health that says `abort` | over: circuit breaker |
//! | else | ready; if it seems stuck, the agent receives a hint |
//!
//! Where it goes on after that in the same session, and a signal requested a clear context, it goes on
//! in another one: asking for it each turn hides neither failures nor that nothing moves.

use std::time::Duration;

use super::budget::{self, Level, percent, usd_text};
use super::iterations::{Allowed, Progress, allowed};
use super::unseen::describe;
use super::{Admission, Effect, Event, Limits, Look, Phase, Run, Status};
use crate::time::Timestamp;

/// Moves a run on.
#[must_use]
pub fn step(run: &Run, event: &Event<'_>, limits: &Limits, now: Timestamp) -> (Run, Vec<Effect>) {
    let mut step = Step { run: run.clone(), limits, now, effects: Vec::new() };
    match (&run.phase, event) {
        (Phase::Over { status, .. }, Event::Resumed(_)) if *status != Status::Complete => {
            step.reopen();
        }
        (Phase::Over { .. }, _) => return (run.clone(), Vec::new()),
        (_, Event::Interrupted(used)) => {
            if let Some(used) = used {
                step.book_use(*used);
            }
            step.run.again |= run.phase == Phase::Working;
            step.end(Status::Interrupted, "it was interrupted");
        }
        (_, Event::CannotRun(why)) => {
            step.run.again |= run.phase == Phase::Working;
            step.end(Status::CannotRun, why);
        }
        (Phase::Working, Event::Resumed(used)) => {
            if let Some(used) = used {
                step.book_use(*used);
            }
            step.run.again = true;
            step.run.phase = Phase::Ready;
        }
        (Phase::Asking | Phase::Paused, Event::Resumed(_)) => step.run.phase = Phase::Ready,
        (Phase::Ready, Event::Looked(look)) => step.look(look),
        (Phase::Paused, Event::Looked(look)) => step.look(look),
        (Phase::Waiting { until_ms, .. }, Event::Looked(look)) => {
            let over = now.millis() >= *until_ms;
            step.look_while_waiting(look, over);
        }
        (Phase::Asking, Event::Asked(admission)) => step.asked(admission),
        (Phase::Working, Event::Ended(turn)) => step.ended(turn),
        (Phase::Ready | Phase::Waiting { .. }, Event::Resumed(_))
        | (Phase::Asking | Phase::Working, Event::Looked(_))
        | (
            Phase::Ready | Phase::Working | Phase::Waiting { .. } | Phase::Paused,
            Event::Asked(_),
        )
        | (Phase::Ready | Phase::Asking | Phase::Waiting { .. } | Phase::Paused, Event::Ended(_)) =>
            {}
    }
    if step.run != *run {
        step.run.updated_ms = now.millis();
    }
    (step.run, step.effects)
}

/// A run that is being moved on.
pub(super) struct Step<'a> {
    pub(super) run: Run,
    pub(super) limits: &'a Limits,
    now: Timestamp,
    pub(super) effects: Vec<Effect>,
}

impl Step<'_> {
    /// It is over. What could not be observed is named, however it ends.
    pub(super) fn end(&mut self, status: Status, why: &str) {
        let mut why = why.to_owned();
        if !self.run.unseen.is_empty() && !matches!(status, Status::Complete | Status::Unverified) {
            why = format!("{why}; {}", describe(&self.run.unseen));
        }
        self.run.phase = Phase::Over { status, why };
        self.effects.push(Effect::End(status));
    }

    pub(super) fn wait(&mut self, wait: Duration, why: &str) {
        let until_ms = self.now.plus(wait).millis();
        self.run.phase = Phase::Waiting { until_ms, why: why.to_owned() };
        self.effects.push(Effect::Wait { wait, why: why.to_owned() });
    }

    /// A user who resumes a run fixed the reason of its end.
    fn reopen(&mut self) {
        let run = &mut self.run;
        run.phase = Phase::Ready;
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

    fn look_while_waiting(&mut self, look: &Look, over: bool) {
        if over || look.stop || look.review.is_some() {
            self.look(look);
        } else {
            self.run.human.extend_from_slice(&look.input);
        }
    }

    /// Between two turns.
    fn look(&mut self, look: &Look) {
        let limits = self.limits;
        self.run.human.extend_from_slice(&look.input);
        if look.stop {
            let by = look.stop_by.as_str();
            let by = if by.is_empty() { String::new() } else { format!(", emitted by {by}") };
            return self.end(Status::Stopped, &format!("a human said STOP{by}"));
        }
        match &look.review {
            Some(_) if limits.wait_for_human => {
                self.run.phase = Phase::Paused;
                return;
            }
            Some(why) => return self.end(Status::HumanNeeded, why),
            None => {}
        }
        if std::mem::take(&mut self.run.unseen_asked) {
            // The human who was asked has answered: the changes are theirs to vouch for.
            self.run.unseen.clear();
        }
        if look.pause {
            self.run.phase = Phase::Paused;
            return;
        }
        if !self.run.again && !self.has_turns() {
            let most = self.run.iterations_max(limits);
            return self.end(Status::MaxIterations, &format!("all {most} turns are used up"));
        }
        if !self.is_spent() {
            self.run.phase = Phase::Asking;
            self.effects.push(Effect::Ask);
        }
    }

    /// Whether another turn is allowed; extends the run where a pack says so.
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
            Allowed::Yes => true,
            Allowed::No => false,
            Allowed::Extended(by) => {
                run.extended = run.extended.saturating_add(1);
                run.extended_by = run.extended_by.saturating_add(by);
                self.effects.push(Effect::Extended(by));
                true
            }
        }
    }

    /// Whether money or time are used up, which ends it; warns before.
    pub(super) fn is_spent(&mut self) -> bool {
        let (limits, spent) = (self.limits, self.run.spend.cost_usd);
        let limit = limits.budget_usd.unwrap_or_default();
        match budget::level(spent, limits.budget_usd, limits.warn_percent) {
            Level::Within => {}
            Level::Warn if self.run.warned => {}
            Level::Warn => {
                self.run.warned = true;
                self.effects.push(Effect::BudgetWarning(percent(spent, limit)));
            }
            Level::Spent => {
                let (spent, limit) = (usd_text(spent), usd_text(limit));
                self.end(Status::Budget, &format!("{spent} of {limit} USD are spent"));
                return true;
            }
        }
        let worked = Duration::from_millis(self.run.worked_ms);
        if limits.time.is_some_and(|most| worked >= most) {
            self.end(Status::TimeUp, "the time is over");
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
                run.phase = Phase::Working;
                self.effects.push(Effect::Begin);
            }
            Admission::Rejected { wait: Some(wait), why } if *wait <= self.limits.breaker_wait => {
                self.wait(*wait, why);
            }
            Admission::Rejected { why, .. } => self.end(Status::BreakerOpen, why),
        }
    }
}

/// Lines per turn lately.
fn velocity(run: &Run) -> u32 {
    let lines: Vec<u32> = run.trail.marks.iter().filter_map(|it| it.lines).collect();
    let sum = lines.iter().fold(0_u32, |sum, it| sum.saturating_add(*it));
    u32::try_from(lines.len()).ok().and_then(|it| sum.checked_div(it)).unwrap_or(0)
}
