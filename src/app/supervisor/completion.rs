//! Whether a run is complete: the agent claims so, and the considerations of a stop have nothing
//! against it. They are judged over a transcript of the whole run, that `turn` writes.

use std::rc::Rc;

use serde_json::json;

use super::Supervisor;
use crate::gate::{self, Request, Supervision};
use crate::packs;
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict, Consequence};
use policyd_evaluation::{Detail, StopOutcome};
use policyd_facts::event::{Event, EventKind};
use policyd_hook::{Caller, payload};
use policyd_policy::Mode;
use policyd_state::run::{Claim, StopGateSwitches};
use policyd_store::configuration::Configurations;

/// What is said of a gate that was switched off while the run was at work.
const SWITCHED_OFF: &str = "the gate was switched off while the run was at work";
const CURE: &str = "Undo it; a human who wants it so ends the run and goes on with `--resume`.";

/// Why the gate is asked whether a run is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The agent claims so.
    Claim,
    /// The agent claims nothing, and nothing happens any more. Logs nothing and creates no signal: no one was blocked.
    Unclaimed,
}

impl Supervisor<'_> {
    /// What the gate says to a claim.
    pub(super) fn judge(&self, answer: &str, occasion: Occasion) -> Claim {
        if let Some(why) = &self.run.switched_at_work {
            return Claim::Refused(format!("{SWITCHED_OFF} ({why}). {CURE}"));
        }
        let Some(request) = self.request(answer, occasion == Occasion::Unclaimed) else {
            return Claim::Refused("the gate could not be asked".to_owned());
        };
        let report = gate::evaluate_by(self.world, &request, self.ready);
        let mut lines = match &report.outcome {
            Some(outcome) => findings(outcome, occasion),
            None => {
                let why = report.context.no_opinion.clone().unwrap_or_default();
                // A human who switched the gate off takes the agent's word.
                let is_wanted = report.skipped.as_ref().is_some_and(gate::SkipReason::is_wanted);
                if !is_wanted || self.run.switched.off.is_none() {
                    let why = report.context.problems.first().cloned().unwrap_or(why);
                    return Claim::Refused(format!("it could not be judged: {why}"));
                }
                Vec::new()
            }
        };
        lines.extend(self.organization_findings(&request, occasion));
        if lines.is_empty() { Claim::Accepted } else { Claim::Refused(lines.join("\n")) }
    }

    /// The checks of the organization that a claim does not pass.
    fn organization_findings(&self, request: &Request<'_>, occasion: Occasion) -> Vec<String> {
        // A claim is answered with findings only. Hooks report why the pack is not used.
        let mut diagnostics = gate::Diagnostics::default();
        let layer =
            gate::OrganizationLayer::load(self.world, request, packs::load, &mut diagnostics);
        let report = layer.ok().flatten().and_then(|it| it.evaluate(self.world, request));
        report.and_then(|it| it.outcome).iter().flat_map(|it| findings(it, occasion)).collect()
    }

    /// The stop that a claim is judged as.
    fn request(&self, answer: &str, dry_run: bool) -> Option<Request<'static>> {
        let fields = json!({
            "session_id": self.run.event_session(),
            "transcript_path": self.transcript(),
            "cwd": self.project.folder,
            "prompt_id": self.mark(),
            "hook_event_name": "Stop",
            "last_assistant_message": answer,
        });
        let kind = EventKind::Stop;
        let event = payload::parse(fields.to_string().as_bytes(), kind).ok()?;
        // The command of the turn ended before its transcript was written.
        let event = Event { transcript_final: true, ..event };
        let (now, detail) = (self.world.now(), Detail::Findings);
        Some(Request {
            event,
            caller: Caller::default(),
            supervision: Supervision::Completion,
            now,
            policies: None,
            detail,
            dry_run,
            line: String::new(),
            configurations: Rc::new(Configurations::load(self.world)),
            watch: None,
        })
    }

    /// How the gate is switched now.
    fn gate(&self) -> StopGateSwitches {
        let request = self.request("", true);
        request.map(|it| gate::gate_switches(self.world, &it, self.ready)).unwrap_or_default()
    }

    /// Records the switches of the stop gate at the start of a run, or when a human resumes an ended run. Reports what
    /// is switched off, and what was switched off while the agent worked.
    pub(super) fn note_gate(&mut self) {
        let gate = self.gate();
        let at_work = self.run.switched_at_work.is_some();
        if let Some(why) = gate.more_than(&self.run.switched).filter(|_| at_work) {
            self.problem(&format!(
                "{SWITCHED_OFF}, before it ended: {why}. The resumed run accepts this state. If you \
                 did not intend it, end the run and undo the change"
            ));
        }
        if let Some(why) = gate.more_than(&StopGateSwitches::default()) {
            self.problem(&format!("what the agent claims is not judged in full: {why}"));
        }
        self.run.switched = gate;
        self.run.switched_at_work = None;
    }

    /// Looks before and after a turn whether something was switched off since: by the turn, or by a process
    /// that it left behind. Until that is undone, or a human goes on with the run, no claim is taken.
    pub(super) fn check_gate(&mut self) {
        let gate = self.gate();
        let Some(why) = gate.more_than(&self.run.switched) else {
            // A switch that a human undid counts as new if it is set again.
            self.run.switched = gate;
            self.run.switched_at_work = None;
            return;
        };
        if self.run.switched_at_work.is_none() {
            self.problem(&format!("{SWITCHED_OFF}, so no claim is taken: {why}. {CURE}"));
            self.run.switched_at_work = Some(why);
        }
    }
}

/// The checks that block, each with what to do. The block limiter releases an agent, but the work is not done.
///
/// A blocker that did not pass and only warns, such as open todos after a turn without a tool call, objects as well if
/// the agent claimed nothing.
fn findings(outcome: &StopOutcome, occasion: Occasion) -> Vec<String> {
    let is_softened = |it: &CheckVerdict| {
        let is_enforced = it.mode == Mode::Enforce && it.consequence == Consequence::Warns;
        is_enforced && it.status == CheckStatus::Unsatisfied && it.softened.is_some()
    };
    let blocking = outcome.verdicts.iter().filter(|it| {
        // What lets an agent stop does not complete its task.
        it.consequence == Consequence::Blocks
            || it.exempted
            || (occasion == Occasion::Unclaimed && is_softened(it))
    });
    let lines = blocking.map(|it| {
        let what = if it.guidance.is_empty() { "" } else { " What to do: " };
        format!("- {}: {}{what}{}", it.id, it.details, it.guidance)
    });
    lines.collect()
}
