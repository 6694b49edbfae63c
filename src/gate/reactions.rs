//! Reactions to events by `reactions.yaml`: breakers record calls, tasks count failures, humans are asked.
//! Lists what is waiting where a session or a prompt begins.
//! Nothing here blocks anything; what goes wrong is said at the beginning of a session only.

mod waiting;

use std::time::Duration;

use serde_json::{Value, json};

use super::context::GateContext;
use super::report::Report;
use super::request::Supervision;
use policyd_base::limits::{EVIDENCE_CHARS_MAX, HOOK_LOCK_WAIT, SPOKEN_CHARS_MAX};
use policyd_evaluation::escalation::EscalationDetails;
use policyd_evaluation::verdict::CheckStatus;
use policyd_evaluation::{StopOutcome, message};
use policyd_fact_table::record::FactRecord;
use policyd_fact_table::{FactEvaluator, ScriptError, template};
use policyd_facts::event::EventKind;
use policyd_harness::Capability;
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
/// The breaker that a failed call of an unnamed provider is counted against is the pack's business;
/// at most that many characters of its name are used.
const KEY_CHARS_MAX: usize = 200;

/// An event that the pack reacts to.
pub(super) struct ReactionRunner<'a> {
    pub(super) context: &'a GateContext<'a>,
    /// The model that was called last, if it is known already; else empty.
    pub(super) model: &'a str,
}

/// Notes what the pack says about an event that is not evaluated as a stop.
pub(super) fn react(context: &GateContext<'_>, report: &mut Report) {
    let (policy, kind) = (context.policy, context.request.event.kind);
    if policy.settings.enabled && (policy.reacts_to.contains(&kind) || begins(kind)) {
        ReactionRunner { context, model: "" }.react(report);
    }
}

impl ReactionRunner<'_> {
    /// Notes what the pack says, and tells what waits.
    pub(super) fn react(&self, report: &mut Report) {
        let kind = self.context.request.event.kind;
        if self.context.request.dry_run {
            return; // A dry run shows decisions only.
        }
        let is_supervised = self.context.request.supervision != Supervision::None;
        let reactions =
            self.context.policy.reactions.iter().filter(|it| {
                it.on.contains(&kind) && (!is_supervised || it.applies_supervised(kind))
            });
        let reactions: Vec<&Reaction> = reactions.collect();
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        let (now, watch) = (self.context.request.now, self.context.request.watch.clone());
        let stores = Stores { now, watch, ..stores };
        let mut said = Vec::new();
        if !reactions.is_empty() {
            said = self.note(&stores, &reactions, report);
        }
        if begins(kind) {
            said.extend(self.waiting(&stores, kind == EventKind::SessionStart, report));
        }
        self.say(&said.join("\n"), report);
    }

    /// Does the effects of drifts that another program reported since, and tells the agent.
    pub(super) fn follow_drifts(&self, report: &mut Report) {
        if self.context.request.dry_run {
            return;
        }
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        let (now, watch) = (self.context.request.now, self.context.request.watch.clone());
        let stores = Stores { now, watch, ..stores };
        self.say(&self.drifts(&stores, report).join("\n"), report);
    }

    /// Creates the signals of considerations that are not satisfied.
    pub(super) fn emit_for(&self, outcome: &StopOutcome, report: &mut Report) {
        let emitting = self.context.policy.considerations.iter().filter(|it| !it.emit.is_empty());
        let found = emitting.filter_map(|rule| {
            let verdict = outcome.verdicts.iter().find(|it| it.id == rule.id)?;
            (verdict.status == CheckStatus::Unsatisfied
                && rule.mode != Mode::Shadow
                && !rule.observed)
                .then_some((rule, verdict))
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() || self.context.request.dry_run {
            return;
        }
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        let (task, goal) = stores.current_task();
        for (rule, verdict) in found {
            let said = [
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
            let takes = |key: &str| kind.is_some_and(|it| it.has_field(key));
            let fields = said.iter().filter(|(key, value)| takes(key) && !value.is_empty());
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
                    emitted.problems.iter().for_each(|it| report.note(it.as_str()));
                    let answer = emitted.drift.as_ref().map(|it| it.message.as_str());
                    answer.iter().for_each(|it| report.note(*it));
                }
                Err(error) => report.note(format!("{}: {error}", rule.emit)),
            }
        }
    }

    fn note(
        &self,
        stores: &Stores<'_>,
        reactions: &[&Reaction],
        report: &mut Report,
    ) -> Vec<String> {
        let failed = self.classified();
        let mut scene = Scene { runner: self, failed: failed.as_ref(), evaluator: None };
        let (mut said, mut entries) = (Vec::new(), Vec::new());
        // That something works is news only where a breaker is kept.
        let kept = stores.breakers.is_kept();
        for reaction in reactions.iter().filter(|it| kept || !it.only_tells_success()) {
            match scene.applies(reaction) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    report.note(format!("reaction `{}`: {why}", reaction.id));
                    continue;
                }
            }
            let mut did = Vec::new();
            let outcome = scene.do_it(stores, reaction, &mut did);
            if let Err(problem) = outcome {
                report.note(format!("reaction `{}`: {problem}", reaction.id));
                did.push(format!("not done: {problem}"));
            }
            if !reaction.say.is_empty() {
                said.push(scene.text(&reaction.say));
            }
            report.reacted.extend(did.iter().cloned());
            if !did.is_empty() {
                let event = &self.context.request.event;
                entries.push(
                    json!({"timestamp": self.context.request.now.to_string(), "type": "reaction",
                    "reaction": reaction.id, "event": event.kind.name(),
                    "session_id": event.session_id.as_str(), "did": did}),
                );
            }
        }
        log::append(self.context.world, &self.context.state_dir.join(EVENT_LOG), &entries);
        said
    }

    /// What the failure is that the event reports.
    fn classified(&self) -> Option<FailureClassification> {
        let event = &self.context.request.event;
        let failed = event.failed.as_ref()?;
        // The output of a tool is not the name of an error.
        let named = event.kind == EventKind::StopFailure;
        let name = if named { failed.error.as_str() } else { "" };
        Some(self.context.policy.classify(name, &self.failure_text()))
    }

    /// The model that was called last, where a call of it failed or worked.
    fn model(&self) -> String {
        if !self.model.is_empty() {
            return self.model.to_owned();
        }
        let event = &self.context.request.event;
        let called = event.kind.is_stop() || event.kind == EventKind::StopFailure;
        let transcript = event.transcript.as_deref().filter(|_| called);
        let deadline = self.context.world.elapsed().saturating_add(MODEL_WAIT);
        let found = transcript.and_then(|it| {
            transcript::last_model(self.context.world, it, event.subagent_transcript, deadline)
        });
        found.unwrap_or_default()
    }

    /// All that is known of the failure, a line each.
    fn failure_text(&self) -> String {
        let event = &self.context.request.event;
        let failed = event.failed.as_ref();
        let said = event.last_message.as_deref().filter(|_| event.kind == EventKind::StopFailure);
        let lines =
            [failed.map(|it| it.error.as_str()), failed.map(|it| it.details.as_str()), said];
        let lines: Vec<&str> =
            lines.into_iter().flatten().filter(|it| !it.trim().is_empty()).collect();
        lines.join("\n")
    }

    /// Notifies the agent if the event permits it, else the user.
    fn say(&self, text: &str, report: &mut Report) {
        if text.trim().is_empty() {
            return;
        }
        let text = message::cut(&mask(text).0, SPOKEN_CHARS_MAX);
        let event = self.context.request.event.kind;
        if self.context.request.caller.harness.can(event, Capability::Context) {
            let before = report.answer.context.take().filter(|it| !it.is_empty());
            let both: Vec<String> = before.into_iter().chain([text]).collect();
            report.answer.context = Some(message::cut(&both.join("\n"), SPOKEN_CHARS_MAX));
        } else {
            let before = report.answer.notice.take().filter(|it| !it.is_empty());
            let both: Vec<String> =
                before.into_iter().chain([format!("policyd: {text}")]).collect();
            report.answer.notice = Some(both.join("\n"));
        }
    }
}

/// Whether work begins at this event, so that waiting items are listed.
const fn begins(event: EventKind) -> bool {
    matches!(event, EventKind::SessionStart | EventKind::UserPromptSubmit)
}

/// One event while its reactions are looked at.
struct Scene<'a> {
    runner: &'a ReactionRunner<'a>,
    failed: Option<&'a FailureClassification>,
    /// Made where the first expression is met: most reactions have none.
    evaluator: Option<FactEvaluator>,
}

impl Scene<'_> {
    fn applies(&mut self, reaction: &Reaction) -> Result<bool, ScriptError> {
        let Some(when) = &reaction.when else { return Ok(true) };
        self.evaluator().eval_bool(when)
    }

    fn evaluator(&mut self) -> &mut FactEvaluator {
        let (runner, failed) = (self.runner, self.failed);
        self.evaluator.get_or_insert_with(|| {
            let watch = runner.context.request.watch.as_ref();
            FactEvaluator::about(record(runner, failed)).watched_by(watch)
        })
    }

    fn text(&mut self, text: &str) -> String {
        if !text.contains("${") {
            return text.to_owned();
        }
        template::render(text, self.evaluator())
    }

    /// Performs a reaction; each action is added to `did`.
    fn do_it(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
        did: &mut Vec<String>,
    ) -> Result<(), WorldError> {
        if !reaction.breaker.is_empty() {
            self.record_call(stores, reaction, did)?;
        }
        let policyd_policy::resilience::ReactionTask { id, title, approach } = &reaction.task;
        if !id.is_empty() {
            let failed = self.failed.map(|it| it.class.id.clone()).unwrap_or_default();
            let report = FailureReport {
                task: Task { id: self.text(id), title: self.text(title), ..Task::default() },
                attempt: Attempt {
                    approach: self.text(approach),
                    error_type: failed,
                    error: mask(&self.runner.failure_text()).0.into_owned(),
                    agent: self.runner.context.request.event.session_id.to_string(),
                    counts: self.failed.is_none_or(|it| it.class.attempt),
                    ..Attempt::default()
                },
                at_once: false,
            };
            let taken = stores.fail_or_defer(&report)?;
            let became = match &taken {
                Some(taken) if taken.entered.is_empty() => "failed",
                Some(_) => "dead letter",
                None => "deferred, because another process uses the task queues",
            };
            did.push(format!("task {}: {became}", report.task.id));
        }
        if !reaction.signal.name.is_empty() {
            did.push(self.emit(stores, reaction)?);
        }
        if !reaction.reason.is_empty() {
            did.push(self.ask_human(stores, reaction)?);
        }
        Ok(())
    }

    fn record_call(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
        did: &mut Vec<String>,
    ) -> Result<(), WorldError> {
        let key: String = self.text(&reaction.breaker).chars().take(KEY_CHARS_MAX).collect();
        let settings = stores.policy.breaker(&key);
        let text = self.runner.failure_text();
        let line;
        let event = if reaction.worked {
            breaker::BreakerEvent::success()
        } else {
            let class = self.failed.map(|it| &it.class);
            let named = class.and_then(|it| settings.effect_of(&it.id));
            let effect = named.or(class.map(|it| it.effect)).unwrap_or_default();
            let retry_after = self.asked_for(stores, &text, did);
            let words = text.lines().take(2).collect::<Vec<_>>().join(": ");
            line = mask(&words).0.into_owned();
            breaker::BreakerEvent::Failure(BreakerFailure {
                effect,
                retry_after,
                ..BreakerFailure::new(&line)
            })
        };
        let next = stores.breakers.record(&key, event, &settings, stores.now)?;
        // That something works is worth a line only where it did not before.
        if !reaction.worked || next.recovered_at == Some(stores.now) {
            did.push(format!("breaker {key}: {}", next.phase.as_str()));
        }
        Ok(())
    }

    /// The wait that the words of a failure ask for.
    fn asked_for(
        &self,
        stores: &Stores<'_>,
        text: &str,
        did: &mut Vec<String>,
    ) -> Option<Duration> {
        let (waits, now) = (&stores.policy.failures.waits, stores.now);
        waits.retry_after(text, now).or_else(|| {
            WallClock::until_reset(stores.world, now, waits, text, |it| did.push(it.to_owned()))
        })
    }

    fn emit(&mut self, stores: &Stores<'_>, reaction: &Reaction) -> Result<String, WorldError> {
        let policyd_policy::resilience::ReactionSignal { name, fields } = &reaction.signal;
        let fields = fields
            .iter()
            .map(|(key, text)| (key.clone(), Value::from(mask(&self.text(text)).0.into_owned())));
        let draft = Draft {
            name: name.clone(),
            fields: fields.collect(),
            sender: self.runner.context.request.event.session_id.to_string(),
            ..Draft::default()
        };
        let emitted = stores.emit(&draft)?;
        Ok(format!("signal {} {}", emitted.signal.name, emitted.signal.id))
    }

    fn ask_human(
        &mut self,
        stores: &Stores<'_>,
        reaction: &Reaction,
    ) -> Result<String, WorldError> {
        let reason = message::cut(&mask(&self.text(&reaction.reason)).0, EVIDENCE_CHARS_MAX);
        let question = Escalation {
            title: reaction.id.clone(),
            trigger: reaction.id.clone(),
            reason: reason.clone(),
            severity: reaction.severity.clone(),
            ..Escalation::default()
        };
        let known = EscalationDetails {
            summary: &reason,
            options: &reaction.options,
            ..EscalationDetails::default()
        };
        let opened = stores.open(EscalationSubject::Task(&reaction.id), question, known)?;
        stores.remind();
        Ok(format!("escalation {}", opened.id))
    }
}

/// The event as reactions see it.
fn record(runner: &ReactionRunner<'_>, failed: Option<&FailureClassification>) -> FactRecord {
    let event = &runner.context.request.event;
    let or = |it: &Option<String>| it.clone().unwrap_or_default();
    let error = event.failed.as_ref().map(|it| it.error.clone()).unwrap_or_default();
    let class = failed.map(|it| it.class.id.clone()).unwrap_or_default();
    let model = runner.model();
    let tier = runner.context.policy.tier_of(&model).map(|it| it.name.clone()).unwrap_or_default();
    let texts = [
        ("model", model),
        ("tier", tier),
        ("kind", event.kind.name().to_owned()),
        ("session", event.session_id.to_string()),
        ("prompt_id", or(&event.prompt_id)),
        ("agent", or(&event.agent_id)),
        ("source", or(&event.source)),
        ("prompt", or(&event.prompt)),
        ("tool", or(&event.tool_name)),
        ("error", error),
        ("text", runner.failure_text()),
        ("class", class),
    ];
    let flags = [
        ("failed", event.failed.is_some()),
        ("interrupted", event.failed.as_ref().is_some_and(|it| it.interrupted)),
        ("permanent", failed.is_some_and(FailureClassification::is_permanent)),
        ("human", failed.is_some_and(|it| it.class.human)),
        ("counts", failed.is_some_and(|it| it.class.attempt)),
    ];
    let mut record = FactRecord::new(records::shape(&records::EVENT));
    texts.iter().for_each(|(name, value)| record.set(name, value.as_str()));
    flags.into_iter().for_each(|(name, value)| record.set(name, value));
    record
}
