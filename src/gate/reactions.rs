//! Reactions to events by `reactions.yaml`: breakers record calls, tasks count failures, humans are asked.
//! Where a session or a prompt begins, what waits is listed.
//! Nothing here blocks anything. An effect that fails is in the log of events, and a condition that fails in the debug log.

mod waiting;

use std::time::Duration;

use serde_json::{Value, json};

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use super::request::Supervision;
use policyd_base::limits::{EVIDENCE_CHARS_MAX, HOOK_LOCK_WAIT};
use policyd_evaluation::escalation::EscalationDetails;
use policyd_evaluation::verdict::CheckStatus;
use policyd_evaluation::{StopOutcome, message};
use policyd_fact_table::record::FactRecord;
use policyd_fact_table::{FactEvaluator, ScriptError, template};
use policyd_facts::event::EventKind;
use policyd_policy::failures::FailureClassification;
use policyd_policy::resilience::Reaction;
use policyd_policy::{Mode, records};
use policyd_record::event_log::EVENT_LOG;
use policyd_record::mask::mask;
use policyd_state::breaker::{self, BreakerFailure};
use policyd_state::dead_letter::{Attempt, Task};
use policyd_state::escalation::Escalation;
use policyd_store::escalations::EscalationSubject;
use policyd_store::signals::Draft;
use policyd_store::{log, transcript};
use policyd_tasks::{FailureReport, Stores};
use policyd_workspace::local_time::WallClock;
use policyd_world::WorldError;

/// Longest time that the model of the last call is looked for.
const MODEL_WAIT: Duration = Duration::from_millis(200);
/// Longest key of a breaker in characters. A pack can build the key from texts of the event.
const KEY_CHARS_MAX: usize = 200;

/// An event that the pack reacts to.
pub(super) struct ReactionRunner<'a> {
    pub(super) context: &'a GateContext<'a>,
    /// The model that was called last. Empty if it is not known yet.
    pub(super) model: &'a str,
}

/// What reactions did at an event, and the texts that they add to its answer.
#[derive(Debug, Default)]
pub(super) struct ReactionOutcome {
    /// Actions of the reactions, for the log: `breaker api: open`.
    pub(super) actions: Vec<String>,
    /// Texts of the reactions and lists of waiting items, one below the other. Empty without them.
    pub(super) text: String,
    /// Open escalations, for the user. `None` if no session begins, or none is open.
    pub(super) notice: Option<String>,
}

/// Runs the reactions of the pack at an event that is not evaluated as a stop.
pub(super) fn react(context: &GateContext<'_>, diagnostics: &mut Diagnostics) -> ReactionOutcome {
    let (policy, kind) = (context.policy, context.request.event.kind);
    if policy.settings.enabled && (policy.reacts_to.contains(&kind) || begins(kind)) {
        return ReactionRunner { context, model: "" }.react(diagnostics);
    }
    ReactionOutcome::default()
}

impl ReactionRunner<'_> {
    /// Runs the reactions of the pack. Where work begins, also lists what waits.
    pub(super) fn react(&self, diagnostics: &mut Diagnostics) -> ReactionOutcome {
        let kind = self.context.request.event.kind;
        if self.context.request.dry_run {
            return ReactionOutcome::default(); // A dry run shows decisions only.
        }
        let is_supervised = self.context.request.supervision != Supervision::None;
        let reactions =
            self.context.policy.reactions.iter().filter(|it| {
                it.on.contains(&kind) && (!is_supervised || it.applies_supervised(kind))
            });
        let reactions: Vec<&Reaction> = reactions.collect();
        let stores = self.stores();
        let ReactionRecord { actions, mut texts } = match reactions.is_empty() {
            true => ReactionRecord::default(),
            false => self.run_reactions(&stores, &reactions, diagnostics),
        };
        let mut notice = None;
        if begins(kind) {
            let waiting = self.waiting(&stores, kind == EventKind::SessionStart, diagnostics);
            texts.extend(waiting.texts);
            notice = waiting.notice;
        }
        ReactionOutcome { actions, text: texts.join("\n"), notice }
    }

    /// Applies the effects of drifts that another program reported since the last event. Returns the text for the agent.
    pub(super) fn follow_drifts(&self, diagnostics: &mut Diagnostics) -> String {
        if self.context.request.dry_run {
            return String::new();
        }
        self.drifts(&self.stores(), diagnostics).join("\n")
    }

    /// Opens the stores that reactions change.
    fn stores(&self) -> Stores<'_> {
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        let (now, watch) = (self.context.request.now, self.context.request.watch.clone());
        Stores { now, watch, ..stores }
    }

    /// Creates the signals of checks that are not satisfied.
    pub(super) fn emit_for(&self, outcome: &StopOutcome, diagnostics: &mut Diagnostics) {
        let emitting = self.context.policy.considerations.iter().filter(|it| !it.emit.is_empty());
        let violated = emitting.filter_map(|rule| {
            let verdict = outcome.verdicts.iter().find(|it| it.id == rule.id)?;
            (verdict.status == CheckStatus::Unsatisfied
                && rule.mode != Mode::Shadow
                && !rule.observed)
                .then_some((rule, verdict))
        });
        let violated: Vec<_> = violated.collect();
        if violated.is_empty() || self.context.request.dry_run {
            return;
        }
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        let (task, goal) = stores.current_task();
        for (rule, verdict) in violated {
            let values = [
                ("task_id", task.as_str()),
                ("original_goal", &goal),
                ("planned_action", &rule.question),
                ("detected_drift", &verdict.details),
                ("reason", &verdict.details),
                ("context", &verdict.details),
                ("severity", "medium"),
                ("agent", self.context.request.event.session_id.as_str()),
            ];
            let kind = self.context.policy.signals.kind(&rule.emit);
            let has_field = |key: &str| kind.is_some_and(|it| it.has_field(key));
            let fields = values.iter().filter(|(key, value)| has_field(key) && !value.is_empty());
            let fields = fields
                .map(|(key, value)| ((*key).to_owned(), Value::from(mask(value).0.into_owned())));
            let draft = Draft {
                name: rule.emit.clone(),
                fields: fields.collect(),
                sender: self.context.request.event.session_id.to_string(),
                ..Draft::default()
            };
            match stores.emit(&draft) {
                Ok(emitted) => {
                    emitted.problems.iter().for_each(|it| diagnostics.note(it.as_str()));
                    let answer = emitted.drift.as_ref().map(|it| it.message.as_str());
                    answer.iter().for_each(|it| diagnostics.note(*it));
                }
                Err(error) => diagnostics.note(format!("{}: {error}", rule.emit)),
            }
        }
    }

    /// Runs reactions in the order of the pack, and logs what they did.
    fn run_reactions(
        &self,
        stores: &Stores<'_>,
        reactions: &[&Reaction],
        diagnostics: &mut Diagnostics,
    ) -> ReactionRecord {
        let failure = self.classify_failure();
        let mut actor = ReactionActor { runner: self, failure: failure.as_ref(), evaluator: None };
        let mut record = ReactionRecord::default();
        let mut entries = Vec::new();
        // A success changes something only if a breaker counts it.
        let has_breakers = stores.breakers.is_kept();
        for reaction in reactions.iter().filter(|it| has_breakers || !it.only_tells_success()) {
            match actor.applies(reaction) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    diagnostics.note(format!("reaction `{}`: {why}", reaction.id));
                    continue;
                }
            }
            let mut actions = Vec::new();
            if let Err(problem) = actor.perform(stores, reaction, &mut actions) {
                diagnostics.note(format!("reaction `{}`: {problem}", reaction.id));
                actions.push(format!("not done: {problem}"));
            }
            if !reaction.say.is_empty() {
                record.texts.push(actor.render(&reaction.say));
            }
            if !actions.is_empty() {
                let event = &self.context.request.event;
                entries.push(
                    json!({"timestamp": self.context.request.now.to_string(), "type": "reaction",
                    "reaction": reaction.id, "event": event.kind.name(),
                    "session_id": event.session_id.as_str(), "did": actions}),
                );
            }
            record.actions.extend(actions);
        }
        log::append(self.context.world, &self.context.state_dir.join(EVENT_LOG), &entries);
        record
    }

    /// Classifies the failure that the event reports. `None` if it reports none.
    fn classify_failure(&self) -> Option<FailureClassification> {
        let event = &self.context.request.event;
        let failure = event.failed.as_ref()?;
        // The output of a tool is not the name of an error.
        let has_error_name = event.kind == EventKind::StopFailure;
        let name = if has_error_name { failure.error.as_str() } else { "" };
        Some(self.context.policy.classify(name, &self.failure_text()))
    }

    /// Returns the model that was called last, at an event that shows whether a call of it failed. Else empty.
    fn model(&self) -> String {
        if !self.model.is_empty() {
            return self.model.to_owned();
        }
        let event = &self.context.request.event;
        let ends_call = event.kind.is_stop() || event.kind == EventKind::StopFailure;
        let transcript = event.transcript.as_deref().filter(|_| ends_call);
        let deadline = self.context.world.elapsed().saturating_add(MODEL_WAIT);
        let found = transcript.and_then(|path| {
            transcript::last_model(self.context.world, path, event.subagent_transcript, deadline)
        });
        found.unwrap_or_default()
    }

    /// Returns everything that the event says of the failure, one text a line.
    fn failure_text(&self) -> String {
        let event = &self.context.request.event;
        let failure = event.failed.as_ref();
        let message =
            event.last_message.as_deref().filter(|_| event.kind == EventKind::StopFailure);
        let lines =
            [failure.map(|it| it.error.as_str()), failure.map(|it| it.details.as_str()), message];
        let lines: Vec<&str> =
            lines.into_iter().flatten().filter(|it| !it.trim().is_empty()).collect();
        lines.join("\n")
    }
}

/// Texts and actions of the reactions that applied.
#[derive(Default)]
struct ReactionRecord {
    actions: Vec<String>,
    texts: Vec<String>,
}

/// Returns whether work begins at this event, so that waiting items are listed.
const fn begins(event: EventKind) -> bool {
    matches!(event, EventKind::SessionStart | EventKind::UserPromptSubmit)
}

/// Performs the reactions of one event.
struct ReactionActor<'a> {
    runner: &'a ReactionRunner<'a>,
    /// The failure that the event reports.
    failure: Option<&'a FailureClassification>,
    /// Created by the first expression, because most reactions have none.
    evaluator: Option<FactEvaluator>,
}

impl ReactionActor<'_> {
    /// Returns whether the condition of a reaction is true.
    fn applies(&mut self, reaction: &Reaction) -> Result<bool, ScriptError> {
        let Some(when) = &reaction.when else { return Ok(true) };
        self.evaluator().eval_bool(when)
    }

    fn evaluator(&mut self) -> &mut FactEvaluator {
        let (runner, failure) = (self.runner, self.failure);
        self.evaluator.get_or_insert_with(|| {
            let watch = runner.context.request.watch.as_ref();
            FactEvaluator::about(record(runner, failure)).watched_by(watch)
        })
    }

    /// Renders a template of a reaction.
    fn render(&mut self, text: &str) -> String {
        // Most texts have no placeholder and need no evaluator.
        if !text.contains("${") {
            return text.to_owned();
        }
        template::render(text, self.evaluator())
    }

    /// Performs a reaction. Each action is added to `actions`, also if a later one fails.
    fn perform(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
        actions: &mut Vec<String>,
    ) -> Result<(), WorldError> {
        if !reaction.breaker.is_empty() {
            self.record_call(stores, reaction, actions)?;
        }
        let policyd_policy::resilience::ReactionTask { id, title, approach } = &reaction.task;
        if !id.is_empty() {
            let class = self.failure.map(|it| it.class.id.clone()).unwrap_or_default();
            let failure = FailureReport {
                task: Task { id: self.render(id), title: self.render(title), ..Task::default() },
                attempt: Attempt {
                    approach: self.render(approach),
                    error_type: class,
                    error: mask(&self.runner.failure_text()).0.into_owned(),
                    agent: self.runner.context.request.event.session_id.to_string(),
                    counts: self.failure.is_none_or(|it| it.class.attempt),
                    ..Attempt::default()
                },
                at_once: false,
            };
            let task = stores.fail_or_defer(&failure)?;
            let state = match &task {
                Some(task) if task.entered.is_empty() => "failed",
                Some(_) => "dead letter",
                None => "deferred, because another process uses the task queues",
            };
            actions.push(format!("task {}: {state}", failure.task.id));
        }
        if !reaction.signal.name.is_empty() {
            actions.push(self.emit(stores, reaction)?);
        }
        if !reaction.reason.is_empty() {
            actions.push(self.ask_human(stores, reaction)?);
        }
        Ok(())
    }

    /// Records in a breaker whether the call of the event failed.
    fn record_call(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
        actions: &mut Vec<String>,
    ) -> Result<(), WorldError> {
        let key: String = self.render(&reaction.breaker).chars().take(KEY_CHARS_MAX).collect();
        let settings = stores.policy.breaker(&key);
        let text = self.runner.failure_text();
        let line;
        let event = if reaction.worked {
            breaker::BreakerEvent::success()
        } else {
            let class = self.failure.map(|it| &it.class);
            let own_effect = class.and_then(|it| settings.effect_of(&it.id));
            let effect = own_effect.or(class.map(|it| it.effect)).unwrap_or_default();
            let retry_after = self.requested_wait(stores, &text, actions);
            let summary = text.lines().take(2).collect::<Vec<_>>().join(": ");
            line = mask(&summary).0.into_owned();
            breaker::BreakerEvent::Failure(BreakerFailure {
                effect,
                retry_after,
                ..BreakerFailure::new(&line)
            })
        };
        let next = stores.breakers.record(&key, event, &settings, stores.now)?;
        // A call that works is worth a line only if the breaker was open before.
        if !reaction.worked || next.recovered_at == Some(stores.now) {
            actions.push(format!("breaker {key}: {}", next.phase.as_str()));
        }
        Ok(())
    }

    /// Returns the wait that the text of a failure requests.
    fn requested_wait(
        &self,
        stores: &Stores<'_>,
        text: &str,
        actions: &mut Vec<String>,
    ) -> Option<Duration> {
        let (waits, now) = (&stores.policy.failures.waits, stores.now);
        waits.retry_after(text, now).or_else(|| {
            WallClock::until_reset(stores.world, now, waits, text, |it| actions.push(it.to_owned()))
        })
    }

    /// Creates the signal of a reaction. Returns the action for the log.
    fn emit(&mut self, stores: &Stores<'_>, reaction: &Reaction) -> Result<String, WorldError> {
        let policyd_policy::resilience::ReactionSignal { name, fields } = &reaction.signal;
        let fields = fields
            .iter()
            .map(|(key, text)| (key.clone(), Value::from(mask(&self.render(text)).0.into_owned())));
        let draft = Draft {
            name: name.clone(),
            fields: fields.collect(),
            sender: self.runner.context.request.event.session_id.to_string(),
            ..Draft::default()
        };
        let emitted = stores.emit(&draft)?;
        Ok(format!("signal {} {}", emitted.signal.name, emitted.signal.id))
    }

    /// Opens the escalation of a reaction. Returns the action for the log.
    fn ask_human(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
    ) -> Result<String, WorldError> {
        let reason = message::cut(&mask(&self.render(&reaction.reason)).0, EVIDENCE_CHARS_MAX);
        let question = Escalation {
            title: reaction.id.clone(),
            trigger: reaction.id.clone(),
            reason: reason.clone(),
            severity: reaction.severity.clone(),
            ..Escalation::default()
        };
        let details = EscalationDetails {
            summary: &reason,
            options: &reaction.options,
            ..EscalationDetails::default()
        };
        let opened = stores.open(EscalationSubject::Task(&reaction.id), question, details)?;
        stores.remind();
        Ok(format!("escalation {}", opened.id))
    }
}

/// Returns the event as expressions of reactions read it.
fn record(runner: &ReactionRunner<'_>, failure: Option<&FailureClassification>) -> FactRecord {
    let event = &runner.context.request.event;
    let or_empty = |it: &Option<String>| it.clone().unwrap_or_default();
    let error = event.failed.as_ref().map(|it| it.error.clone()).unwrap_or_default();
    let class = failure.map(|it| it.class.id.clone()).unwrap_or_default();
    let model = runner.model();
    let tier = runner.context.policy.tier_of(&model).map(|it| it.name.clone()).unwrap_or_default();
    let texts = [
        ("model", model),
        ("tier", tier),
        ("kind", event.kind.name().to_owned()),
        ("session", event.session_id.to_string()),
        ("prompt_id", or_empty(&event.prompt_id)),
        ("agent", or_empty(&event.agent_id)),
        ("source", or_empty(&event.source)),
        ("prompt", or_empty(&event.prompt)),
        ("tool", or_empty(&event.tool_name)),
        ("error", error),
        ("text", runner.failure_text()),
        ("class", class),
    ];
    let flags = [
        ("failed", event.failed.is_some()),
        ("interrupted", event.failed.as_ref().is_some_and(|it| it.interrupted)),
        ("permanent", failure.is_some_and(FailureClassification::is_permanent)),
        ("human", failure.is_some_and(|it| it.class.human)),
        ("counts", failure.is_some_and(|it| it.class.attempt)),
    ];
    let mut record = FactRecord::new(records::shape(&records::EVENT));
    texts.iter().for_each(|(name, value)| record.set(name, value.as_str()));
    flags.into_iter().for_each(|(name, value)| record.set(name, value));
    record
}
