//! The probes of an event: answered from the cache if possible, each through its circuit breaker, all of them under one
//! deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_evaluation as evaluation;
use policyd_fact_table::context::ProbeResult;
use policyd_fact_table::{FactEvaluator, template};
use policyd_policy::{Parse, Probe};
use policyd_probe::{self as probe, ProbeRun, ProgramHealth, Question};
use policyd_state::breaker::until;
use policyd_state::breaker::{
    Breaker, BreakerEvent, BreakerFailure, BreakerResponse, CallMetadata,
};
use policyd_store::probe_cache::{self, Answers};

/// Limits of the probes of one event.
#[derive(Clone, Copy)]
pub(super) struct AskLimits<'a> {
    /// The git branch of the session; another branch has other answers.
    pub(super) branch: &'a str,
    /// Time of all probes together.
    pub(super) deadline: Duration,
}

/// Runs the probes of one event.
pub(super) struct ProbeRunner<'r> {
    pub(super) context: &'r GateContext<'r>,
    pub(super) limits: AskLimits<'r>,
    pub(super) evaluator: &'r mut FactEvaluator,
    pub(super) answers: &'r mut Answers,
    pub(super) diagnostics: &'r mut Diagnostics,
}

impl ProbeRunner<'_> {
    /// Returns the results of probes, new or cached.
    pub(super) fn run(&mut self, probes: &[&Probe]) -> BTreeMap<String, ProbeResult> {
        let world = self.context.world;
        let began = world.elapsed();
        let mut readings = BTreeMap::new();
        for probe in probes {
            let spent = world.elapsed().saturating_sub(began);
            let left = self.limits.deadline.saturating_sub(spent);
            let reading =
                evaluation::switched_off(probe).unwrap_or_else(|| self.reading(probe, left));
            readings.insert(probe.id.clone(), reading);
        }
        readings
    }

    /// Returns the cached answer of a probe, or runs it.
    fn reading(&mut self, probe: &Probe, left: Duration) -> ProbeResult {
        let (id, folder, now) = (&probe.id, &self.context.project.folder, self.context.request.now);
        let question = Question { probe, stdin: template::render(&probe.stdin, self.evaluator) };
        let cache_key = probe_cache::question(probe, folder, self.limits.branch, &question.stdin);
        if let Some(reading) = self.answers.find(probe, &cache_key, now) {
            self.diagnostics.note(format!("probe {id} was asked the same before"));
            return reading;
        }
        let reading = if left.is_zero() {
            ProbeResult::Failed("it was not run: the time for probes was used up".to_owned())
        } else {
            self.through_breaker(&question, left)
        };
        // If a model does not answer, facts decide instead, so its failure would not be noticed.
        if let (Parse::Reply, ProbeResult::Failed(why)) = (probe.parse, &reading) {
            self.diagnostics.problem(&format!("probe `{id}`: {why}"));
        }
        self.answers.keep(probe, &cache_key, now, &reading);
        reading
    }

    /// Runs a probe, unless it failed too often lately.
    fn through_breaker(&mut self, question: &Question<'_>, left: Duration) -> ProbeResult {
        let (world, key) = (self.context.world, question.probe.breaker.as_str());
        let settings = self.context.policy.breaker(key);
        let breakers = self.context.breakers();
        if let Some(damage) = breakers.damage()
            && !self.diagnostics.problems.contains(&damage)
        {
            self.diagnostics.problem(&damage);
        }
        let request = breakers.request(key, &settings, self.context.request.now);
        let (breaker, answer) = match request {
            Ok(answered) => answered,
            Err(error) => return ProbeResult::Failed(breakers.unreadable(&error)),
        };
        match answer {
            BreakerResponse::Rejected { wait } => {
                return ProbeResult::Failed(rejection(key, &breaker, wait));
            }
            BreakerResponse::WouldReject { wait } => {
                let why = rejection(key, &breaker, wait);
                self.diagnostics.note(format!("{why} (only observed: it is run all the same)"));
            }
            BreakerResponse::Permitted | BreakerResponse::Recorded => {}
        }
        self.diagnostics.note(format!("Executing: {}", question.probe.command.join(" ")));
        let began = world.elapsed();
        let ProbeRun { reading, health } = probe::ask(
            world,
            question,
            &self.context.project.folder,
            &self.context.project.root,
            left.min(question.probe.timeout),
        );
        let took = Some(world.elapsed().saturating_sub(began));
        let metadata = CallMetadata { generation: Some(breaker.generation), took };
        let event = match (health, &reading) {
            (ProgramHealth::Works, _) => Some(BreakerEvent::Success(metadata)),
            (ProgramHealth::Fails, ProbeResult::Failed(why)) => {
                Some(BreakerEvent::Failure(BreakerFailure {
                    told: metadata,
                    ..BreakerFailure::new(why)
                }))
            }
            (ProgramHealth::Fails, ProbeResult::Answer { .. }) | (ProgramHealth::Unknown, _) => {
                None
            }
        };
        if let Some(event) = event {
            // A breaker that cannot be written counts nothing; the answer stands.
            let _refused = breakers.record(key, event, &settings, self.context.request.now);
        }
        reading
    }
}

/// Returns why the breaker of a probe rejects it.
fn rejection(key: &str, breaker: &Breaker, wait: Option<Duration>) -> String {
    let (until, last) = (until(wait), &breaker.last_error);
    match &breaker.forced {
        Some(reason) => format!("it was switched off by hand {until} (breaker `{key}`): {reason}"),
        None => format!(
            "it failed too often and is not run {until} (breaker `{key}`); last error: {last}"
        ),
    }
}
