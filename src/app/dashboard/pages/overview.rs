//! The overview of all projects, and one project.

use std::time::Duration;

use maud::{Markup, html};

use super::super::page_context::PageContext;
use super::super::page_error::PageError;
use super::decision_plot::decision_plot;
use super::layout::{self, PageSection, address, badge, moment, tone};
use super::view::PageView;
use policyd_index::DecisionFilter;
use policyd_report::html::table;
use policyd_report::overview::{CommandScope, ProjectRow, Urgency};
use policyd_yaml::time::duration_text;

/// Rows of one page: a page must stay small.
const ROWS: usize = 100;
/// Returns the page of all projects.
pub(super) fn all(context: &PageContext<'_>, view: &PageView<'_>, since: Duration) -> String {
    let state = view.field("state").unwrap_or_default();
    let fits = |it: &&ProjectRow| state.is_empty() || it.urgency().as_str() == state;
    let rows: Vec<&ProjectRow> = view.snapshot.rows.iter().filter(fits).collect();
    let page = view.page();
    let shown: Vec<&ProjectRow> =
        rows.iter().skip(page.saturating_mul(ROWS)).take(ROWS).copied().collect();
    let has_more = rows.len() > page.saturating_add(1).saturating_mul(ROWS);
    let body = html! {
        (super::waiting::first_questions(context, view))
        (summary(view))
        @if view.snapshot.rows.is_empty() && view.snapshot.is_complete {
            p { "No project is known yet. policyd adds a project at its first stop." }
        } @else {
            p.hint { "Blocked stops and tool calls of the last " (duration_text(since)) "." }
            (project_table(view, &shown))
        }
        (layout::pager("/", &[("state", state)], page, has_more))
    };
    layout::page(view, PageSection::Projects, "Projects", &body)
}

/// Returns how many projects have each urgency, as links.
fn summary(view: &PageView<'_>) -> Markup {
    let all = [Urgency::Human, Urgency::Failed, Urgency::Look, Urgency::Working, Urgency::Quiet];
    let count =
        |wanted: Urgency| view.snapshot.rows.iter().filter(|it| it.urgency() == wanted).count();
    let chosen = view.field("state").unwrap_or_default();
    html! {
        ul.tiles {
            @for it in all {
                @let (word, color) = it.cell();
                li { a.tile href=(address("/", &[("state", it.as_str())]))
                    aria-current=[(chosen == it.as_str()).then_some("true")] {
                    span class=(format!("number {}", tone(color))) { (count(it)) }
                    span { (word) }
                } }
            }
            li { a.tile href="/" aria-current=[chosen.is_empty().then_some("true")] {
                span.number { (view.snapshot.rows.len()) } span { "all" }
            } }
        }
    }
}

fn project_table(view: &PageView<'_>, rows: &[&ProjectRow]) -> Markup {
    let headings =
        ["Project", "State", "Run", "Last stop", "Blocked", "Released", "Context", "USD", "Age"];
    let body = html! { @for row in rows { (project_row(view, row)) } };
    table("Projects", &headings, &body)
}

fn project_row(view: &PageView<'_>, row: &ProjectRow) -> Markup {
    let (word, color) = row.urgency().cell();
    let directory = row.directory.as_str();
    let details = row.details(CommandScope::Anywhere);
    html! {
        tr {
            th scope="row" {
                a href=(address("/project", &[("project", directory)])) title=(directory) { (view.name(directory)) }
            }
            td { (badge(word, tone(color))) }
            td { @match &row.run {
                Some(run) => a href=(address("/run", &[("project", directory), ("id", &run.id)])) { (run.progress.as_str()) },
                None => "–",
            } }
            td { @match &row.last_stop { Some(stop) => (stop.outcome.as_str()), None => "–" } }
            td.number { (row.blocked_stops) " + " (row.blocked_calls) }
            td.number { (row.released_stops) }
            td.number { @match row.context_percent { Some(percent) => { (percent) "%" }, None => "–" } }
            td.number { @match row.cost() { Some(cost) => (cost.text()), None => "–" } }
            td.number { @match row.last_activity { Some(at) => (moment(at, view.now)), None => "–" } }
        }
        @if !details.is_empty() {
            tr.details { td colspan="9" { ul {
                @for (color, text) in details.iter().take(6) { li class=(tone(*color)) { (cut(text)) } }
            } } }
        }
    }
}

/// Cuts a text that could fill the page.
fn cut(text: &str) -> String {
    policyd_evaluation::message::cut(text, 240)
}

/// Returns the page of one project.
///
/// # Errors
/// The project is not listed, or the index cannot be read.
pub(super) fn one(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let directory = view.field("project").unwrap_or_default();
    context.known(directory)?;
    let row = view.snapshot.rows.iter().find(|it| it.directory == directory);
    let filter = DecisionFilter {
        project: Some(directory.to_owned()),
        since: Some(view.oldest()),
        ..DecisionFilter::default()
    };
    let plot = decision_plot(view, &context.index()?, &filter)?;
    let body = html! {
        p.hint { (directory) }
        @match row {
            Some(row) => (project_table(view, &[row])),
            None => p { "The state of the project is being read." },
        }
        ul.links {
            li { a href=(address("/decisions", &[("project", directory)])) { "Decisions" } }
            li { a href=(address("/rules", &[("project", directory)])) { "Rules" } }
            li { a href=(address("/breakers", &[("project", directory)])) { "Breakers" } }
            li { a href=(address("/waiting", &[("project", directory)])) { "Waiting" } }
            li { a href=(address("/runs", &[("project", directory)])) { "Runs" } }
        }
        h2 { "Decisions within " (view.since().1) }
        (plot)
        (super::runs::usage(context, directory)?)
    };
    let title = view.name(directory);
    Ok(layout::page(view, PageSection::Projects, &title, &body))
}
