//! Questions and dead letters of all projects, with the forms that answer them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::answer_kind::AnswerKind;
use super::super::page_context::PageContext;
use super::layout::{self, PageSection, address, badge, form_token, moment};
use super::view::PageView;
use crate::blocked_calls;
use crate::shared_items::{SharedCall, SharedItems};
use crate::tasks::incidents::Incident;
use crate::tasks::{StoreLocation, Stores};
use policyd_evaluation::call_code;
use policyd_report::dead_letter;
use policyd_report::html::table;
use policyd_report::overview::{ProjectRow, WaitingItem, WaitingKind};
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_state::escalation::Escalation;
use policyd_store::file::Durability;
use policyd_store::shared::{NamedRequest, NamedSignal};
use policyd_store::signals::StoredSignal;

/// Questions and dead letters of one page.
const ROWS: usize = 60;
/// Characters of the document of a question.
const DOCUMENT_CHARS: usize = 2_000;

/// Title of what is answered in a terminal.
const OTHERS_TITLE: &str = "Blocked calls, runs, and breakers";
/// Columns of what is answered in a terminal.
const OTHERS: [&str; 4] = ["Project", "What", "Why", "Command in the project"];

/// What waits in one project.
struct WaitingItems {
    escalations: Vec<(Escalation, String)>,
    signals: Vec<StoredSignal>,
    tasks: Vec<Task>,
}

impl WaitingItems {
    /// Returns the ids of what can be answered.
    fn ids(&self) -> BTreeSet<String> {
        let escalations = self.escalations.iter().map(|(it, _)| it.id.clone());
        escalations.chain(self.signals.iter().map(|it| it.id.clone())).collect()
    }
}

/// Questions on the first page.
const FIRST: usize = 3;
/// Rows on the first page of what is answered in a terminal.
const FIRST_OTHERS: usize = 5;
/// Field of the address after an answer.
const RECORDED: &str = "recorded";

/// Returns the page of what waits for a human, questions first.
pub(super) fn page(context: &PageContext<'_>, view: &PageView<'_>) -> String {
    let wanted = view.field("project");
    let rows = view.snapshot.rows.iter();
    let rows: Vec<&ProjectRow> =
        rows.filter(|it| wanted.is_none_or(|wanted| it.directory == wanted)).collect();
    let others = others(context, &rows);
    let mut left = ROWS;
    let mut parts: Vec<Markup> = Vec::new();
    for row in rows.iter().filter(|it| it.questions().next().is_some() || it.dead_letters > 0) {
        if left == 0 {
            break;
        }
        let Some(waiting) = waiting(context, &row.directory) else { continue };
        parts.push(project(view, &row.directory, &waiting, &mut left));
    }
    let projects = view.snapshot.state_dirs.iter();
    let projects = projects.map(|(directory, state)| (PathBuf::from(directory), state.clone()));
    let SharedItems { calls, signals, problems } = SharedItems::of(context.world, projects);
    let unread = rows.iter().filter(|it| it.is_unread);
    let unread = unread.flat_map(|row| row.problems.iter().map(|it| (row.directory.as_str(), it)));
    let unread: Vec<(&str, &String)> = unread.chain(problems.iter().map(|it| ("", it))).collect();
    let body = html! {
        form.filter method="get" action="/waiting" { (layout::project_menu(view)) button { "Show" } }
        @if view.field(RECORDED).is_some() { p.notice role="status" { "Your answer is recorded." } }
        @for (directory, problem) in &unread { p.problem { (directory) " " (problem) } }
        @if unread.is_empty() && parts.is_empty() && others.is_empty() && calls.is_empty() && signals.is_empty() { (layout::nothing(view, "Nothing waits for you.")) }
        @if !calls.is_empty() { section { h2 { "Blocked calls of all hosts" } @for it in &calls { (blocked_call(view, it)) } } }
        @if !signals.is_empty() { section { h2 { "Signals of other hosts" } @for (directory, it) in &signals { (remote_signal(view, directory, it)) } } }
        @for part in &parts { (part) }
        @if !others.is_empty() {
            section { h2 { (OTHERS_TITLE) } (others_table(&others)) }
        }
        @if left == 0 || others.len() == ROWS { p { "More items wait. Choose a project to see them." } }
    };
    layout::page(view, PageSection::Waiting, "Waiting", &body)
}

/// Returns the first questions of all projects with their forms, for the first page.
pub(super) fn first_questions(context: &PageContext<'_>, view: &PageView<'_>) -> Markup {
    let rows = &view.snapshot.rows;
    let mut count: usize = rows.iter().map(|it| it.waiting_items().len()).sum();
    let mut first: Vec<(&str, WaitingItem)> = Vec::new();
    for row in rows.iter().filter(|it| it.questions().next().is_some()) {
        if first.len() >= FIRST {
            break;
        }
        // The snapshot can be older than an answer.
        let open = waiting(context, &row.directory).map_or_else(BTreeSet::new, |it| it.ids());
        let (open, closed): (Vec<_>, Vec<_>) =
            row.questions().cloned().partition(|it| open.contains(&it.id));
        count = count.saturating_sub(closed.len());
        first.extend(open.into_iter().map(|it| (row.directory.as_str(), it)));
    }
    let all: Vec<&ProjectRow> = rows.iter().collect();
    let mut others = others(context, &all);
    let calls = others.iter().filter(|(_, it)| it.kind == WaitingKind::LocalCall).count();
    count = count.saturating_add(calls);
    others.truncate(FIRST_OTHERS);
    html! {
        @if view.field(RECORDED).is_some() { p.notice role="status" { "Your answer is recorded." } }
        @if count > 0 {
            section {
                h2 { "Waiting for you" }
                @for (directory, it) in first.iter().take(FIRST) {
                    article {
                        h3 { (view.name(directory)) " " (badge(it.kind.name(), "look")) }
                        p { (it.text) }
                        (answer_form(view, directory, AnswerKind::of(it.kind), &it.id, "/"))
                    }
                }
                @if !others.is_empty() { (others_table(&others)) }
                p { a href="/waiting" { "Everything that waits: " (count) } }
            }
        }
    }
}

/// Returns the table of what is answered in a terminal.
fn others_table(others: &[(&str, WaitingItem)]) -> Markup {
    let rows = html! {
        @for (directory, it) in others {
            tr { th scope="row" { (directory) } td { (it.kind.name()) } td { (it.text) } td { code { (it.command) } } }
        }
    };
    table(OTHERS_TITLE, &OTHERS, &rows)
}

/// Returns what waits and is answered in a terminal, with the directory of its project.
fn others<'r>(context: &PageContext<'_>, rows: &[&'r ProjectRow]) -> Vec<(&'r str, WaitingItem)> {
    let is_other = |it: &WaitingItem| {
        matches!(it.kind, WaitingKind::Run | WaitingKind::UnverifiedRun | WaitingKind::Breaker)
    };
    let items = rows.iter().flat_map(|row| {
        let calls = context.open(&row.directory).ok().filter(|_| row.blocked_calls > 0);
        let calls = calls.map(|it| blocked_calls::items(context.world, &it)).unwrap_or_default();
        let items = calls.into_iter().chain(row.waiting_items().into_iter().filter(is_other));
        items.map(|it| (row.directory.as_str(), it))
    });
    items.take(ROWS).collect()
}

fn blocked_call(view: &PageView<'_>, shared: &SharedCall) -> Markup {
    let SharedCall { directory, named: NamedRequest { id, request }, is_queued } = shared;
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
            p.hint { "Code " (call_code::code(&call.digest)) ", asked " (moment(request.asked, view.now)) " ago. An approval allows exactly this call, once." }
            @if *is_queued {
                p { "Your answer is queued: the shared store cannot be reached. policyd sends it as soon as it can." }
            } @else {
                (answer_form(view, &directory.to_string_lossy(), AnswerKind::Call, id, "/waiting"))
            }
        }
    }
}

fn remote_signal(view: &PageView<'_>, directory: &Path, named: &NamedSignal) -> Markup {
    let NamedSignal { document, signal: it } = named;
    html! {
        article {
            h3 { (it.signal) " " (badge("signal", "look")) }
            dl.facts {
                dt { "Host" } dd { (it.host) }
                dt { "Project" } dd { (it.project) }
                @for (key, value) in signal_fields(&it.fields) { dt { (key) } dd { (value) } }
            }
            p.hint { "Signal " (it.id) @if !it.sender.is_empty() { ", from " (it.sender) } ", sent " (moment(it.created, view.now)) " ago" }
            (answer_form(view, &directory.to_string_lossy(), AnswerKind::RemoteSignal, document, "/waiting"))
        }
    }
}

/// Returns the fields of a signal as names and texts.
fn signal_fields(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    fields.iter().map(|(key, value)| (key.replace('_', " "), text(value))).collect()
}

fn waiting(context: &PageContext<'_>, directory: &str) -> Option<WaitingItems> {
    let open = context.open(directory).ok()?;
    let (state_dir, durability) = (open.state_dir(context.world), Durability::default());
    let location =
        StoreLocation { state_dir: &state_dir, durability: &durability, lock_wait: Duration::ZERO };
    let stores = Stores::new(context.world, &open.policy, location);
    // The row of the project tells what cannot be read.
    let escalations =
        stores.escalations.all().unwrap_or_default().into_iter().filter(|it| it.closed.is_none());
    let escalations = escalations.map(|it| {
        let text = stores.escalations.text(&it.id);
        (it, policyd_evaluation::message::cut(&text, DOCUMENT_CHARS))
    });
    let escalations: Vec<(Escalation, String)> = escalations.take(ROWS).collect();
    let view = stores.signals.view(stores.now);
    let signals =
        view.awaiting_human(&open.policy.signals, stores.now).take(ROWS).cloned().collect();
    let lists = stores.queues.peek();
    // The answer to a question also moves its task.
    let asked = escalations.iter().flat_map(|it| Incident::of_question(&it.0, &lists, &[]).tasks);
    let asked: BTreeSet<String> = asked.collect();
    let tasks = lists.on(TaskQueue::DeadLetter).filter(|it| !asked.contains(&it.id));
    let tasks = tasks.take(ROWS).cloned().collect();
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

/// Returns the form with which a human answers yes or no, and then sees a page again.
fn answer_form(
    view: &PageView<'_>,
    directory: &str,
    kind: AnswerKind,
    id: &str,
    page: &str,
) -> Markup {
    html! {
        @if !view.is_read_only {
            form.answer method="post" action="/answer" {
                (form_token(view))
                input type="hidden" name="project" value=(directory);
                input type="hidden" name="kind" value=(kind.as_str());
                input type="hidden" name="id" value=(id);
                input type="hidden" name="page" value=(page);
                @if kind.has_text() {
                    label { "Your decision " input name="decision" maxlength="2000" autocomplete="off"; }
                }
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
            (answer_form(view, directory, AnswerKind::Escalation, &it.id, "/waiting"))
        }
    }
}

fn signal(view: &PageView<'_>, directory: &str, it: &StoredSignal) -> Markup {
    html! {
        article {
            h3 { (it.name) " " (badge("signal", "look")) }
            dl.facts { @for (key, value) in signal_fields(&it.fields) { dt { (key) } dd { (value) } } }
            p.hint { "Signal " (it.id) @if !it.sender.is_empty() { ", from " (it.sender) } }
            (answer_form(view, directory, AnswerKind::Signal, &it.id, "/waiting"))
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
                    button name="action" value="resolve" { "Resolve" }
                    button.no name="action" value="abandon" { "Abandon" }
                }
            }
        }
    }
}
