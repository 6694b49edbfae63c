//! What a run reports: its events, in `logs/events.jsonl` and to the observer, and how it stands.

use serde_json::{Value, json};

use super::Supervisor;
use policyd_evaluation::context::of_meters;
use policyd_hook::agent_output::AgentOutput;
use policyd_record::context::{self, EventOrigin};
use policyd_record::event_log::EVENT_LOG;
use policyd_record::mask::{mask, mask_json};
use policyd_record::notice::{Notice, NoticeKind};
use policyd_record::trace::{TRACEPARENT, TraceContext};
use policyd_report::run;
use policyd_report::standing::RunStatusLine;
use policyd_state::context::MeterKind;
use policyd_state::run::{RestartReason, Run, RunEffect, RunPhase};
use policyd_store::{decision_log, log};

impl Supervisor<'_> {
    /// The variable by which what the agent starts joins the trace of the run.
    pub(super) fn trace_variable(&self) -> (String, String) {
        let caller = self.world.env(TRACEPARENT).and_then(|it| TraceContext::parse(&it));
        let directory = self.project.main.display().to_string();
        let Run { id, resumes, .. } = &self.run;
        let span = TraceContext::of_run(caller.as_ref(), &directory, id, *resumes);
        (TRACEPARENT.to_owned(), span.to_text())
    }

    /// Logs and reports an event. A log that cannot be written does not stop the run.
    pub(super) fn report(&mut self, kind: &str, fields: &[(&str, Value)]) {
        self.report_event(run::event(kind, self.world.now(), fields));
    }

    /// The same of an event that is made already.
    pub(super) fn report_event(&mut self, event: Value) {
        let mut event = run::stamped(event, self.world.now());
        mask_json(&mut event);
        let path = self.paths.own.join(EVENT_LOG);
        if !log::append(self.world, &path, std::slice::from_ref(&event)) {
            let made = path.parent().is_some_and(|it| self.world.create_folder(it).is_ok());
            let _refused = made && log::append(self.world, &path, std::slice::from_ref(&event));
        }
        self.observer.receive(&event);
    }

    /// Something that did not work and stops nothing.
    pub(super) fn problem(&mut self, text: &str) {
        let text = mask(text).0.into_owned();
        self.report("loop.problem", &[("problem", text.into())]);
    }

    pub(super) fn report_effect(&mut self, effect: &RunEffect) {
        let run = &self.run;
        let iteration = ("iteration", json!(run.iteration));
        let most = ("max_iterations", json!(run.iterations_max(&self.limits)));
        match effect {
            RunEffect::Ask | RunEffect::AskHuman(_) => {}
            RunEffect::End(_) => {
                if let Some(notice) = Notice::of_run(&self.run) {
                    let (world, own) = (self.world, &self.paths.own);
                    // The run ended even if the log cannot be written; its state says so.
                    let _unlogged = decision_log::notify(world, own, NoticeKind::RunEnd, notice);
                }
            }
            RunEffect::Begin => {
                let fields = [
                    iteration,
                    most,
                    ("session", json!(run.session)),
                    ("attempt", json!(run.attempt)),
                ];
                self.report("loop.iteration_start", &fields);
            }
            RunEffect::Renew(why) => self.report_restart(*why),
            RunEffect::Extended(by) => {
                self.report("loop.extended", &[iteration, most, ("by", json!(by))])
            }
            RunEffect::Stuck(signs) => {
                let fields = [
                    iteration,
                    ("signals", json!(signs.len())),
                    ("count", json!(run.stuck_rounds)),
                    ("reasons", json!(signs.join(", "))),
                ];
                self.report("loop.stuckness_detected", &fields);
            }
            RunEffect::BudgetWarning(percent) => {
                let fields = [
                    iteration,
                    ("percent", json!(percent)),
                    ("spent_usd", json!(run.spend.cost_usd)),
                    ("limit_usd", json!(self.limits.budget_usd)),
                ];
                self.report("loop.budget_warning", &fields);
            }
            RunEffect::Wait { wait, why } => {
                let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let fields = [iteration, ("wait_ms", json!(wait)), ("reason", json!(why))];
                self.report("loop.wait", &fields);
            }
        }
    }

    /// Reports that a new session began. The names of the events are those of shipwright.
    fn report_restart(&mut self, why: RestartReason) {
        let (restart, iteration) = (self.run.restarts, self.run.iteration);
        if why == RestartReason::Exhausted {
            let (session, now) = (self.run.event_session(), self.world.now());
            let number = self.run.session_iteration.into();
            let whose = EventOrigin { session: &session, now, iteration: number };
            self.report_event(context::restart(whose, restart.into(), iteration.into()));
        }
        let fields = [
            ("restart", json!(restart)),
            ("max", json!(self.limits.restarts)),
            ("session", json!(self.run.session)),
            ("iteration", json!(iteration)),
            ("reason", json!(why.as_str())),
        ];
        self.report("loop.restart", &fields);
    }

    /// It is over: how, why, and what it took.
    pub(super) fn report_end(&mut self) {
        let RunPhase::Over { status, why } = self.run.phase.clone() else { return };
        self.observer.clear();
        let spend = self.run.spend;
        if self.limits.budget_usd.is_some() && status == policyd_state::run::RunStatus::Budget {
            let left = self.limits.budget_usd.unwrap_or_default() - spend.cost_usd;
            self.report("pipeline.budget_exhausted", &[("remaining", json!(left.min(0.0)))]);
        }
        let fields = [
            ("run", json!(self.run.id)),
            ("status", json!(status.as_str())),
            ("exit_code", json!(status.exit_code())),
            ("reason", json!(why)),
            ("iteration", json!(self.run.iteration)),
            ("restarts", json!(self.run.restarts)),
            ("worked_ms", json!(self.run.worked_ms)),
            ("tokens", json!(self.run.spend.tokens())),
            ("cost_usd", json!(spend.cost_usd)),
            ("unpriced_turns", json!(self.run.unpriced)),
        ];
        self.report("loop.end", &fields);
    }

    /// Shows how the run stands; `output` is the output of the current turn so far.
    pub(super) fn show(&self, output: &AgentOutput) {
        if !self.observer.shows_standing() {
            return;
        }
        let (spent, turn) = (self.spend_of(output), output.meters());
        let rules = &self.policy().context;
        let gauge = of_meters(rules, &self.overrides, &turn);
        // What was spent is known of the whole session after a turn only.
        let live = gauge.known && rules.settings.measured == MeterKind::Occupancy;
        let gauge = if live { &gauge } else { &self.context };
        let standing = RunStatusLine {
            run: &self.run,
            limits: &self.limits,
            spent,
            context: gauge.known.then_some(gauge.measured),
            breakers: &self.standing,
            gate: self.decided,
            elapsed: self.world.elapsed().saturating_sub(self.began),
            now: self.world.now(),
        };
        self.observer.show(&standing);
    }
}
