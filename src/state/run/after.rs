//! The end of a turn: books its usage, then decides by the table in `step`.

use super::budget::percent;
use super::event::{
    Claim, ContextRequest, RestartReason, RunEffect, TurnFailure, TurnResult, TurnUsage,
};
use super::health::{HealthVerdict, Vitals, verdict};
use super::step::RunStep;
use super::stuckness::{RunContext, StuckSignal};
use super::{Run, RunLimits, RunPhase, RunStatus, Spend, UnseenChanges, unseen, watch};
use crate::uncertainty;
use policyd_base::limits::RESTARTS_MAX;

impl RunStep<'_> {
    pub(super) fn ended(&mut self, turn: &TurnResult) {
        let session = self.run.session;
        self.book(turn);
        match &turn.claim {
            Claim::Accepted => {
                return self.end(RunStatus::Complete, "the agent is done, and the gate agrees");
            }
            Claim::Refused(why) => self.run.feedback.clone_from(why),
            Claim::Unverified(why) => {
                self.run.feedback.clone_from(why);
                self.run.unverified = self.run.unverified.saturating_add(1);
                match self.limits.unseen_changes {
                    // A client that shows no tool call will not show any later.
                    UnseenChanges::Continue if self.run.unverified < unseen::CLAIMS_MAX => {}
                    UnseenChanges::Human => {
                        self.run.unseen_asked = true;
                        self.effects.push(RunEffect::AskHuman(why.clone()));
                    }
                    UnseenChanges::Continue | UnseenChanges::End => {
                        return self.end(RunStatus::Unverified, why);
                    }
                }
            }
            Claim::None if turn.looks_complete => {
                let why = "the work looks complete, but was never claimed: the last turn changed \
                           nothing, and the gate agrees";
                return self.end(RunStatus::CompleteUnclaimed, why);
            }
            Claim::None => {}
        }
        if let Some(failure) = &turn.failure {
            self.note_failure(failure);
            if failure.permanent {
                let why = format!("{} (`{}`)", failure.text, failure.class);
                return self.end(RunStatus::HumanNeeded, &why);
            }
            if failure.put_aside {
                let why =
                    format!("the task failed too often and was dead-lettered: {}", failure.text);
                return self.end(RunStatus::DeadLetter, &why);
            }
        }
        if self.is_spent() || (turn.context == ContextRequest::Exhausted && self.is_renewed()) {
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
        if turn.context == ContextRequest::ClearRequested && goes_on {
            self.renew(RestartReason::Cleared);
        }
    }

    /// Books the usage of a turn, whatever its result. Texts that the agent received are marked as
    /// sent.
    fn book(&mut self, turn: &TurnResult) {
        // A call that the server refused costs nothing, if the agent reports its costs.
        let is_retried = turn.failure.as_ref().is_some_and(|it| it.retry.is_some());
        let is_refused = is_retried && turn.spend.tokens() == 0 && self.run.spend.cost_usd > 0.0;
        let priced = turn.priced || is_refused;
        self.book_use(TurnUsage { spend: turn.spend, priced, took: turn.took });
        let run = &mut self.run;
        run.raised.clone_from(&turn.raised);
        run.unseen = unseen::after(&run.unseen, &turn.files, turn.tools_seen);
        if run.unseen.is_empty() {
            run.unverified = 0;
        }
        run.worked |= turn.moved == Some(true);
        run.phase = RunPhase::Ready;
        if turn.failure.as_ref().is_none_or(|it| it.retry.is_none()) {
            run.human.clear();
            run.hint.clear();
            run.feedback.clear();
        }
    }

    pub(super) fn book_use(&mut self, used: TurnUsage) {
        let run = &mut self.run;
        run.spend = run.spend.plus(used.spend);
        run.session_spend = run.session_spend.plus(used.spend);
        run.unpriced = run.unpriced.saturating_add(u32::from(!used.priced));
        let took = u64::try_from(used.took.as_millis()).unwrap_or(u64::MAX);
        run.worked_ms = run.worked_ms.saturating_add(took);
    }

    fn note_failure(&mut self, failure: &TurnFailure) {
        let run = &mut self.run;
        let same = run.last_class == failure.class;
        run.same_class = if same { run.same_class.saturating_add(1) } else { 1 };
        run.last_class.clone_from(&failure.class);
        run.last_error.clone_from(&failure.text);
    }

    /// Begins a new session if the context is full. Ends the run if no restart is left.
    fn is_renewed(&mut self) -> bool {
        if !self.run.turns_left(self.limits) {
            return false;
        }
        if self.may_restart() {
            self.renew(RestartReason::Exhausted);
        } else {
            let why = format!("the context is full; restarts: {}", self.run.restarts);
            self.end(RunStatus::ContextExhaustion, &why);
        }
        true
    }

    fn may_restart(&self) -> bool {
        self.run.restarts < self.limits.restarts.min(RESTARTS_MAX)
    }

    /// Begins a new session: resets the session's data, and keeps the amounts spent.
    fn renew(&mut self, why: RestartReason) {
        let run = &mut self.run;
        run.restarts = run.restarts.saturating_add(u32::from(why != RestartReason::Cleared));
        run.session = run.session.saturating_add(1);
        run.session_spend = Spend::default();
        // A repeated turn is then the first of its session.
        let again = why == RestartReason::Cleared && run.again;
        run.session_iteration = u32::from(again);
        if why != RestartReason::Cleared {
            run.attempt = 0;
            run.again = false;
            run.failures = 0;
            run.idle = 0;
            run.aborts = 0;
            run.stuck_rounds = 0;
            run.stuck_told = false;
            let marks = std::mem::take(&mut run.trail.marks);
            if why == RestartReason::Stuck {
                run.circle = marks;
            }
        }
        self.effects.push(RunEffect::Renew(why));
    }

    /// Decides about progress after a turn that is not repeated.
    fn judge_progress(&mut self, turn: &TurnResult) {
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
        let score = vitals(run, limits).score();
        let said = verdict(score, run.health);
        run.aborts = if said == HealthVerdict::Abort { run.aborts.saturating_add(1) } else { 0 };
        run.health = Some(score);
        said.as_str().clone_into(&mut run.verdict);
        let around = RunContext {
            iteration: run.iteration,
            iterations_max: run.iterations_max(limits),
            content: run.feedback.is_empty(),
            circle: &run.circle,
        };
        let signs = run.trail.signs(limits.stuckness, around);
        let settings = uncertainty::UncertaintySettings {
            signs: limits.stuckness.signs,
            rounds: limits.stuckness.rounds,
            ring: 0,
        };
        let count = u32::try_from(signs.len()).unwrap_or(u32::MAX);
        let (next, told) =
            uncertainty::step(&watch(run), u64::from(run.iteration), count, settings);
        run.stuck_rounds = next.in_a_row;
        run.stuck_told = next.told;
        let names: Vec<&'static str> = signs.into_iter().map(StuckSignal::as_str).collect();
        if count >= limits.stuckness.signs {
            run.hint = names.join(", ");
            self.effects.push(RunEffect::Stuck(names.clone()));
        }
        // Without a further turn a new session does not help.
        if told && self.run.turns_left(self.limits) {
            let again = self.run.trail.is_back(&self.run.circle);
            if limits.restart_when_stuck && self.may_restart() && !again {
                return self.renew(RestartReason::Stuck);
            }
            return self
                .end(RunStatus::Stuck, &format!("it goes round in circles: {}", names.join(", ")));
        }
        if limits.idle > 0 && self.run.idle >= limits.idle {
            let why = self.with_last_failure(format!("nothing changed in {} turns", self.run.idle));
            return self.end(RunStatus::CircuitBreaker, &why);
        }
        if limits.aborts > 0 && self.run.aborts >= limits.aborts {
            let health = self.run.health.unwrap_or_default();
            let why = format!("its health is {health} of 100: it fails, and nothing moves");
            return self.end(RunStatus::CircuitBreaker, &why);
        }
        // A run without further turns ends now, not after a wait.
        if let Some(failure) = turn.failure.as_ref().filter(|_| self.run.turns_left(self.limits)) {
            self.wait_after(failure);
        }
    }

    /// Delays the next turn after a failure. The delay grows with consecutive failures of the
    /// class.
    fn wait_after(&mut self, failure: &TurnFailure) {
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

/// Returns the vitals of the run.
fn vitals(run: &Run, limits: &RunLimits) -> Vitals {
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
