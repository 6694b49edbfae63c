//! Evaluates one pack for recorded stops and tool calls, as `eval` would have done.
//!
//! Values that the recording lacks are unknown: no probe ran, no preference was searched, and no
//! file can be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{self, CallContent, GuardsOutcome};
use policyd_evaluation::situation::{EventContext, Matchers, exclude_scratch, is_scratch};
use policyd_evaluation::{self as evaluation, Detail, EvaluationContext, StopOutcome};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::{ConversationProse, FactView, Readings};
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::Facts;
use policyd_facts::call::{AnalysisContext, CallEnvironment, Invocation, NoDisk};
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::event::{Event, EventKind};
use policyd_policy::Policy;
use policyd_policy::guards::Guard;
use policyd_state::SessionState;
use policyd_yaml::time::Timestamp;

/// Tools with cached guard selections. Sessions use a few dozen, unless they invent names.
const TOOLS_MAX: usize = 256;

/// Outcome of a stop, or why the pack makes no decision.
pub type StopResult = Result<StopOutcome, &'static str>;

/// A recorded stop, or a tool call before its execution.
#[derive(Debug)]
pub struct RecordedEvent<'s> {
    /// Event that a hook would have received.
    pub event: Event,
    /// Whether a user was present.
    pub interactive: bool,
    /// Working directory at the beginning of the session.
    pub project: &'s Path,
    /// Additional directories of temporary files.
    pub scratch: &'s [PathBuf],
    /// Time of the event.
    pub now: Timestamp,
}

/// What the guards say at the permission prompt of a recorded call.
#[derive(Debug, Default)]
pub struct ReplayedPrompt {
    /// Whether they answer it in place of the user.
    pub is_approved: bool,
    /// Programs of the call that no guard allows. Empty if a guard stops the call before the prompt.
    pub not_allowed: Vec<Invocation>,
}

/// Evaluator of one pack. Its caches serve all stops.
pub struct Judge<'p> {
    policy: &'p Policy,
    words: Matchers,
    evaluator: Option<FactEvaluator>,
    /// Prose of the conversation, as split for the last stop.
    spoken: ConversationProse,
    /// Guards by kind of event and tool.
    meant: BTreeMap<(EventKind, String), Vec<&'p Guard>>,
}

impl<'p> Judge<'p> {
    /// Creates the evaluator of a pack.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        let words = Matchers::new(CompiledMatchers::new(policy.lens.clone()), policy.texts.clone());
        let (spoken, meant) = (ConversationProse::default(), BTreeMap::new());
        Self { policy, words, evaluator: None, spoken, meant }
    }

    /// Returns the pack.
    #[must_use]
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// Returns the matchers of the fold for this pack.
    #[must_use]
    pub fn lens(&self) -> Rc<CompiledMatchers> {
        Rc::clone(&self.words.lens)
    }

    /// Evaluates a stop and updates the state. Restores the facts afterwards.
    pub fn judge(
        &mut self,
        stop: &RecordedEvent<'_>,
        facts: &mut Facts,
        state: &mut SessionState,
    ) -> StopResult {
        if !self.policy.settings.enabled {
            return Err("the pack is switched off (`enabled: false`)");
        }
        if !self.policy.judges(stop.event.kind) {
            return Err("no rule for this event");
        }
        let by_event = evaluation::no_opinion_by_event(&stop.event, stop.interactive);
        if let Some(why) = by_event.or_else(|| evaluation::no_opinion_by_facts(facts)) {
            return Err(why);
        }
        let own = [Some(stop.project), stop.event.folder.as_deref()].into_iter().flatten();
        // Every path is below an empty path, so an unknown directory must not count.
        let own: Vec<&Path> = own.filter(|it| !it.as_os_str().is_empty()).collect();
        let foreign = |path: &str| is_scratch(path, &own, stop.scratch);
        let any = facts.files.iter().any(|it| foreign(&it.path))
            || facts.findings.iter().any(|it| foreign(&it.path));
        let all = any.then(|| {
            let all = (facts.files.clone(), facts.findings.clone());
            exclude_scratch(facts, &own, stop.scratch);
            all
        });
        let outcome = self.decide(stop, facts, state);
        if let Some((files, findings)) = all {
            (facts.files, facts.findings) = (files, findings);
        }
        state.clone_from(&outcome.state);
        Ok(outcome)
    }

    fn decide(
        &mut self,
        stop: &RecordedEvent<'_>,
        facts: &mut Facts,
        state: &SessionState,
    ) -> StopOutcome {
        self.ask(stop, true, facts, |policy, view, evaluator| {
            // The other inputs of a plan are not available.
            let session_type = evaluation::classify(policy, None, evaluator);
            let view = FactView { session_type, readings: Rc::new(known_before(policy)), ..view };
            let bench = EvaluationContext {
                policy,
                view: &view,
                state,
                stopwatch: &|| Duration::ZERO,
                detail: Detail::Findings,
                report_path: "",
                allowed: &BTreeMap::new(),
            };
            evaluation::decide(bench, evaluator)
        })
    }

    /// Returns whether any guard applies to this kind of event.
    #[must_use]
    pub fn guards(&self, kind: EventKind) -> bool {
        self.policy.settings.enabled && self.policy.guarded.contains(&kind)
    }

    /// Evaluates a tool call before its execution. Restores the facts afterwards.
    pub fn guard(
        &mut self,
        call: &RecordedEvent<'_>,
        around: &Rc<CallEnvironment>,
        facts: &mut Facts,
    ) -> GuardsOutcome {
        if !self.guards(call.event.kind) {
            return GuardsOutcome::default();
        }
        let seen = self.analyze(call, around);
        self.judge_call(call, &seen, facts)
    }

    /// Evaluates a tool call as [`Self::guard`] does, and then its permission prompt.
    pub fn guard_and_approve(
        &mut self,
        call: &RecordedEvent<'_>,
        around: &Rc<CallEnvironment>,
        facts: &mut Facts,
    ) -> (GuardsOutcome, ReplayedPrompt) {
        if !self.guards(call.event.kind) {
            return (GuardsOutcome::default(), ReplayedPrompt::default());
        }
        let seen = self.analyze(call, around);
        let guarded = self.judge_call(call, &seen, facts);
        if guarded.decision != Decision::None || !self.guards(EventKind::PermissionRequest) {
            return (guarded, ReplayedPrompt::default());
        }
        let event = Event { kind: EventKind::PermissionRequest, ..call.event.clone() };
        let prompt = RecordedEvent { event, ..*call };
        let GuardsOutcome { decision, not_allowed, .. } = self.judge_call(&prompt, &seen, facts);
        let programs = not_allowed.into_iter().filter_map(|at| seen.call.programs.get(at));
        let not_allowed = programs.cloned().collect();
        (guarded, ReplayedPrompt { is_approved: decision == Decision::Allow, not_allowed })
    }

    /// Analyzes a tool call.
    fn analyze(&self, call: &RecordedEvent<'_>, around: &Rc<CallEnvironment>) -> Rc<CallFacts> {
        let knowledge = &*self.policy.guards.knowledge;
        let reading = AnalysisContext { lens: &*self.words.lens, knowledge, around, disk: &NoDisk };
        let call = call.event.call(reading);
        Rc::new(CallFacts { call, around: Rc::clone(around), ..CallFacts::default() })
    }

    /// Evaluates the guards of an event about an analyzed call.
    fn judge_call(
        &mut self,
        call: &RecordedEvent<'_>,
        seen: &Rc<CallFacts>,
        facts: &mut Facts,
    ) -> GuardsOutcome {
        let (policy, kind) = (self.policy, call.event.kind);
        let tool = call.event.tool_name.clone().unwrap_or_default();
        if self.meant.len() >= TOOLS_MAX {
            self.meant.clear();
        }
        let meant = self.meant.entry((kind, tool.clone()));
        let meant = meant.or_insert_with(|| guards::guards_for(policy, kind, tool).collect());
        let meant = meant.iter().copied();
        let content = CallContent::of(&seen.call);
        let concerned: Vec<&Guard> =
            meant.filter(|it| guards::in_force(it, call.now) && content.can_match(it)).collect();
        let values = &self.words.lens.lens().value_options;
        let told = |it: &&Guard| {
            it.sources.has_some(FactSources::SESSION)
                && guards::matches_any_program(it, &seen.call, values)
        };
        let gauged = concerned.iter().any(told);
        self.ask(call, gauged, facts, |_, view, evaluator| {
            let asks = |source| concerned.iter().any(|it| it.sources.contains(source));
            if asks(FactSource::SessionType) {
                evaluation::classify(policy, None, evaluator);
            }
            let readings = asks(FactSource::Preferences).then(|| Rc::new(known_before(policy)));
            evaluator.change(|it| {
                it.call = Some(Rc::clone(seen));
                it.readings = readings.unwrap_or_default();
            });
            guards::judge(
                concerned.iter().copied(),
                &call.event,
                seen,
                &view.context,
                evaluator,
                Detail::Findings,
            )
        })
    }

    /// Runs `ask` with the context of a recorded event.
    fn ask<T>(
        &mut self,
        happened: &RecordedEvent<'_>,
        gauged: bool,
        facts: &mut Facts,
        ask: impl FnOnce(&Policy, FactView, &mut FactEvaluator) -> T,
    ) -> T {
        let situation = EventContext {
            facts: std::mem::take(facts),
            interactive: happened.interactive,
            recorded: true,
            gauged,
            ..EventContext::alone(
                happened.event.clone(),
                happened.project.to_path_buf(),
                happened.now,
            )
        };
        let spoken = std::mem::take(&mut self.spoken).again();
        let mut view = situation.view(self.policy, &self.words);
        if let Some(context) = Rc::get_mut(&mut view.context) {
            context.spoken = spoken;
        }
        let context = Rc::clone(&view.context);
        let evaluator = match &mut self.evaluator {
            Some(evaluator) => {
                evaluator.turn_to(Rc::new(view.clone()));
                evaluator
            }
            empty @ None => empty.insert(FactEvaluator::new(Rc::new(view.clone()))),
        };
        let found = ask(self.policy, view, evaluator);
        evaluator.leave();
        // This is the last reference to the context; otherwise a copy is sufficient.
        match Rc::try_unwrap(context) {
            Ok(context) => (*facts, self.spoken) = (context.facts, context.spoken),
            Err(held) => *facts = held.facts.clone(),
        }
        found
    }
}

/// The readings that the pack alone determines: fixed preferences, and disabled probes.
fn known_before(policy: &Policy) -> Readings {
    let fixed = policy.preferences.iter().filter_map(|it| Some((it.id.clone(), it.value?)));
    let off =
        policy.probes.iter().filter_map(|it| Some((it.id.clone(), evaluation::switched_off(it)?)));
    Readings { preferences: fixed.collect(), probes: off.collect() }
}
