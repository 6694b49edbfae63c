//! Effects of signals on tasks: a requested review holds its task, an answer resumes the task, and a missing answer
//! dead-letters the task.

use serde_json::{Map, Value, json};

use super::{FailureReport, Stores};
use policyd_evaluation::escalation::EscalationDetails;
use policyd_evaluation::signals::{self as rules, DriftAnswer, SignalInfo};
use policyd_policy::signals::SignalStorage;
use policyd_record::mask::{mask, mask_json};
use policyd_state::dead_letter::{Attempt, Task, TaskEvent};
use policyd_state::escalation::Escalation;
use policyd_store::escalations::EscalationSubject;
use policyd_store::signals::{AppendedDrift, Draft, FollowUpResult, SignalFollowUp, StoredSignal};
use policyd_world::WorldError;

/// Result of creating a signal.
#[derive(Debug, Clone)]
pub struct SignalCreation<'a> {
    /// The signal.
    pub signal: StoredSignal,
    /// What follows from it, where it is a drift.
    pub drift: Option<DriftAnswer<'a>>,
    /// Signals that were created because of it.
    pub more: Vec<StoredSignal>,
    /// What could not be done because of it.
    pub problems: Vec<String>,
}

/// What follows from a drift.
struct DriftEffects<'a> {
    /// The answer of the rules.
    answer: DriftAnswer<'a>,
    /// Signals that were created because of it.
    more: Vec<StoredSignal>,
    /// What could not be done because of it.
    problems: Vec<String>,
}

/// Numbers of drifts, the new one included.
#[derive(Clone, Copy)]
struct DriftCounts {
    /// Those of its task.
    in_task: usize,
    /// All of them.
    total: usize,
}

impl<'a> Stores<'a> {
    /// Creates a signal, and does what follows from it.
    pub fn emit(&self, draft: &Draft) -> Result<SignalCreation<'a>, WorldError> {
        let signal = self.signals.emit(draft, self.now)?;
        let kind = self.policy.signals.kind(&draft.name);
        let mut emitted =
            SignalCreation { signal, drift: None, more: Vec::new(), problems: Vec::new() };
        if kind.is_some_and(|it| it.form == SignalStorage::Log) {
            let drifts = self.signals.drifts(self.now);
            let task = draft.fields.get("task_id");
            let in_task = drifts.iter().filter(|it| it.get("task_id") == task).count();
            let counts = DriftCounts { in_task, total: drifts.len() };
            let effects = self.drifted(draft, counts)?;
            emitted.drift = Some(effects.answer);
            emitted.more = effects.more;
            emitted.problems = effects.problems;
        } else {
            emitted.problems = self.hold_for(draft, &emitted.signal.id);
        }
        Ok(emitted)
    }

    /// Stops the task of a signal that a human must answer first, where it has one; what went wrong.
    pub(super) fn hold_for(&self, draft: &Draft, id: &str) -> Vec<String> {
        let kind = self.policy.signals.kind(&draft.name);
        let asks = kind.is_some_and(|it| it.awaits_human(&self.policy.signals))
            && draft.fields.get("blocking").and_then(Value::as_bool) != Some(false);
        if asks { self.hold(draft, id).into_iter().collect() } else { Vec::new() }
    }

    /// Applies the rules about drifts to a new drift.
    fn drifted(&self, draft: &Draft, counts: DriftCounts) -> Result<DriftEffects<'a>, WorldError> {
        let task = draft.fields.get("task_id");
        let drift = rules::drift(&draft.fields, counts.in_task, counts.total);
        let answer = rules::answer(&self.policy.signals, drift, self.watch.as_ref());
        let (mut more, mut problems) = (Vec::new(), Vec::new());
        let Some(rule) = answer.rule else {
            return Ok(DriftEffects { answer, more, problems });
        };
        for name in &rule.emit {
            let mut fields = Map::new();
            let kind = self.policy.signals.kind(name);
            let takes = |key: &str| kind.is_some_and(|it| it.has_field(key));
            if takes("reason") {
                fields.insert("reason".to_owned(), answer.message.as_str().into());
            }
            if let Some(task) = task.filter(|_| takes("task_id")) {
                fields.insert("task_id".to_owned(), task.clone());
            }
            let draft = Draft { name: name.clone(), fields, ..Draft::default() };
            more.extend(self.signals.emit_once(&draft, self.now)?);
        }
        if rule.pause_task || rule.escalate {
            let reason = mask(&answer.message).0.into_owned();
            let about = task.and_then(Value::as_str).unwrap_or_default();
            let severity = draft.fields.get("severity").and_then(Value::as_str);
            let severity = severity.unwrap_or(if rule.pause_task { "high" } else { "medium" });
            match self.ask("drift", about, &reason, severity, rule.pause_task) {
                // The task waits for this escalation, which a human can answer.
                Ok(asked) if rule.pause_task => problems.extend(self.hold(draft, &asked.id)),
                Ok(_) => {}
                Err(error) => problems.push(error.to_string()),
            }
        }
        Ok(DriftEffects { answer, more, problems })
    }

    /// Stops the task of a signal, where it is known.
    fn hold(&self, draft: &Draft, by: &str) -> Option<String> {
        let task = draft.fields.get("task_id").and_then(Value::as_str).unwrap_or_default();
        if task.is_empty() || !self.queues.exists_any() {
            return None;
        }
        let held = self.act(task, "blocked", TaskEvent::Blocked { by }, json!({"signal": by}));
        held.err().map(|error| format!("task `{task}` could not be stopped: {error}"))
    }

    /// Asks a human about a task, or about none.
    fn ask(
        &self,
        trigger: &str,
        task_id: &str,
        reason: &str,
        severity: &str,
        blocking: bool,
    ) -> Result<Escalation, WorldError> {
        let lists = self.queues.peek();
        let task = lists.find(task_id);
        let title = task.map(|it| it.title.clone()).filter(|it| !it.is_empty());
        let subject = if task_id.is_empty() { trigger } else { task_id };
        let question = Escalation {
            task_id: task_id.to_owned(),
            title: title.unwrap_or_else(|| subject.to_owned()),
            trigger: trigger.to_owned(),
            reason: reason.to_owned(),
            severity: severity.to_owned(),
            blocking,
            ..Escalation::default()
        };
        let known = EscalationDetails { task, summary: reason, ..EscalationDetails::default() };
        let opened = self.open(EscalationSubject::Task(subject), question, known)?;
        self.remind();
        Ok(opened)
    }

    /// Does what is due to signals: approvals, timeouts, unusable files.
    pub fn process_signals(
        &self,
        deeds: &mut Vec<SignalFollowUp>,
    ) -> Result<FollowUpResult, WorldError> {
        self.signals.process(self.now, &mut |deed| {
            let message = self.do_deed(deed)?;
            deeds.push(match deed {
                SignalFollowUp::Drift { drift, .. } => {
                    SignalFollowUp::Drift { drift: drift.clone(), message }
                }
                SignalFollowUp::Unblock { .. }
                | SignalFollowUp::DeadLetter { .. }
                | SignalFollowUp::Alert { .. } => deed.clone(),
            });
            Ok(())
        })
    }

    /// Does what follows from a drift that another program appended to the log. Returns the text for the agent.
    fn follow_drift(&self, drift: &AppendedDrift) -> Result<String, WorldError> {
        let size = |it: u32| usize::try_from(it).unwrap_or(usize::MAX);
        let counts = DriftCounts { in_task: size(drift.in_task), total: size(drift.total) };
        let mut fields = Value::Object(drift.fields.clone());
        mask_json(&mut fields);
        let fields = fields.as_object().cloned().unwrap_or_default();
        let draft = Draft { name: drift.name.clone(), fields, ..Draft::default() };
        let effects = self.drifted(&draft, counts)?;
        match effects.problems.into_iter().next() {
            Some(problem) => Err(WorldError::Io(problem)),
            None => Ok(effects.answer.message),
        }
    }

    /// Lets the task of a request go on, or gives it up, as a human answered.
    pub fn answered(&self, request: &StoredSignal, approved: bool) -> Option<String> {
        let task = request.text("task_id");
        if task.is_empty() || !self.queues.exists_any() {
            return None;
        }
        let event = if approved {
            TaskEvent::Answered { by: &request.id }
        } else {
            TaskEvent::GivenUp { reason: "human" }
        };
        let done =
            self.act(task, "answered", event, json!({"request": request.id, "approved": approved}));
        done.err().map(|error| format!("task `{task}` could not go on: {error}"))
    }

    /// Does a follow-up. Returns the text for the agent, if there is one.
    fn do_deed(&self, deed: &SignalFollowUp) -> Result<String, WorldError> {
        match deed {
            SignalFollowUp::Unblock { request, approval } => {
                let task = request.text("task_id");
                let details = json!({"request": request.id, "decision": approval.text("decision")});
                let event = TaskEvent::Answered { by: &request.id };
                if !task.is_empty() && self.queues.exists_any() {
                    self.act(task, "answered", event, details)?;
                }
            }
            SignalFollowUp::DeadLetter { request } => {
                let task = request.text("task_id");
                let lists = self.queues.peek();
                let waits = lists
                    .find(task)
                    .is_none_or(|it| it.waits_for.is_empty() || it.waits_for == request.id);
                if task.is_empty() || !waits {
                    return Ok(String::new()); // It waits for something else.
                }
                let report = FailureReport {
                    task: Task { id: task.to_owned(), ..Task::default() },
                    attempt: Attempt {
                        error_type: "no_answer".to_owned(),
                        error: format!(
                            "{} was not answered: {}",
                            request.name,
                            request.text("reason")
                        ),
                        agent: request.sender.clone(),
                        key: request.id.clone(),
                        ..Attempt::default()
                    },
                    at_once: true,
                };
                self.fail(&report)?;
            }
            SignalFollowUp::Alert { request } => {
                let reason = format!(
                    "{} has waited too long for an answer: {} {}",
                    request.name,
                    request.text("reason"),
                    request.text("context")
                );
                let severity = request.text("severity");
                let severity = if severity.is_empty() { "high" } else { severity };
                let task = request.text("task_id");
                let reason = mask(reason.trim()).0.into_owned();
                self.ask("no_answer", task, &reason, severity, false)?;
            }
            SignalFollowUp::Drift { drift, .. } => return self.follow_drift(drift),
        }
        Ok(String::new())
    }

    /// Returns the messages about pending signals that the agent receives.
    pub fn signal_texts(&self) -> Vec<String> {
        let view = self.signals.view(self.now);
        let mut said = Vec::new();
        for it in view.signals.iter().filter(|it| it.signal.is_pending(self.now)) {
            let Some(kind) = self.policy.signals.kind(&it.name) else { continue };
            let age = self.now.since(it.signal.created).as_secs() / 3600;
            let about = SignalInfo {
                id: &it.id,
                name: &it.name,
                sender: &it.sender,
                request: &it.request,
                note: &it.note,
                age_hours: i64::try_from(age).unwrap_or(i64::MAX),
            };
            let text = rules::format_signal(kind, about, &it.fields);
            if !text.is_empty() {
                said.push(text);
            }
        }
        said
    }
}
