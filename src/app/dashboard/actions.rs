//! What the forms of the dashboard do. The human who started the dashboard confirmed at the terminal that it answers in
//! their name, so nothing is asked again here. The server already checked session, origin, and form token.

use std::cell::Cell;
use std::collections::BTreeMap;

use maud::html;
use serde_json::json;

use super::answer_kind::AnswerKind;
use super::case_draft;
use super::page_context::PageContext;
use super::page_error::PageError;
use super::pages::layout;
use super::request::Reply;
use crate::error::AppError;
use crate::overview::OpenProject;
use crate::run_answers::{self, RunAnswer};
use crate::sharing::{self, COMMAND, SyncLimits};
use crate::tasks::incidents::Incident;
use crate::tasks::{AnswerOutcome, StoreLocation, Stores};
use crate::workspace::human::Actor;
use crate::workspace::project;
use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_record::mask::mask;
use policyd_record::notice::{LoggedAnswer, answer_entry};
use policyd_report::overview::WaitingKind;
use policyd_state::approval::ApprovalEffect;
use policyd_state::breaker::BreakerEvent;
use policyd_state::dead_letter::TaskEvent;
use policyd_state::signal::End;
use policyd_store::decision_log::log_decision;
use policyd_store::shared::{
    AnswerResult, NamedSignal, SharedSignalEnd, SharedStore, SignalResponse, SyncResult,
};
use policyd_store::signals::SignalOutcome;
use policyd_world::{World, WorldError};

pub(super) type FormFields = BTreeMap<String, String>;

fn refused(why: impl Into<String>) -> PageError {
    PageError::Refused(why.into())
}

fn not_saved(error: &WorldError) -> PageError {
    PageError::Refused(format!("Nothing was changed: {error}"))
}

/// Does what a form asks for, and returns the page that the browser loads then.
///
/// # Errors
/// Why nothing was changed.
pub(super) fn act(
    context: &PageContext<'_>,
    path: &str,
    form: &FormFields,
) -> Result<Reply, PageError> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let actor = context.actor.ok_or_else(|| refused("This dashboard is read-only."))?;
    let project = field("project");
    let back = match path {
        "/answer" if field("page") == "/" => "/?recorded=1",
        "/answer" | "/task" => "/waiting?recorded=1",
        "/breaker" => "/breakers",
        "/wrong" => {
            let (id, rule, note) = (field("id"), field("rule"), field("note"));
            return case_draft::write(context, project, id, rule, note).map(Reply::Page);
        }
        _ => return Err(PageError::NoPage),
    };
    Ok(match change(context, path, actor, form)? {
        None => Reply::SeeOther(back.to_owned()),
        Some(why) => Reply::Page(queued_page(&why, back)),
    })
}

/// Makes the change that a form asks for. Returns why the shared store does not have it yet; `None` if it has, or without
/// a shared store.
///
/// # Errors
/// Why nothing was changed.
pub(super) fn change(
    context: &PageContext<'_>,
    path: &str,
    actor: &Actor,
    form: &FormFields,
) -> Result<Option<String>, PageError> {
    let open = context.open(form.get("project").map(String::as_str).unwrap_or_default())?;
    open.fenced(context.world, |world| {
        let left = Cell::new(COMMAND.wait);
        let limits = COMMAND.within(&left);
        let action = FormAction { world, open: &open, actor, form, limits };
        let done = action.on_current_copy(|stores| match path {
            "/answer" => action.answer(stores),
            "/task" => action.move_task(stores),
            _ => action.reset_breaker(stores),
        })?;
        action.log(path);
        Ok(done)
    })
}

/// The item of the inbox that is answered.
pub struct AnsweredItem<'a> {
    pub open: OpenProject,
    pub kind: WaitingKind,
    pub id: &'a str,
}

/// An answer to an item of the inbox.
#[derive(Debug, Clone, Copy)]
pub struct ItemAnswer<'a> {
    /// Whether the answer is yes.
    pub approved: bool,
    /// What the human adds.
    pub text: &'a str,
}

/// Answers an item of the inbox, as a form of the dashboard does. Returns why the shared store does not have the answer yet.
///
/// # Errors
/// Nothing was changed.
pub fn answer(
    world: &dyn World,
    item: AnsweredItem<'_>,
    answer: ItemAnswer<'_>,
    actor: &Actor,
) -> Result<Option<String>, AppError> {
    let AnsweredItem { open, kind, id } = item;
    let verdict = if answer.approved { "approve" } else { "reject" };
    let action = if answer.approved { "retry" } else { "abandon" };
    let fields = [
        ("id", id),
        ("key", id),
        ("kind", AnswerKind::of(kind).as_str()),
        ("verdict", verdict),
        ("decision", answer.text),
        ("action", action),
        ("reason", answer.text),
    ];
    let form: FormFields =
        fields.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let done = open.fenced(world, |world| {
        let left = Cell::new(COMMAND.wait);
        let limits = COMMAND.within(&left);
        let action = FormAction { world, open: &open, actor, form: &form, limits };
        action.on_current_copy(|stores| match kind {
            WaitingKind::Question
            | WaitingKind::Signal
            | WaitingKind::RemoteSignal
            | WaitingKind::Call => action.answer(stores),
            WaitingKind::LocalCall => {
                Err(refused(format!("run `policyd allow --call {id}` in the project")))
            }
            WaitingKind::DeadLetter => action.move_task(stores),
            WaitingKind::Breaker => action.reset_breaker(stores),
            WaitingKind::UnverifiedRun | WaitingKind::Run => {
                let of_human = RunAnswer { accepted: answer.approved, text: answer.text, actor };
                run_answers::answer(stores, id, of_human)
                    .map_err(|error| refused(error.to_string()))
            }
        })
    });
    done.map_err(|error| AppError::failed_as(error.to_string()))
}

/// Returns the page that says that other hosts do not see a change yet.
fn queued_page(why: &str, back: &str) -> String {
    let body = html! {
        p { "Your change is saved on this machine and queued for the shared store, which cannot be reached: " (why) "." }
        p { "policyd sends it as soon as the server can be reached. If a human on another host answers first, that answer stays." }
        p { a href=(back) { "Back" } }
    };
    layout::result("Queued", &body)
}

struct FormAction<'a> {
    world: &'a dyn World,
    open: &'a OpenProject,
    actor: &'a Actor,
    form: &'a FormFields,
    /// Limits of the shared store for the whole action.
    limits: SyncLimits<'a>,
}

impl FormAction<'_> {
    fn field(&self, name: &str) -> &str {
        self.form.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Logs an answer in the project, with the human who gave it.
    fn log(&self, path: &str) {
        let (verb, kind, id, text) = match path {
            "/answer" => ("verdict", self.field("kind"), "id", "decision"),
            "/task" => ("action", WaitingKind::DeadLetter.name(), "id", "reason"),
            _ => ("", WaitingKind::Breaker.name(), "key", ""),
        };
        let verb = if verb.is_empty() { "reset" } else { self.field(verb) };
        let item = LoggedAnswer { verb, kind, id: self.field(id), texts: &[self.field(text)] };
        let entry = answer_entry(self.world.now(), &item, self.actor.text());
        // The answer itself stands.
        let _unlogged = log_decision(self.world, &self.open.project.state, entry);
    }

    /// Runs a change on the stores of the project, between two synchronizations with a shared store, as commands do.
    /// Returns why the shared store does not have the change yet; `None` if it has, or without a shared store.
    fn on_current_copy(
        &self,
        change: impl FnOnce(&Stores<'_>) -> Result<(), PageError>,
    ) -> Result<Option<String>, PageError> {
        let (world, OpenProject { project, policy }) = (self.world, self.open);
        let (sessions, state_dir) = project::sessions(world, project, &policy.settings);
        let durability = sessions.durability.clone();
        let location = StoreLocation {
            state_dir: &state_dir,
            durability: &durability,
            lock_wait: COMMAND_LOCK_WAIT,
        };
        // If the server cannot be reached, the local copy is used until then, as by commands.
        let _unreachable = sharing::sync(world, &state_dir, &durability, self.limits);
        let done = change(&Stores::new(world, policy, location));
        let is_waiting = || sharing::has_waiting(world, &state_dir);
        let sent = if is_waiting() {
            sharing::sync(world, &state_dir, &durability, self.limits.and_then())
        } else {
            Ok(None)
        };
        done?;
        if let Ok(Some(SyncResult { rejected, .. })) = &sent
            && !rejected.is_empty()
        {
            return Err(refused(format!(
                "The shared store refused a change: {}",
                rejected.join("; ")
            )));
        }
        Ok(match sent {
            Err(error) => Some(error.to_string()),
            Ok(_) => is_waiting().then(|| "the time for it was over".to_owned()),
        })
    }

    fn answer(&self, stores: &Stores<'_>) -> Result<(), PageError> {
        let id = self.field("id");
        let approved = match self.field("verdict") {
            "approve" => true,
            "reject" => false,
            _ => return Err(refused("Choose to approve or to reject.")),
        };
        let decision = mask(self.field("decision")).0.into_owned();
        match AnswerKind::find(self.field("kind")) {
            Some(AnswerKind::Escalation) => self.answer_escalation(stores, id, approved, &decision),
            Some(AnswerKind::Signal) => self.answer_signal(stores, id, approved, &decision),
            Some(AnswerKind::RemoteSignal) => {
                self.answer_remote_signal(stores, id, approved, decision)
            }
            Some(AnswerKind::Call) => self.answer_call(stores, id, approved),
            None => Err(refused("The kind of the question is unknown.")),
        }
    }

    fn answer_escalation(
        &self,
        stores: &Stores<'_>,
        id: &str,
        approved: bool,
        decision: &str,
    ) -> Result<(), PageError> {
        let all = stores.escalations.all().map_err(|problem| refused(problem.to_string()))?;
        let found = all.iter().find(|it| it.id == id);
        let found = found.ok_or_else(|| refused("The question no longer exists."))?;
        match stores.answer(found, approved, decision, self.actor.user()) {
            Ok(AnswerOutcome::Moved { .. }) => Ok(()),
            Ok(AnswerOutcome::AlreadyResolved) => {
                Err(refused("The question was already answered. The first answer stays."))
            }
            Err(error) => Err(not_saved(&error.source)),
        }
    }

    fn shared_store<'s>(&self, stores: &'s Stores<'_>) -> Result<SharedStore<'s>, PageError> {
        let found = SharedStore::find(stores.world, &stores.own, stores.breakers.durability());
        let store = found.map_err(|error| refused(error.to_string()))?;
        store.ok_or_else(|| refused("The configuration does not name a shared store anymore."))
    }

    /// Answers a tool call that was blocked on any host of the shared store.
    fn answer_call(&self, stores: &Stores<'_>, id: &str, allowed: bool) -> Result<(), PageError> {
        let store = self.shared_store(stores)?;
        match store.answer(id, allowed, self.actor.user(), self.limits.and_then()) {
            Ok(AnswerResult::Sent(ApprovalEffect::Noted) | AnswerResult::Queued) => Ok(()),
            Ok(AnswerResult::Sent(ApprovalEffect::AlreadyAnswered)) => {
                Err(refused("The call was already answered. The first answer stays."))
            }
            Ok(AnswerResult::Sent(
                ApprovalEffect::Opened
                | ApprovalEffect::Nothing
                | ApprovalEffect::Unknown
                | ApprovalEffect::Expired,
            )) => Err(refused("The call no longer waits for an answer.")),
            Err(error) => Err(refused(format!("Nothing was answered: {error}"))),
        }
    }

    /// Answers a signal of another host; `document` is its name in the shared store.
    fn answer_remote_signal(
        &self,
        stores: &Stores<'_>,
        document: &str,
        approved: bool,
        text: String,
    ) -> Result<(), PageError> {
        let store = self.shared_store(stores)?;
        let is_asked = |it: &NamedSignal| it.signal.asks && it.document == document;
        let others = store.signals_of_others().map_err(|problem| refused(problem.to_string()))?;
        if !others.iter().any(is_asked) {
            return Err(refused("The request no longer waits for an answer."));
        }
        let end = if approved { End::Approved } else { End::Rejected };
        let (outcome, by) = (end.as_str().to_owned(), self.actor.user().to_owned());
        let end = SharedSignalEnd { outcome, by, text };
        match store.answer_signal(document, end, self.limits.and_then()) {
            Ok(SignalResponse::Changed) => Ok(()),
            Ok(SignalResponse::Refused(why)) => {
                Err(refused(format!("Nothing was answered: {why}.")))
            }
            Ok(SignalResponse::Unknown) => {
                Err(refused("The request no longer waits for an answer."))
            }
            Err(error) => Err(refused(format!(
                "Nothing was answered, because only the server decides about signals of other hosts: {error}"
            ))),
        }
    }

    fn answer_signal(
        &self,
        stores: &Stores<'_>,
        id: &str,
        approved: bool,
        decision: &str,
    ) -> Result<(), PageError> {
        // Another host may have answered first. Without its answer, this one would replace it.
        stores.signals.take_over_ends(stores.now).map_err(|error| not_saved(&error))?;
        let by = self.actor.user();
        let outcome = if approved {
            stores.signals.approve(id, by, decision, stores.now)
        } else {
            stores.signals.reject(id, by, decision, stores.now)
        };
        match outcome.map_err(|error| not_saved(&error))? {
            SignalOutcome::Ended(request, End::Approved | End::Rejected, _) => {
                stores.answered(&request, approved).map_or(Ok(()), |problem| Err(refused(problem)))
            }
            SignalOutcome::Refused(_, why) => Err(refused(why)),
            SignalOutcome::Ended(..) => Err(refused("The request expired.")),
            SignalOutcome::Nothing | SignalOutcome::Held(..) | SignalOutcome::GivenBack(_) => {
                Err(refused("The request no longer waits for an answer."))
            }
        }
    }

    fn move_task(&self, stores: &Stores<'_>) -> Result<(), PageError> {
        let id = self.field("id");
        let reason = mask(self.field("reason")).0.into_owned();
        let (what, event) = match self.field("action") {
            "retry" => ("released", TaskEvent::Released),
            "resolve" => ("resolved", TaskEvent::Resolved),
            "abandon" => ("abandoned", TaskEvent::GivenUp { reason: &reason }),
            _ => return Err(refused("Choose what happens to the task.")),
        };
        let details = json!({"by": self.actor.text(), "reason": reason});
        let is_retried = event == TaskEvent::Released;
        // What cannot be read is not reset.
        let breakers = stores.breakers.all().unwrap_or_default();
        let lists = stores.queues.peek();
        let incident = lists.find(id).map(|it| Incident::of_task(it, &breakers));
        let of_answer = stores.in_answer(&stores.answer_id(id), &[id.to_owned()]);
        // Only a human resets a breaker on a server. If it refuses that, the task does not move either.
        if let Some(incident) = incident.filter(|_| is_retried) {
            of_answer.reset_breakers(&incident).map_err(|error| not_saved(&error))?;
        }
        match of_answer.act(id, what, event, details) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(refused("The task no longer exists.")),
            Err(error) => Err(not_saved(&error)),
        }
    }

    fn reset_breaker(&self, stores: &Stores<'_>) -> Result<(), PageError> {
        let key = self.field("key");
        if !stores.breakers.knows(key).map_err(|error| not_saved(&error.into()))? {
            return Err(refused("The breaker no longer exists."));
        }
        let settings = self.open.policy.breaker(key);
        let done = stores.breakers.record(key, BreakerEvent::Reset, &settings, stores.now);
        done.map(|_| ()).map_err(|error| not_saved(&error))
    }
}
