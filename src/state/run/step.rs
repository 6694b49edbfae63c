//! The step of a run.
//!
//! `step(run, event, limits, now) -> (run, effects)`:
//!
//! | phase | looked | asked | ended | resumed | interrupted | cannot run |
//! |---|---|---|---|---|---|---|
//! | ready | below | nothing | nothing | ready | over: interrupted | over: cannot run |
//! | asking | nothing | admitted: working, a turn begins; rejected: waiting, or over where that is too long | nothing | ready | over | over |
//! | working | nothing | nothing | below | ready, the same turn again | over, with what it used booked; the same turn again, once resumed | over |
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
//! | a failure that no waiting cures | over: human needed |
//! | its task was put aside | over: dead letter |
//! | the money, or the time, is spent | over |
//! | the context is full | another session, while restarts are left; else over |
//! | a failure that is tried again | waiting, then the same turn again |
//! | stuck, the rounds over | another session, while restarts are left; else over: stuck |
//! | no change, turn after turn | over: circuit breaker |
//! | else | ready; where it seems stuck the agent is told so |
//!
//! Where it goes on after that in the same session, and somebody asked for a clear context, it goes on
//! in another one: asking for it each turn hides neither failures nor that nothing moves.

use std::time::Duration;

use super::budget::{self, Level};
use super::health::Vitals;
use super::iterations::{Allowed, Progress, allowed};
use super::stuckness::{Around, Sign};
use super::{
    Admission, Claim, Context, Effect, Event, Failure, Limits, Look, Phase, Renewal, Run, Spend,
    Status, Turn, Used, watch,
};
use crate::limits::RESTARTS_MAX;
use crate::state::uncertainty;
use crate::time::Timestamp;

/// Moves a run on.
#[must_use]
pub fn step(run: &Run, event: &Event<'_>, limits: &Limits, now: Timestamp) -> (Run, Vec<Effect>) {
    let mut step = Step { run: run.clone(), limits, now, effects: Vec::new() };
    match (&run.phase, event) {
        (Phase::Over { status, .. }, Event::Resumed) if *status != Status::Complete => {
            step.reopen();
        }
        (Phase::Over { .. }, _) => return (run.clone(), Vec::new()),
        (_, Event::Interrupted(used)) => {
            if let Some(used) = used {
                step.book_use(*used);
            }
            step.run.again |= run.phase == Phase::Working;
            step.end(Status::Interrupted, "it was interrupted; `policyd run --resume` goes on");
        }
        (_, Event::CannotRun(why)) => {
            step.run.again |= run.phase == Phase::Working;
            step.end(Status::CannotRun, why);
        }
        (Phase::Working, Event::Resumed) => {
            step.run.again = true;
            step.run.phase = Phase::Ready;
        }
        (Phase::Asking | Phase::Paused, Event::Resumed) => step.run.phase = Phase::Ready,
        (Phase::Ready, Event::Looked(look)) => step.look(look),
        (Phase::Paused, Event::Looked(look)) => step.look(look),
        (Phase::Waiting { until_ms, .. }, Event::Looked(look)) => {
            let over = now.millis() >= *until_ms;
            step.look_while_waiting(look, over);
        }
        (Phase::Asking, Event::Asked(admission)) => step.asked(admission),
        (Phase::Working, Event::Ended(turn)) => step.ended(turn),
        (Phase::Ready | Phase::Waiting { .. }, Event::Resumed)
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

struct Step<'a> {
    run: Run,
    limits: &'a Limits,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Step<'_> {
    fn end(&mut self, status: Status, why: &str) {
        self.run.phase = Phase::Over { status, why: why.to_owned() };
        self.effects.push(Effect::End(status));
    }

    fn wait(&mut self, wait: Duration, why: &str) {
        let until_ms = self.now.plus(wait).millis();
        self.run.phase = Phase::Waiting { until_ms, why: why.to_owned() };
        self.effects.push(Effect::Wait { wait, why: why.to_owned() });
    }

    /// Whoever goes on with a run that ended has seen to what ended it.
    fn reopen(&mut self) {
        let run = &mut self.run;
        run.phase = Phase::Ready;
        run.idle = 0;
        run.failures = 0;
        run.attempt = 0;
        run.stuck_rounds = 0;
        run.stuck_told = false;
        run.trail.marks.clear();
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
            return self.end(Status::Stopped, "a human said STOP; `policyd run --resume` goes on");
        }
        match &look.review {
            Some(_) if limits.wait_for_human => {
                self.run.phase = Phase::Paused;
                return;
            }
            Some(why) => return self.end(Status::HumanNeeded, why),
            None => {}
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
    fn is_spent(&mut self) -> bool {
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
                self.end(Status::Budget, &format!("{spent:.2} of {limit:.2} USD are spent"));
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

    fn ended(&mut self, turn: &Turn) {
        let session = self.run.session;
        self.book(turn);
        match &turn.claim {
            Claim::Accepted => {
                return self.end(Status::Complete, "the agent is done, and the gate agrees");
            }
            Claim::Refused(why) => self.run.feedback.clone_from(why),
            Claim::None => {}
        }
        if let Some(failure) = &turn.failure {
            self.note_failure(failure);
            if failure.permanent {
                let why = format!("`{}` is not cured by waiting: {}", failure.class, failure.text);
                return self.end(Status::HumanNeeded, &why);
            }
            if failure.put_aside {
                let why = format!("the task failed too often and was put aside: {}", failure.text);
                return self.end(Status::DeadLetter, &why);
            }
        }
        if self.is_spent() || (turn.context == Context::Exhausted && self.is_renewed()) {
            return;
        }
        match turn.failure.as_ref().and_then(|it| it.retry.as_ref()) {
            Some((wait, why)) => {
                self.run.attempt = self.run.attempt.saturating_add(1);
                self.run.again = true;
                self.wait(*wait, why);
            }
            None => self.judge_progress(turn),
        }
        let goes_on = self.run.status().is_none() && self.run.session == session;
        if turn.context == Context::ClearRequested && goes_on {
            self.renew(Renewal::Cleared);
        }
    }

    /// Books what a turn used, whatever became of it; what the agent was told, it was told.
    fn book(&mut self, turn: &Turn) {
        self.book_use(Used { spend: turn.spend, priced: turn.priced, took: turn.took });
        let run = &mut self.run;
        run.raised.clone_from(&turn.raised);
        run.phase = Phase::Ready;
        if turn.failure.as_ref().is_none_or(|it| it.retry.is_none()) {
            run.human.clear();
            run.hint.clear();
            run.feedback.clear();
        }
    }

    fn book_use(&mut self, used: Used) {
        let run = &mut self.run;
        run.spend = run.spend.plus(used.spend);
        run.session_spend = run.session_spend.plus(used.spend);
        run.unpriced = run.unpriced.saturating_add(u32::from(!used.priced));
        let took = u64::try_from(used.took.as_millis()).unwrap_or(u64::MAX);
        run.worked_ms = run.worked_ms.saturating_add(took);
    }

    fn note_failure(&mut self, failure: &Failure) {
        let run = &mut self.run;
        let same = run.last_class == failure.class;
        run.same_class = if same { run.same_class.saturating_add(1) } else { 1 };
        run.last_class.clone_from(&failure.class);
        run.last_error.clone_from(&failure.text);
    }

    /// Begins another session where the context is full; ends the run where no restart is left.
    fn is_renewed(&mut self) -> bool {
        if !self.run.turns_left(self.limits) {
            return false;
        }
        if self.may_restart() {
            self.renew(Renewal::Exhausted);
        } else {
            let why = format!("the context is full again after {} restarts", self.run.restarts);
            self.end(Status::ContextExhaustion, &why);
        }
        true
    }

    fn may_restart(&self) -> bool {
        self.run.restarts < self.limits.restarts.min(RESTARTS_MAX)
    }

    /// Another session: what belongs to the old one begins anew, what was spent is never forgotten.
    fn renew(&mut self, why: Renewal) {
        let run = &mut self.run;
        run.restarts = run.restarts.saturating_add(u32::from(why != Renewal::Cleared));
        run.session = run.session.saturating_add(1);
        run.session_spend = Spend::default();
        // A turn that is made again is the first one of the session then.
        let again = why == Renewal::Cleared && run.again;
        run.session_iteration = u32::from(again);
        if why != Renewal::Cleared {
            run.attempt = 0;
            run.again = false;
            run.failures = 0;
            run.idle = 0;
            run.stuck_rounds = 0;
            run.stuck_told = false;
            run.trail.marks.clear();
        }
        self.effects.push(Effect::Renew(why));
    }

    /// After a turn that is not made again: whether it goes anywhere.
    fn judge_progress(&mut self, turn: &Turn) {
        let limits = self.limits;
        let run = &mut self.run;
        run.attempt = 0;
        match &turn.failure {
            Some(_) => run.failures = run.failures.saturating_add(1),
            None => {
                run.failures = 0;
                run.same_class = 0;
                run.last_class.clear();
            }
        }
        match turn.moved {
            Some(true) => run.idle = 0,
            Some(false) => run.idle = run.idle.saturating_add(1),
            None => {}
        }
        run.trail.add(turn.mark.clone());
        run.health = Some(vitals(run, limits).score());
        let around = Around {
            iteration: run.iteration,
            iterations_max: run.iterations_max(limits),
            content: run.feedback.is_empty(),
        };
        let signs = run.trail.signs(limits.stuckness, around);
        let settings = uncertainty::Settings {
            signs: limits.stuckness.signs,
            rounds: limits.stuckness.rounds,
            ring: 0,
        };
        let count = u32::try_from(signs.len()).unwrap_or(u32::MAX);
        let (next, told) =
            uncertainty::step(&watch(run), u64::from(run.iteration), count, settings);
        run.stuck_rounds = next.in_a_row;
        run.stuck_told = next.told;
        let names: Vec<&'static str> = signs.into_iter().map(Sign::as_str).collect();
        if count >= limits.stuckness.signs {
            run.hint = names.join(", ");
            self.effects.push(Effect::Stuck(names.clone()));
        }
        // With no turn left another session would have none either.
        if told && self.run.turns_left(self.limits) {
            if limits.restart_when_stuck && self.may_restart() {
                return self.renew(Renewal::Stuck);
            }
            return self
                .end(Status::Stuck, &format!("it goes round in circles: {}", names.join(", ")));
        }
        if limits.idle > 0 && self.run.idle >= limits.idle {
            let why = format!("nothing changed in {} turns", self.run.idle);
            return self.end(Status::CircuitBreaker, &why);
        }
        // A run whose turns are used up ends now, not after a wait for a turn that never comes.
        if let Some(failure) = turn.failure.as_ref().filter(|_| self.run.turns_left(self.limits)) {
            self.wait_after(failure);
        }
    }

    /// After a failure the next turn waits; the longer, the more often its class came in a row.
    fn wait_after(&mut self, failure: &Failure) {
        let (class, times) = (&self.run.last_class, self.run.same_class);
        let pause = self.limits.pause.after(times);
        let why = format!("`{class}` came {times} times in a row");
        let waits = [(pause, why)].into_iter().chain(failure.wait.clone());
        let longest = waits.max_by_key(|it| it.0).filter(|it| !it.0.is_zero());
        if let Some((wait, why)) = longest {
            self.wait(wait, &why);
        }
    }
}

/// Lines per turn lately.
fn velocity(run: &Run) -> u32 {
    let lines: Vec<u32> = run.trail.marks.iter().filter_map(|it| it.lines).collect();
    let sum = lines.iter().fold(0_u32, |sum, it| sum.saturating_add(*it));
    u32::try_from(lines.len()).ok().and_then(|it| sum.checked_div(it)).unwrap_or(0)
}

fn percent(part: f64, whole: f64) -> u32 {
    let share = if whole > 0.0 { (part * 100.0 / whole).clamp(0.0, 1e6) } else { 100.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to what fits"
    )]
    let whole = share as u32;
    whole
}

/// How the run is doing.
fn vitals(run: &Run, limits: &Limits) -> Vitals {
    const LATELY: usize = 5;
    let lately: Vec<_> = run.trail.marks.iter().rev().take(LATELY).collect();
    let share = |count: usize| {
        let percent = count.saturating_mul(100).checked_div(lately.len()).unwrap_or(100);
        u32::try_from(percent).unwrap_or(100)
    };
    let failed = lately.iter().filter(|it| !it.error.is_empty() || it.exit_code != 0).count();
    let idle = usize::try_from(run.idle).unwrap_or(usize::MAX).min(lately.len());
    let used = percent(f64::from(run.iteration), f64::from(run.iterations_max(limits)));
    let spent = limits.budget_usd.map_or(0, |limit| percent(run.spend.cost_usd, limit));
    Vitals {
        momentum: share(lately.len().saturating_sub(idle)),
        convergence: share(lately.len().saturating_sub(failed)),
        budget: 100_u32.saturating_sub(used.max(spent)),
        maturity: match run.trail.same_error() {
            0 => 100,
            1 => 50,
            _ => 0,
        },
    }
}
