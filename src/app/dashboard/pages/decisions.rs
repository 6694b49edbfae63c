//! Lists of decisions with filters, and one decision with its explanation.

use maud::{Markup, html};

use super::super::page_context::PageContext;
use super::super::page_error::PageError;
use super::decision_plot::decision_plot;
use super::layout::{self, PageSection, address, badge, moment};
use super::rules;
use super::view::PageView;
use crate::packs;
use crate::sessions::explained::{self, PackChoice};
use policyd_index::{DecisionFilter, DecisionRow};
use policyd_record::decision_log::Entry;
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_report::html::table;

/// Rows of one page.
const ROWS: usize = 100;

/// Returns the words and the color of an outcome.
pub(super) const fn outcome_words(outcome: DecisionOutcome) -> (&'static str, &'static str) {
    match outcome {
        DecisionOutcome::BlockedStop => ("stop blocked", "bad"),
        DecisionOutcome::ReleasedStop => ("stop released", "look"),
        DecisionOutcome::PassedStop => ("stop passed", "good"),
        DecisionOutcome::BlockedCall => ("blocked", "bad"),
        DecisionOutcome::Halted => ("halted", "bad"),
        DecisionOutcome::Asked => ("asked", "look"),
        DecisionOutcome::Noted => ("not blocked", "quiet"),
        DecisionOutcome::ApprovedCall => ("approved", "good"),
        DecisionOutcome::LeftPrompt => ("prompt", "quiet"),
        DecisionOutcome::Switched => ("switched", "look"),
        DecisionOutcome::NotEvaluated => ("not evaluated", "quiet"),
        DecisionOutcome::RunEnded => ("run ended", "quiet"),
        DecisionOutcome::Escalated => ("question", "look"),
        DecisionOutcome::CallRequested => ("call waits", "look"),
        DecisionOutcome::BreakerOpened => ("breaker opened", "bad"),
        DecisionOutcome::BreakerHalfOpened => ("breaker half-open", "look"),
        DecisionOutcome::BreakerClosed => ("breaker closed", "good"),
        DecisionOutcome::DeadLettered => ("dead letter", "look"),
    }
}

/// The filter that the address asks for.
fn filter(view: &PageView<'_>) -> DecisionFilter {
    DecisionFilter {
        project: view.field("project").map(str::to_owned),
        rule: view.field("rule").map(str::to_owned),
        results: view.field("result").map(rules::results_of).unwrap_or_default(),
        outcomes: view.field("outcome").and_then(DecisionOutcome::find).into_iter().collect(),
        would_stop: view.field("would").is_some(),
        session: view.field("session").map(str::to_owned),
        since: Some(view.oldest()),
        until: None,
    }
}

/// Returns the page with the list of decisions.
///
/// # Errors
/// The index cannot be read.
pub(super) fn list(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let (filter, page) = (filter(view), view.page());
    let index = context.index()?;
    let mut rows = index.decisions(&filter, page.saturating_mul(ROWS), ROWS.saturating_add(1))?;
    let has_more = rows.len() > ROWS;
    rows.truncate(ROWS);
    let plot = decision_plot(view, &index, &filter)?;
    let names = ["project", "rule", "result", "outcome", "would", "session", "since"];
    let fields: Vec<(&str, &str)> =
        names.iter().map(|it| (*it, view.field(it).unwrap_or_default())).collect();
    let body = html! {
        (filter_form(view))
        (plot)
        @if rows.is_empty() { p { "No decision matches." } } @else {
            (decision_table(view, &rows))
        }
        (layout::pager("/decisions", &fields, page, has_more))
    };
    Ok(layout::page(view, PageSection::Decisions, "Decisions", &body))
}

fn filter_form(view: &PageView<'_>) -> Markup {
    let outcomes =
        DecisionOutcome::ALL.map(|it| (it.as_str().to_owned(), outcome_words(it).0.to_owned()));
    let outcomes: Vec<(String, String)> =
        [(String::new(), "any".to_owned())].into_iter().chain(outcomes).collect();
    let text = |name: &str| view.field(name).unwrap_or_default().to_owned();
    html! {
        form.filter method="get" action="/decisions" {
            (layout::project_menu(view))
            (layout::select("outcome", "Outcome", &outcomes, view.field("outcome").unwrap_or_default()))
            label { "Rule " input name="rule" value=(text("rule")) autocomplete="off"; }
            label { "Session " input name="session" value=(text("session")) autocomplete="off"; }
            (layout::since_menu(view))
            label { input type="checkbox" name="would" value="1" checked[view.field("would").is_some()];
                " only what would block" }
            @if let Some(result) = view.field("result") {
                input type="hidden" name="result" value=(result);
            }
            button { "Filter" }
            a href="/decisions" { "Clear" }
        }
    }
}

/// Returns the address of all decisions of a session.
fn session_address(row: &DecisionRow) -> String {
    address("/decisions", &[("session", &row.session), ("since", "36500d")])
}

/// Returns a table of decisions.
pub(super) fn decision_table(view: &PageView<'_>, rows: &[DecisionRow]) -> Markup {
    let headings = ["Age", "Outcome", "Project", "Event", "Finding", "Session"];
    let body = html! {
        @for row in rows {
            @let (word, tone) = outcome_words(row.outcome);
            tr {
                td.number { (moment(row.at, view.now)) }
                td { (badge(word, tone)) @if row.would_stop { " " (badge("would block", "look")) } }
                td { (view.name(&row.project)) }
                td { (row.event.replace('_', " ")) @if !row.tool.is_empty() { " · " (row.tool) } }
                td { a href=(address("/decision", &[("project", &row.project), ("id", &row.id)])) {
                    @if row.detail.is_empty() { "no finding" } @else { (row.detail) }
                } }
                td { @if !row.session.is_empty() {
                    a href=(session_address(row)) { (row.session.chars().take(8).collect::<String>()) }
                } }
            }
        }
    };
    table("Decisions", &headings, &body)
}

/// A decision with its record.
pub(crate) struct FoundDecision {
    pub row: DecisionRow,
    pub entry: Entry,
}

/// Finds a decision and reads its record from the log.
///
/// # Errors
/// The project is not listed, the index cannot be read, or the record was rotated away.
pub(crate) fn find(
    context: &PageContext<'_>,
    project: &str,
    id: &str,
) -> Result<FoundDecision, PageError> {
    context.known(project)?;
    let missing = || PageError::NoDecision(id.to_owned());
    let (row, location) = context.index()?.decision(project, id)?.ok_or_else(missing)?;
    let line = location.read(context.world).ok_or_else(missing)?;
    let entry = Entry::parse(&line).ok_or_else(missing)?;
    Ok(FoundDecision { row, entry })
}

/// Returns the page of one decision.
///
/// # Errors
/// The decision does not exist any more, or the index cannot be read.
pub(super) fn one(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project").unwrap_or_default();
    let id = view.field("id").unwrap_or_default();
    let FoundDecision { row, entry } = find(context, project, id)?;
    let rules = rule_ids(&entry);
    let open = context.open(project)?;
    let found = packs::find(context.world, &open.project, None);
    let choice = PackChoice::Logged;
    let explanation = explained::explain(context.world, &open.project, entry, found, choice);
    let (word, tone) = outcome_words(row.outcome);
    let body = html! {
        dl.facts {
            dt { "Outcome" } dd { (badge(word, tone)) @if row.would_stop { " " (badge("would block", "look")) } }
            dt { "Time" } dd { (row.at) " (" (moment(row.at, view.now)) " ago)" }
            dt { "Project" } dd { a href=(address("/project", &[("project", project)])) { (project) } }
            dt { "Event" } dd { (row.event.replace('_', " ")) @if !row.tool.is_empty() { " · " (row.tool) } }
            @if !row.session.is_empty() {
                dt { "Session" } dd { a href=(session_address(&row)) { (row.session) } }
            }
            @if !rules.is_empty() {
                dt { "Rules" } dd { ul.inline { @for rule in &rules {
                    li { a href=(address("/decisions", &[("rule", rule)])) { (rule) } }
                } } }
            }
        }
        h2 { "Explanation" }
        (layout::drawing("Explanation", &explanation.to_text(false, false)))
        @if !view.is_read_only && !rules.is_empty() { (wrong_form(view, &row, &rules)) }
    };
    let title = format!("Decision {id}");
    Ok(layout::page(view, PageSection::Decisions, &title, &body))
}

/// Returns the rules that did not pass.
fn rule_ids(entry: &Entry) -> Vec<String> {
    let checks = entry.verdicts.iter().filter(|it| it.details.is_some()).map(|it| it.id.clone());
    let guards = entry.guards.iter().map(|it| it.id.clone());
    let mut ids: Vec<String> = checks.chain(guards).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Returns the form that reports a false alarm.
fn wrong_form(view: &PageView<'_>, row: &DecisionRow, rules: &[String]) -> Markup {
    let choices: Vec<(String, String)> = rules.iter().map(|it| (it.clone(), it.clone())).collect();
    html! {
        h2 { "Was this wrong?" }
        p { "policyd writes a draft of a test case in which the rule does not fire. It changes no rule." }
        form method="post" action="/wrong" {
            (layout::form_token(view))
            input type="hidden" name="project" value=(row.project);
            input type="hidden" name="id" value=(row.id);
            (layout::select("rule", "Rule", &choices, ""))
            label { "Why " input name="note" maxlength="200" autocomplete="off"; }
            button { "This was wrong" }
        }
    }
}
