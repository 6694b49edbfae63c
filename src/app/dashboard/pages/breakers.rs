//! Circuit breakers of all projects, with what happened to each.

use maud::{Markup, html};

use super::decisions::decision_table;
use super::layout::{self, PageSection, address, badge, form_token, moment, table};
use super::{PageError, PageView, Pages};
use crate::report::breakers::BreakerView;
use crate::report::indexed_decision::DecisionOutcome;
use crate::state::breaker::{BreakerPhase, CallOutcome};
use crate::store::decision_index::DecisionFilter;
use crate::time::Timestamp;

/// Breakers of one page.
const ROWS: usize = 100;
/// Openings of all breakers.
const OPENINGS: usize = 50;
/// Events of one breaker.
const EVENTS: usize = 12;

/// Returns the page of breakers: those that need a human first, then open ones.
///
/// # Errors
/// The index cannot be read.
pub(super) fn page(pages: &Pages<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project");
    let mut all: Vec<(&str, &BreakerView)> = view
        .snapshot
        .breakers
        .iter()
        .filter(|(name, _)| project.is_none_or(|it| it == *name))
        .flat_map(|(name, breakers)| breakers.iter().map(move |it| (name.as_str(), it)))
        .collect();
    all.sort_by_key(|(name, it)| {
        (!it.breaker.needs_human, rank(it.phase()), (*name).to_owned(), it.key.clone())
    });
    let opened = DecisionFilter {
        project: project.map(str::to_owned),
        outcome: Some(DecisionOutcome::BreakerOpened),
        ..DecisionFilter::default()
    };
    let opened = pages.index()?.decisions(&opened, 0, OPENINGS)?;
    let body = html! {
        form.filter method="get" action="/breakers" { (layout::project_menu(view)) button { "Show" } }
        @if all.is_empty() { p { "No breaker recorded a call." } }
        @for (name, it) in all.iter().take(ROWS) { (breaker(view, name, it)) }
        @if all.len() > ROWS { p { "The first " (ROWS) " of " (all.len()) " breakers are shown." } }
        @if !opened.is_empty() {
            h2 { "Openings, newest first" }
            (decision_table(view, &opened))
        }
    };
    Ok(layout::page(view, PageSection::Breakers, "Breakers", &body))
}

const fn rank(phase: BreakerPhase) -> u8 {
    match phase {
        BreakerPhase::Open => 0,
        BreakerPhase::HalfOpen => 1,
        BreakerPhase::Closed => 2,
    }
}

const fn words(phase: BreakerPhase) -> (&'static str, &'static str) {
    match phase {
        BreakerPhase::Open => ("open", "bad"),
        BreakerPhase::HalfOpen => ("half open", "look"),
        BreakerPhase::Closed => ("closed", "good"),
    }
}

fn breaker(view: &PageView<'_>, project: &str, it: &BreakerView) -> Markup {
    let (word, tone) = words(it.phase());
    html! {
        article {
            h2 { (it.key) " " (badge(word, tone))
                @if it.breaker.needs_human { " " (badge("needs you", "bad")) } }
            p { a href=(address("/project", &[("project", project)])) { (view.name(project)) } ": " (it.line()) }
            (history(view, it))
            @if !view.is_read_only && it.phase() != BreakerPhase::Closed {
                form method="post" action="/breaker" {
                    (form_token(view))
                    input type="hidden" name="project" value=(project);
                    input type="hidden" name="key" value=(it.key);
                    button { "Reset" }
                }
            }
        }
    }
}

/// Returns what is recorded about a breaker, newest first.
fn history(view: &PageView<'_>, it: &BreakerView) -> Markup {
    let breaker = &it.breaker;
    let mut events: Vec<(Timestamp, &'static str)> = Vec::new();
    let mut add = |at: Option<Timestamp>, text| events.extend(at.map(|at| (at, text)));
    let changed = match breaker.phase {
        BreakerPhase::Open => "opened",
        BreakerPhase::HalfOpen => "half open: a trial call is permitted",
        BreakerPhase::Closed => "closed",
    };
    add(breaker.last_change, changed);
    add(breaker.recovered_at.filter(|at| Some(*at) != breaker.last_change), "recovered");
    add(breaker.last_probe, "trial call");
    add(breaker.cooldown_until, "end of the cooldown");
    add(breaker.open_until, "end of the delay that the server requested");
    for call in &breaker.calls {
        let text = match call.outcome {
            CallOutcome::Failed => "failure",
            CallOutcome::Slow => "slow success",
            CallOutcome::Worked => "success",
        };
        add(Some(call.at), text);
    }
    let counted = breaker.calls.iter().any(|call| Some(call.at) == breaker.last_failure);
    add(breaker.last_failure.filter(|_| !counted), "failure that did not count");
    events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let rows = html! {
        @for (at, text) in events.iter().take(EVENTS) {
            tr {
                td { @if *at > view.now { "in " (moment(view.now, *at)) } @else { (moment(*at, view.now)) " ago" } }
                td { (text) }
            }
        }
    };
    html! {
        details { summary { "History" }
            p { "State changes: " (breaker.generation) ". Openings since it last stayed closed: " (breaker.openings) "." }
            @if !events.is_empty() { (table(&format!("History of {}", it.key), &["When", "What"], &rows)) }
        }
    }
}
