//! A stop that is evaluated: the order of effects from reading the transcript to the log.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::allowances;
use super::answers::add_reaction_text;
use super::context::GateContext;
use super::decision_logs::{self, UnjudgedEvent};
use super::diagnostics::Diagnostics;
use super::event_result::EventResult;
use super::inputs::EvaluationInputs;
use super::reactions::ReactionRunner;
use super::{calls, context_usage};
use policyd_base::limits::SPOKEN_CHARS_MAX;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::inputs::Inputs;
use policyd_evaluation::message::cut;
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

/// A decision about a stop after its state was saved, as far as it could be.
struct SavedDecision {
    outcome: StopOutcome,
    saved: SaveReport,
    /// Whether a block may be sent. It must end at some time: its count is saved, or something else bounds it.
    can_block: bool,
    /// Inputs of the decision, for the log.
    inputs: Inputs,
    /// Preferences that rules read, and whether they were found.
    preferences: BTreeMap<String, bool>,
}

impl SavedDecision {
    /// Returns whether the stop is blocked.
    fn blocks(&self) -> bool {
        self.outcome.decision == Decision::Block && self.can_block
    }
}

/// Texts that reactions to a stop add to its answer.
#[derive(Default)]
struct StopReactions {
    /// Texts for the agent, in their order. A text can be empty.
    texts: [String; 2],
    /// Signals that wait, masked and listed below the reason of a block.
    pending_signals: Option<String>,
}

impl StopEvaluation<'_> {
    /// Evaluates the stop: reads, decides, saves, reacts, answers, and logs.
    pub(super) fn evaluate(&self, diagnostics: &mut Diagnostics) -> EventResult {
        let context = self.context;
        let (world, request, event) = (context.world, context.request, &context.request.event);

        // If the event alone decides, the transcript is not read, for which a stop may wait.
        if let Some(why) = evaluation::no_opinion_by_event(event, context.is_attended()) {
            return EventResult::silent(why);
        }
        let cursor_path = context.cursor_path();
        let reads_project = context.policy.sources.contains(FactSource::Project);
        let inputs = context.gather(&cursor_path, reads_project, diagnostics);
        let save_cursor =
            || inputs.cursor.iter().for_each(|it| transcript::keep(world, &cursor_path, it));
        // Half of a transcript is not evidence: the block limit is not stepped.
        if inputs.view.context.transcript_problem.is_some() {
            let unjudged = UnjudgedEvent {
                of_organization: context.is_organization,
                ..UnjudgedEvent::default()
            };
            let state_dir = &context.state_dir;
            decision_logs::log_unjudged(world, state_dir, request, unjudged, diagnostics);
            save_cursor();
            return EventResult::silent("the transcript was not read");
        }
        let facts = &inputs.view.context.facts;
        if let Some(why) = evaluation::no_opinion_by_facts(facts) {
            save_cursor();
            return EventResult::silent(why);
        }
        let saved = match self.decide_and_save(&inputs, &save_cursor, diagnostics) {
            Ok(saved) => saved,
            Err(repeated) => return *repeated,
        };

        // The result is saved, so now the agent and other programs may learn about it.
        note_verdicts(&saved.outcome, diagnostics);
        let reactions = self.react(&saved, facts, diagnostics);
        let answer = self.answer(&saved, reactions);
        let SavedDecision { outcome, saved, inputs, preferences, .. } = saved;
        let result = EventResult { answer, saved, preferences, ..EventResult::default() };
        decision_logs::log(context, &outcome, &inputs, &result, diagnostics);
        let is_blocked = result.answer.refuses();
        decision_logs::document(context, &outcome.excuses, is_blocked, diagnostics);
        EventResult { outcome: Some(outcome), ..result }
    }

    /// Asks what rules read, decides on the locked state, and saves the new state. `save_cursor` runs before the lock is
    /// released.
    ///
    /// # Errors
    /// The result of a stop that another hook line reported just before: it is not evaluated twice.
    fn decide_and_save(
        &self,
        inputs: &EvaluationInputs,
        save_cursor: &dyn Fn(),
        diagnostics: &mut Diagnostics,
    ) -> Result<SavedDecision, Box<EventResult>> {
        let context = self.context;
        let (world, request, policy) = (context.world, context.request, context.policy);
        let event_context = &inputs.view.context;
        let mut evaluator = ManuallyDrop::new(FactEvaluator::new(Rc::new(inputs.view.clone())));
        evaluator.watch.clone_from(&request.watch);

        // Probes can take long, so they run before the lock is taken.
        let forced_type = context.forced_type(diagnostics);
        let forced_type = forced_type.as_deref();
        let plan = evaluation::plan(policy, event_context, forced_type, &mut evaluator);
        let (view, answers) =
            context.read_planned(plan, inputs.view.clone(), &mut evaluator, diagnostics);

        let preferences = view.readings.preferences.clone();

        // The state is loaded under the lock, and saved before a block is sent.
        let mut locked = self.lock(diagnostics);
        if locked.is_some() {
            answers.save(world);
        }
        let copy = self.block_copy();
        let copied = copy.as_ref().and_then(|it| load_copy(it, diagnostics));
        let state = self.load(locked.as_mut(), copied.clone());
        let mark = inputs.stop_mark(request);
        if state.last_stop.as_ref().is_some_and(|it| mark.repeats(it)) {
            let repeated = EventResult::silent("another hook line reported this stop just before");
            return Err(Box::new(EventResult { preferences, ..repeated }));
        }
        let parameters = EvaluationContext {
            policy,
            view: &view,
            state: &state,
            stopwatch: &|| world.elapsed(),
            detail: request.detail,
            report_path: &context.state_dir.join(DECISION_LOG).display().to_string(),
            allowed: &BTreeMap::new(),
        };
        let logged = context.logged_inputs(inputs, &view, &state, forced_type);
        let mut outcome = self.decide(parameters, &mut evaluator, diagnostics);
        outcome.state.last_stop = Some(mark).filter(|_| outcome.moved).or(outcome.state.last_stop);
        let saved = self.save(locked.as_mut(), &outcome, diagnostics);
        let limiter = evaluation::guard_of(&outcome.state, &request.event);
        let is_copy_saved = copy.is_some_and(|it| update_copy(&it, copied.as_ref(), &limiter));
        let can_block = saved.result != SaveResult::NotSaved
            || is_copy_saved
            || policy.settings.when_forgotten == OnSaveFailure::Block
            || self.is_bounded(&event_context.facts);
        calls::record_stop(context, &event_context.facts);
        save_cursor();
        drop(locked);
        Ok(SavedDecision { outcome, saved, can_block, inputs: logged, preferences })
    }

    /// Locks the state of the session. Reports why it cannot be locked.
    fn lock(&self, diagnostics: &mut Diagnostics) -> Option<LockedSession<'_>> {
        let session = &self.context.request.event.session_id;
        let locked = self.context.store.lock(session, self.context.policy.settings.lock_wait);
        locked.map_err(|error| diagnostics.problem(&lock_problem(&error))).ok()
    }

    /// Returns whether the number of blocks is bounded without any state: the transcript shows the earlier blocks, or the
    /// client reports that this stop follows none.
    fn is_bounded(&self, facts: &Facts) -> bool {
        let request = self.context.request;
        facts.feedback.blocks > 0
            || (request.caller.harness.reports_blocks && !request.event.stop_active)
    }

    /// Loads the state of the session. If the copy of its block limiter is newer, the copy replaces it.
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
        let project = self.context.world.stat(&self.context.project.main);
        let created = project.ok().and_then(|it| it.created);
        evaluation::restore(&mut state, event, copied, created);
        state
    }

    /// Decides. If checks block the stop and the user allows them to pass, decides again without them.
    fn decide(
        &self,
        parameters: EvaluationContext<'_>,
        evaluator: &mut FactEvaluator,
        diagnostics: &mut Diagnostics,
    ) -> StopOutcome {
        let outcome = evaluation::decide(parameters, evaluator);
        if outcome.decision != Decision::Block {
            return outcome;
        }
        let rules = outcome.blocking().map(|id| (id, Decision::Block)).collect();
        let session = &self.context.request.event.session_id;
        let blocked = BlockedEvent { session, digest: None, rules };
        let allowed = allowances::use_allowances(self.context, &blocked, diagnostics);
        if allowed.is_empty() {
            return outcome;
        }
        evaluation::decide(EvaluationContext { allowed: &allowed, ..parameters }, evaluator)
    }

    /// Runs the reactions of the pack to a stop that was evaluated.
    fn react(
        &self,
        saved: &SavedDecision,
        facts: &Facts,
        diagnostics: &mut Diagnostics,
    ) -> StopReactions {
        let context = self.context;
        // The rules of the project react to the same stop.
        if context.is_organization {
            return StopReactions::default();
        }
        let runner = ReactionRunner { context, model: &facts.tokens.called };
        if context.policy.considerations.iter().any(|it| !it.emit.is_empty()) {
            runner.emit_for(&saved.outcome, diagnostics);
        }
        let reacts = context.policy.reacts_to.contains(&context.request.event.kind);
        let reaction = match reacts {
            true => runner.react(diagnostics).text,
            false => String::new(),
        };
        let drifts = runner.follow_drifts(diagnostics);
        if context.request.event.agent_id.is_none() {
            context_usage::request_clear(context, facts, diagnostics);
        }
        // Waiting signals do not keep an agent from stopping. An agent that continues reads them.
        let pending_signals = saved.blocks().then(|| runner.list_signals()).flatten();
        StopReactions { texts: [reaction, drifts], pending_signals }
    }

    /// Saves the new state. If the session is not locked, its directory cannot be written.
    fn save(
        &self,
        locked: Option<&mut LockedSession<'_>>,
        outcome: &StopOutcome,
        diagnostics: &mut Diagnostics,
    ) -> SaveReport {
        let durability = &self.context.store.durability;
        let result = match locked {
            None => SaveResult::NotSaved,
            Some(_) if !outcome.moved => SaveResult::Unchanged,
            Some(locked) => match locked.commit(&outcome.state) {
                SaveOutcome::NotSaved { why, .. } => {
                    diagnostics.problem(&format!("the state could not be saved: {why}"));
                    SaveResult::NotSaved
                }
                SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. }
                    if self.context.request.dry_run =>
                {
                    SaveResult::DryRun
                }
                SaveOutcome::Durable { .. } => SaveResult::Durable,
                SaveOutcome::Degraded { why, .. } => {
                    diagnostics.problem(&format!(
                        "the state was saved, but a loss of power may undo it: {why}"
                    ));
                    SaveResult::Degraded
                }
            },
        };
        SaveReport { result, without_fsync: !durability.fsync, without_verify: !durability.verify }
    }

    /// Returns the copy of the block limiter. The state of the organization needs none: no project can reach it.
    fn block_copy(&self) -> Option<BlockCopy<'_>> {
        let GateContext { world, request, is_organization, .. } = self.context;
        (!is_organization).then(|| BlockCopy::of(*world, &request.event))
    }

    /// Builds the answer from the decision and the texts of reactions.
    fn answer(&self, saved: &SavedDecision, reactions: StopReactions) -> HookResponse {
        let SavedDecision { outcome, can_block, .. } = saved;
        let mut notices = Vec::new();
        if outcome.decision == Decision::Block && !can_block {
            notices.push(outcome.forgotten_notice.clone());
        }
        notices.push(outcome.notice.clone());
        notices.retain(|it| !it.is_empty());
        let notice = (!notices.is_empty()).then(|| notices.join("\n"));
        let answer = match saved.blocks() {
            true => {
                let checks: Vec<&str> = outcome.blocking().collect();
                let hint = allowances::hint_for_checks(&checks);
                let override_hint = Some(hint).filter(|_| self.context.allowances.is_some());
                HookResponse {
                    notice,
                    override_hint,
                    ..HookResponse::block(outcome.reason.clone())
                }
            }
            false => HookResponse { notice, ..HookResponse::default() },
        };
        let request = self.context.request;
        let answer = reactions
            .texts
            .iter()
            .fold(answer, |answer, text| add_reaction_text(answer, request, text));
        match reactions.pending_signals {
            Some(signals) => {
                let reason = format!("{}\n\n{signals}", answer.reason.trim_end());
                HookResponse { reason: cut(&reason, SPOKEN_CHARS_MAX), ..answer }
            }
            None => answer,
        }
    }
}

/// Adds the result of each check to the debug log.
fn note_verdicts(outcome: &StopOutcome, diagnostics: &mut Diagnostics) {
    for verdict in &outcome.verdicts {
        let (id, status) = (&verdict.id, verdict.status.as_str());
        diagnostics.note(format!("{id} {status}: {}", verdict.details));
    }
}

/// Loads the copy of the block limiter. Reports why it cannot be used.
fn load_copy(copy: &BlockCopy<'_>, diagnostics: &mut Diagnostics) -> Option<BlockLimiterState> {
    copy.load().unwrap_or_else(|problem| {
        diagnostics.problem(&format!("blocks are counted without their copy: {}", problem.note()));
        None
    })
}

/// Saves the block limiter in the user's directory before its block is sent. After a clean stop there is nothing to count,
/// and the copy is removed. Returns whether the directory has this state now.
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

/// Returns why the state of a session cannot be locked, and what the user can do.
fn lock_problem(error: &LockError) -> String {
    let help = match error {
        LockError::Busy(_) => "end that process if it hangs",
        LockError::Refused(_) => "set `POLICYD_STATE_DIR` to a writable directory",
    };
    format!(
        "could not lock the state of the session ({error}); blocks are counted by the transcript and the client; {help}"
    )
}
