//! What the forms of the dashboard do. The human who started the dashboard confirmed at the terminal that it answers in
//! their name, so nothing is asked again here. The server already checked session, origin, and form token.

use std::collections::BTreeMap;

use serde_json::json;

use super::case_draft;
use super::pages::{OpenProject, PageError, Pages};
use super::{Reply, pages};
use crate::app::sharing::{self, COMMAND};
use crate::app::tasks::{AnswerOutcome, StoreLocation, Stores};
use crate::app::workspace::human::Actor;
use crate::app::workspace::project;
use crate::limits::COMMAND_LOCK_WAIT;
use crate::report::mask::mask;
use crate::state::approval::ApprovalEffect;
use crate::state::breaker::BreakerEvent;
use crate::state::dead_letter::TaskEvent;
use crate::state::signal::End;
use crate::store::shared::{AnswerResult, SharedStore};
use crate::store::signals::SignalOutcome;
use crate::world::WorldError;

type FormFields = BTreeMap<String, String>;

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
pub(super) fn act(pages: &Pages<'_>, path: &str, form: &FormFields) -> Result<Reply, PageError> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let actor = pages.actor.ok_or_else(|| refused("This dashboard is read-only."))?;
    let project = field("project");
    let back = match path {
        "/answer" | "/task" => "/waiting",
        "/breaker" => "/breakers",
        "/wrong" => {
            let (id, rule, note) = (field("id"), field("rule"), field("note"));
            return case_draft::write(pages, project, id, rule, note).map(Reply::Page);
        }
        _ => return Err(PageError::NoPage),
    };
    let open = pages.open(project)?;
    let action = FormAction { pages, open: &open, actor, form };
    action.on_current_copy(|stores| match path {
        "/answer" => action.answer(stores),
        "/task" => action.move_task(stores),
        _ => action.reset_breaker(stores),
    })?;
    Ok(Reply::SeeOther(back.to_owned()))
}

struct FormAction<'a> {
    pages: &'a Pages<'a>,
    open: &'a OpenProject,
    actor: &'a Actor,
    form: &'a FormFields,
}

impl FormAction<'_> {
    fn field(&self, name: &str) -> &str {
        self.form.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Runs a change on the stores of the project, between two synchronizations with a shared store, as commands do.
    fn on_current_copy(
        &self,
        change: impl FnOnce(&Stores<'_>) -> Result<(), PageError>,
    ) -> Result<(), PageError> {
        let OpenProject { project, policy } = self.open;
        let fenced = project::fenced(self.pages.world, project);
        let world = fenced.as_ref().map_or(self.pages.world, |it| it as &dyn crate::world::World);
        let by_pack = project::fenced_by_pack(world, project, &policy.settings);
        let world = by_pack.as_ref().map_or(world, |it| it as &dyn crate::world::World);
        let (sessions, state_dir) = project::sessions(world, project, &policy.settings);
        let durability = sessions.durability.clone();
        let location = StoreLocation {
            state_dir: &state_dir,
            durability: &durability,
            lock_wait: COMMAND_LOCK_WAIT,
        };
        // If the server cannot be reached, the local copy is used until then, as by commands.
        let _unreachable = sharing::sync(world, &state_dir, &durability, COMMAND);
        let done = change(&Stores::new(world, policy, location));
        if sharing::has_waiting(world, &state_dir) {
            let _unreachable = sharing::sync(world, &state_dir, &durability, COMMAND);
        }
        done
    }

    fn answer(&self, stores: &Stores<'_>) -> Result<(), PageError> {
        let id = self.field("id");
        let approved = match self.field("verdict") {
            "approve" => true,
            "reject" => false,
            _ => return Err(refused("Choose to approve or to reject.")),
        };
        let decision = mask(self.field("decision")).0.into_owned();
        match self.field("kind") {
            "escalation" => {
                let all = stores.escalations.all();
                let found = all.iter().find(|it| it.id == id);
                let found =
                    found.ok_or_else(|| refused("The question does not exist any more."))?;
                let by = self.actor.user();
                match stores.answer(found, approved, &decision, by) {
                    Ok(AnswerOutcome::Moved(_)) => Ok(()),
                    Ok(AnswerOutcome::AlreadyResolved) => {
                        Err(refused("The question was answered already; the first answer stays."))
                    }
                    Err(error) => Err(not_saved(&error.source)),
                }
            }
            "signal" => self.answer_signal(stores, id, approved, &decision),
            "call" => self.answer_call(stores, id, approved),
            _ => Err(refused("The kind of the question is unknown.")),
        }
    }

    /// Answers a tool call that was blocked on any host of the shared store.
    fn answer_call(&self, stores: &Stores<'_>, id: &str, allowed: bool) -> Result<(), PageError> {
        let durability = stores.breakers.durability();
        let found = SharedStore::find(self.pages.world, &stores.own, durability);
        let store = found.map_err(|error| refused(error.to_string()))?;
        let store = store.ok_or_else(|| refused("No shared store is configured any more."))?;
        match store.answer(id, allowed, self.actor.user(), COMMAND) {
            Ok(AnswerResult::Sent(ApprovalEffect::Noted) | AnswerResult::Queued) => Ok(()),
            Ok(AnswerResult::Sent(ApprovalEffect::AlreadyAnswered)) => {
                Err(refused("The call was answered already; the first answer stays."))
            }
            Ok(AnswerResult::Sent(
                ApprovalEffect::Opened
                | ApprovalEffect::Nothing
                | ApprovalEffect::Unknown
                | ApprovalEffect::Expired,
            )) => Err(refused("The call does not wait any more.")),
            Err(error) => Err(refused(format!("Nothing was answered: {error}"))),
        }
    }

    fn answer_signal(
        &self,
        stores: &Stores<'_>,
        id: &str,
        approved: bool,
        decision: &str,
    ) -> Result<(), PageError> {
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
                Err(refused("The request does not wait any more."))
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
        match stores.act(id, what, event, details) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(refused("The task does not exist any more.")),
            Err(error) => Err(not_saved(&error)),
        }
    }

    fn reset_breaker(&self, stores: &Stores<'_>) -> Result<(), PageError> {
        let key = self.field("key");
        if !stores.breakers.knows(key) {
            return Err(refused("The breaker does not exist any more."));
        }
        let settings = self.open.policy.breaker(key);
        let done = stores.breakers.record(key, BreakerEvent::Reset, &settings, stores.now);
        done.map(|_| ()).map_err(|error| not_saved(&error))
    }
}

/// Returns the page that shows the result of an action.
pub(super) fn result_page(title: &str, body: &maud::Markup) -> String {
    pages::layout::result(title, body)
}
