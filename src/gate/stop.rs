//! A stop that is evaluated: the order of effects from reading the transcript to the log.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::allowances;
use super::context::GateContext;
use super::decision_logs;
use super::reactions::ReactionRunner;
use super::report::Report;
use super::{calls, context_usage};
use policyd_evaluation::combine::Decision;
use policyd_evaluation::{self as evaluation, EvaluationContext, StopOutcome};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::source::FactSource;
use policyd_facts::Facts;
use policyd_hook::HookResponse;
use policyd_policy::OnSaveFailure;
use policyd_record::outcome::{SaveReport, SaveResult};
use policyd_state::{BlockLimiterState, SessionState};
use policyd_store::allowance::BlockedEvent;
use policyd_store::block_copies::BlockCopy;
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::file::SaveOutcome;
use policyd_store::session::{LockError, LockedSession};
use policyd_store::transcript;

/// A stop that is evaluated by a valid pack.
pub(super) struct StopEvaluation<'a> {
    pub(super) context: &'a GateContext<'a>,
}

impl StopEvaluation<'_> {
    /// Evaluates the stop: reads, runs probes, decides, saves, logs.
    pub(super) fn evaluate(&self, mut report: Report) -> Report {
        let it = self.context;
        let (world, request, event) = (it.world, it.request, &it.request.event);
        let own = it.state_dir.as_path();
        let interactive = it.is_attended();

        // What the event alone decides needs no transcript, for which a stop may wait.
        if let Some(why) = evaluation::no_opinion_by_event(event, interactive) {
            return report.silent(why);
        }
        // Read the transcript, and see whether there is anything to judge.
        let cursor_path = it.cursor_path();
        let reads_project = it.policy.sources.contains(FactSource::Project);
        let gathered = it.gather(&cursor_path, reads_project, &mut report);
        let context = &gathered.view.context;
        let keep =
            || gathered.cursor.iter().for_each(|it| transcript::keep(world, &cursor_path, it));
        // Half of a transcript is not evidence: the block limit is not stepped.
        if context.transcript_problem.is_some() {
            decision_logs::log_unjudged(world, own, request, false, &mut report);
            keep();
            return report.silent("the transcript was not read");
        }
        if let Some(why) = evaluation::no_opinion_by_facts(&context.facts) {
            keep();
            return report.silent(why);
        }
        let mut evaluator = ManuallyDrop::new(FactEvaluator::new(Rc::new(gathered.view.clone())));
        evaluator.watch.clone_from(&request.watch);

        // Ask what must be asked before the lock is taken.
        let forced = it.forced_type(&mut report);
        let plan = evaluation::plan(it.policy, context, forced.as_deref(), &mut evaluator);
        let (view, answers) = it.ask(plan, gathered.view.clone(), &mut evaluator, &mut report);

        // Decide on fresh state, under the lock; a block is durable before it is spoken.
        let mut locked = self.lock(&mut report);
        if locked.is_some() {
            answers.save(world);
        }
        let copy = self.block_copy();
        let copied = copy.as_ref().and_then(|it| load_copy(it, &mut report));
        let state = self.load(locked.as_mut(), copied.clone());
        let mark = gathered.stop_mark(request);
        if state.last_stop.as_ref().is_some_and(|it| mark.repeats(it)) {
            return report.silent("another hook line reported this stop just before");
        }
        let stopwatch = || world.elapsed();
        let report_path = own.join(DECISION_LOG).display().to_string();
        let bench = EvaluationContext {
            policy: it.policy,
            view: &view,
            state: &state,
            stopwatch: &stopwatch,
            detail: request.detail,
            report_path: &report_path,
            allowed: &BTreeMap::new(),
        };
        let inputs = it.inputs(&gathered, &view, &state, forced.as_deref());
        let mut outcome = self.decide(bench, &mut evaluator, &mut report);
        outcome.state.last_stop = Some(mark).filter(|_| outcome.moved).or(outcome.state.last_stop);
        report.around.saved = self.save(locked.as_mut(), &outcome, &mut report);
        let limiter = evaluation::guard_of(&outcome.state, event);
        let copy_saved = copy.is_some_and(|it| update_copy(&it, copied.as_ref(), &limiter));
        let spoken = report.around.saved.result != SaveResult::NotSaved
            || copy_saved
            || it.policy.settings.when_forgotten == OnSaveFailure::Block
            || self.is_bounded(&context.facts);
        calls::record_stop(it, &context.facts);
        keep();
        drop(locked);

        // Log, then hand over what is to be spoken.
        self.answer(&outcome, spoken, &mut report);
        self.react(&outcome, &context.facts, &mut report);
        decision_logs::log(it, &outcome, &inputs, &mut report);
        decision_logs::document(it, &outcome.excuses, &mut report);
        report.outcome = Some(outcome);
        report
    }

    /// Locks the state of the session. Reports why it cannot be locked.
    fn lock(&self, report: &mut Report) -> Option<LockedSession<'_>> {
        let session = &self.context.request.event.session_id;
        let locked = self.context.store.lock(session, self.context.policy.settings.lock_wait);
        locked.map_err(|error| report.problem(&lock_problem(&error))).ok()
    }

    /// Returns whether a block ends without any state: the transcript shows the blocks before it, or the client reports
    /// that this stop follows none.
    fn is_bounded(&self, facts: &Facts) -> bool {
        let request = self.context.request;
        facts.feedback.blocks > 0
            || (request.caller.harness.reports_blocks && !request.event.stop_active)
    }

    /// Loads the state of the session, and restores what a copy of its block limiter knows.
    fn load(
        &self,
        locked: Option<&mut LockedSession<'_>>,
        copied: Option<BlockLimiterState>,
    ) -> SessionState {
        let event = &self.context.request.event;
        let mut state = match locked {
            Some(locked) => locked.load().state,
            None => SessionState::new(event.session_id.clone()),
        };
        let created = self.context.world.stat(&self.context.project.main);
        let created = created.ok().and_then(|it| it.created);
        evaluation::restore(&mut state, event, copied, created);
        state
    }

    /// Decides; if checks block the stop and the user allows them to pass, decides again without them.
    fn decide(
        &self,
        bench: EvaluationContext<'_>,
        evaluator: &mut FactEvaluator,
        report: &mut Report,
    ) -> StopOutcome {
        let outcome = evaluation::decide(bench, evaluator);
        if outcome.decision != Decision::Block {
            return outcome;
        }
        let rules = outcome.blocking().map(|id| (id, Decision::Block)).collect();
        let session = &self.context.request.event.session_id;
        let blocked = BlockedEvent { session, digest: None, rules };
        let allowed = allowances::granted(self.context, &blocked, report);
        if allowed.is_empty() {
            return outcome;
        }
        evaluation::decide(EvaluationContext { allowed: &allowed, ..bench }, evaluator)
    }

    /// Notes what the pack says about a stop that was judged.
    fn react(&self, outcome: &StopOutcome, facts: &Facts, report: &mut Report) {
        let context = self.context;
        // The rules of the project react to the same stop.
        if context.is_organization {
            return;
        }
        let runner = ReactionRunner { context, model: &facts.tokens.called };
        if context.policy.considerations.iter().any(|it| !it.emit.is_empty()) {
            runner.emit_for(outcome, report);
        }
        if context.policy.reacts_to.contains(&context.request.event.kind) {
            runner.react(report);
        }
        runner.follow_drifts(report);
        if context.request.event.agent_id.is_none() {
            context_usage::request_clear(context, facts, report);
        }
        // Waiting signals do not keep an agent from stopping; an agent that goes on sees them.
        if report.answer.refuses() {
            runner.list_signals(report);
        }
    }

    /// Saves what is to be remembered. The session is not locked if its directory cannot be written.
    fn save(
        &self,
        locked: Option<&mut LockedSession<'_>>,
        outcome: &StopOutcome,
        report: &mut Report,
    ) -> SaveReport {
        let durability = &self.context.store.durability;
        let result = match locked {
            None => SaveResult::NotSaved,
            Some(_) if !outcome.moved => SaveResult::Unchanged,
            Some(locked) => match locked.commit(&outcome.state) {
                SaveOutcome::NotSaved { why, .. } => {
                    report.problem(&format!("the state could not be saved: {why}"));
                    SaveResult::NotSaved
                }
                SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. }
                    if self.context.request.dry_run =>
                {
                    SaveResult::DryRun
                }
                SaveOutcome::Durable { .. } => SaveResult::Durable,
                SaveOutcome::Degraded { why, .. } => {
                    report.problem(&format!(
                        "the state was saved, but a loss of power may undo it: {why}"
                    ));
                    SaveResult::Degraded
                }
            },
        };
        SaveReport { result, without_fsync: !durability.fsync, without_verify: !durability.verify }
    }

    /// The copy of the block limiter. The organization keeps its state beside it, where no project reaches.
    fn block_copy(&self) -> Option<BlockCopy<'_>> {
        let GateContext { world, request, is_organization, .. } = self.context;
        (!is_organization).then(|| BlockCopy::of(*world, &request.event))
    }

    fn answer(&self, outcome: &StopOutcome, spoken: bool, report: &mut Report) {
        let mut notices = Vec::new();
        if outcome.decision == Decision::Block && spoken {
            report.answer = HookResponse::block(outcome.reason.clone());
            let checks: Vec<&str> = outcome.blocking().collect();
            let hint = allowances::hint_for_checks(&checks);
            report.answer.override_hint = Some(hint).filter(|_| self.context.allowances.is_some());
        } else if outcome.decision == Decision::Block {
            notices.push(outcome.forgotten_notice.clone());
        }
        notices.push(outcome.notice.clone());
        notices.retain(|it| !it.is_empty());
        report.answer.notice = (!notices.is_empty()).then(|| notices.join("\n"));
        let verdicts = outcome.verdicts.iter();
        let lines = verdicts.map(|it| format!("{} {}: {}", it.id, it.status.as_str(), it.details));
        report.trace.extend(lines);
    }
}

/// Loads the copy of the block limiter. Reports why it cannot be used.
fn load_copy(copy: &BlockCopy<'_>, report: &mut Report) -> Option<BlockLimiterState> {
    copy.load().unwrap_or_else(|problem| {
        report.problem(&format!("blocks are counted without their copy: {}", problem.note()));
        None
    })
}

/// Saves the block limiter in the user's directory before its block is sent. After a clean stop there is
/// nothing to count. Returns whether the directory has this state now.
fn update_copy(
    copy: &BlockCopy<'_>,
    saved: Option<&BlockLimiterState>,
    now: &BlockLimiterState,
) -> bool {
    let counts = now.consecutive_blocks > 0 || now.released.is_some();
    match saved {
        Some(_) if !counts => {
            copy.remove();
            false
        }
        Some(saved) => {
            (saved.total_blocks, saved.releases) == (now.total_blocks, now.releases)
                || copy.save(now)
        }
        None => counts && copy.save(now),
    }
}

fn lock_problem(error: &LockError) -> String {
    let help = match error {
        LockError::Busy(_) => "end that process if it hangs",
        LockError::Refused(_) => "set `POLICYD_STATE_DIR` to a writable directory",
    };
    format!(
        "could not lock the state of the session ({error}); blocks are counted by the transcript and the client; {help}"
    )
}
