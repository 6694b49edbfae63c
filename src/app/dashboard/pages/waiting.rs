//! Questions and dead letters of all projects, with the forms that answer them.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{Markup, html};

use super::layout::{self, PageSection, address, badge, form_token, moment};
use super::{PageView, Pages};
use crate::app::tasks::{StoreLocation, Stores};
use crate::evaluation::call_code;
use crate::report::dead_letter;
use crate::report::overview::ProjectRow;
use crate::state::approval::CallRequest;
use crate::state::dead_letter::{Task, TaskQueue};
use crate::state::escalation::Escalation;
use crate::store::file::Durability;
use crate::store::shared::settings::SharedSubject;
use crate::store::shared::{NamedRequest, SharedStore};
use crate::store::signals::StoredSignal;

/// Questions and dead letters of one page.
const ROWS: usize = 60;
/// Characters of the document of a question.
const DOCUMENT_CHARS: usize = 2_000;

/// What waits in one project.
struct WaitingItems {
    escalations: Vec<(Escalation, String)>,
    signals: Vec<StoredSignal>,
    tasks: Vec<Task>,
}

/// Returns the page of what waits for a human.
pub(super) fn page(pages: &Pages<'_>, view: &PageView<'_>) -> String {
    let wanted = view.field("project");
    let rows = view.snapshot.rows.iter();
    let rows: Vec<&ProjectRow> = rows
        .filter(|it| wanted.is_none_or(|wanted| it.directory == wanted))
        .filter(|it| !it.questions.is_empty() || it.dead_letters > 0)
        .collect();
    let mut left = ROWS;
    let mut parts: Vec<Markup> = Vec::new();
    for row in rows {
        if left == 0 {
            break;
        }
        let Some(waiting) = waiting(pages, &row.directory) else { continue };
        parts.push(project(view, &row.directory, &waiting, &mut left));
    }
    let calls = blocked_calls(pages, view);
    let body = html! {
        form.filter method="get" action="/waiting" { (layout::project_menu(view)) button { "Show" } }
        @if parts.is_empty() && calls.is_empty() { p { "Nothing waits for you." } }
        @if !calls.is_empty() { section { h2 { "Blocked calls of all hosts" } @for it in &calls { (it) } } }
        @for part in &parts { (part) }
        @if left == 0 { p { "More waits: choose a project to see it." } }
    };
    layout::page(view, PageSection::Waiting, "Waiting", &body)
}

/// Returns the blocked tool calls of all hosts of the shared store that wait for an answer.
fn blocked_calls(pages: &Pages<'_>, view: &PageView<'_>) -> Vec<Markup> {
    let mut seen = BTreeSet::new();
    let mut calls = Vec::new();
    for row in &view.snapshot.rows {
        let Ok(open) = pages.open(&row.directory) else { continue };
        let found = SharedStore::find(pages.world, &pages.state_dir(&open), &Durability::default());
        // The store is configured for all projects of the user.
        let Ok(Some(store)) = found else { break };
        if !store.settings().shares(SharedSubject::Approvals) {
            break;
        }
        let open = store.approvals().into_iter().filter(|it| it.request.is_open(view.now));
        for NamedRequest { id, request } in open {
            if calls.len() < ROWS && seen.insert(id.clone()) {
                calls.push(blocked_call(view, &row.directory, &id, &request));
            }
        }
    }
    calls
}

fn blocked_call(view: &PageView<'_>, directory: &str, id: &str, request: &CallRequest) -> Markup {
    let call = &request.call;
    html! {
        article {
            h3 { (call.tool) " " (badge("blocked call", "look")) }
            p { code { (call.input) } }
            dl.facts {
                dt { "Host" } dd { (call.host) }
                dt { "Project" } dd { (call.project) }
                dt { "Session" } dd { (call.session) }
                dt { "Rules" } dd { (call.rules.join(", ")) }
            }
            p.hint { "Code " (call_code::code(&call.digest)) ", asked " (moment(request.asked, view.now)) " ago. An approval lets exactly this call pass once." }
            (answer_form(view, directory, "call", id))
        }
    }
}

fn waiting(pages: &Pages<'_>, directory: &str) -> Option<WaitingItems> {
    let open = pages.open(directory).ok()?;
    let (state_dir, durability) = (pages.state_dir(&open), Durability::default());
    let location =
        StoreLocation { state_dir: &state_dir, durability: &durability, lock_wait: Duration::ZERO };
    let stores = Stores::new(pages.world, &open.policy, location);
    let escalations = stores.escalations.all().into_iter().filter(|it| it.closed.is_none());
    let escalations = escalations.map(|it| {
        let text = stores.escalations.text(&it.id);
        (it, crate::evaluation::message::cut(&text, DOCUMENT_CHARS))
    });
    let escalations: Vec<(Escalation, String)> = escalations.take(ROWS).collect();
    let view = stores.signals.view(stores.now);
    let signals =
        view.awaiting_human(&open.policy.signals, stores.now).take(ROWS).cloned().collect();
    let lists = stores.queues.peek();
    let tasks = lists.on(TaskQueue::DeadLetter).take(ROWS).cloned().collect();
    Some(WaitingItems { escalations, signals, tasks })
}

fn project(
    view: &PageView<'_>,
    directory: &str,
    waiting: &WaitingItems,
    left: &mut usize,
) -> Markup {
    let mut take = |wanted: usize| {
        let count = wanted.min(*left);
        *left = left.saturating_sub(count);
        count
    };
    let escalations = take(waiting.escalations.len());
    let signals = take(waiting.signals.len());
    let tasks = take(waiting.tasks.len());
    html! {
        section {
            h2 { a href=(address("/project", &[("project", directory)])) { (view.name(directory)) } }
            @for (it, text) in waiting.escalations.iter().take(escalations) { (escalation(view, directory, it, text)) }
            @for it in waiting.signals.iter().take(signals) { (signal(view, directory, it)) }
            @for it in waiting.tasks.iter().take(tasks) { (task(view, directory, it)) }
        }
    }
}

/// Returns the form with which a human answers yes or no.
fn answer_form(view: &PageView<'_>, directory: &str, kind: &str, id: &str) -> Markup {
    html! {
        @if !view.is_read_only {
            form.answer method="post" action="/answer" {
                (form_token(view))
                input type="hidden" name="project" value=(directory);
                input type="hidden" name="kind" value=(kind);
                input type="hidden" name="id" value=(id);
                label { "Your decision " input name="decision" maxlength="2000" autocomplete="off"; }
                button.yes name="verdict" value="approve" { "Approve" }
                button.no name="verdict" value="reject" { "Reject" }
            }
        }
    }
}

fn escalation(view: &PageView<'_>, directory: &str, it: &Escalation, text: &str) -> Markup {
    let tone = match it.severity.as_str() {
        "critical" | "high" => "bad",
        _ => "look",
    };
    html! {
        article {
            h3 { (it.title) " " (badge(&it.severity, tone)) @if it.blocking { " " (badge("blocks its task", "bad")) } }
            p { (it.reason) }
            p.hint { "Escalation " (it.id) ", asked " (moment(it.created, view.now)) " ago" @if !it.task_id.is_empty() { ", about the task " (it.task_id) } }
            @if !text.is_empty() { details { summary { "Document" } (layout::drawing("Document of the question", text)) } }
            (answer_form(view, directory, "escalation", &it.id))
        }
    }
}

fn signal(view: &PageView<'_>, directory: &str, it: &StoredSignal) -> Markup {
    let fields: Vec<(&String, String)> = it
        .fields
        .iter()
        .map(|(key, value)| (key, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    html! {
        article {
            h3 { (it.name) " " (badge("signal", "look")) }
            dl.facts { @for (key, value) in &fields { dt { (key.replace('_', " ")) } dd { (value) } } }
            p.hint { "Signal " (it.id) @if !it.sender.is_empty() { ", from " (it.sender) } }
            (answer_form(view, directory, "signal", &it.id))
        }
    }
}

fn task(view: &PageView<'_>, directory: &str, it: &Task) -> Markup {
    let title = if it.title.is_empty() { &it.id } else { &it.title };
    let details = dead_letter::details(it, view.now);
    html! {
        article {
            h3 { (title) " " (badge("dead letter", "look"))
                @if !it.waits_for.is_empty() { " " (badge("waits for a human", "bad")) } }
            @if !it.summary.is_empty() { p { (it.summary) } }
            details { summary { "Attempts" } (layout::drawing("Attempts", &details)) }
            @if !view.is_read_only {
                form.answer method="post" action="/task" {
                    (form_token(view))
                    input type="hidden" name="project" value=(directory);
                    input type="hidden" name="id" value=(it.id);
                    label { "Reason " input name="reason" maxlength="2000" autocomplete="off"; }
                    button name="action" value="retry" { "Requeue" }
                    button name="action" value="resolve" { "Done" }
                    button.no name="action" value="abandon" { "Abandon" }
                }
            }
        }
    }
}
