//! Circuit breakers of all projects, with what happened to each.

use maud::{Markup, html};

use super::super::page_context::PageContext;
use super::super::page_error::PageError;
use super::decisions::{decision_table, outcome_words};
use super::layout::{self, PageSection, address, badge, form_token, when};
use super::view::PageView;
use policyd_index::{DecisionFilter, DecisionRow};
use policyd_record::breaker_view::BreakerView;
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_report::html::table;
use policyd_state::breaker::{BreakerPhase, CallOutcome};
use policyd_yaml::time::Timestamp;

/// Breakers of one page.
const ROWS: usize = 100;
/// State changes of the list of all breakers.
const CHANGES: usize = 50;
/// State changes that are read for the histories of all breakers of the page.
const CHANGES_READ: usize = 1_000;
/// Events of one breaker.
const EVENTS: usize = 20;

/// Outcomes of decisions that are state changes.
const CHANGED: [DecisionOutcome; 3] = [
    DecisionOutcome::BreakerOpened,
    DecisionOutcome::BreakerHalfOpened,
    DecisionOutcome::BreakerClosed,
];

/// Returns the page of breakers: those that need a human first, then open ones.
///
/// # Errors
/// The index cannot be read.
pub(super) fn page(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project");
    // What was read last is shown as it is now: an open breaker becomes half-open by time alone.
    let current = |it: &BreakerView| BreakerView { now: view.now, ..it.clone() };
    let mut all: Vec<(&str, BreakerView)> = view
        .snapshot
        .breakers
        .iter()
        .filter(|(name, _)| project.is_none_or(|it| it == *name))
        .flat_map(|(name, breakers)| breakers.iter().map(move |it| (name.as_str(), current(it))))
        .collect();
    all.sort_by_key(|(name, it)| {
        (!it.breaker.needs_human, rank(it.phase()), (*name).to_owned(), it.key.clone())
    });
    let changed = DecisionFilter {
        project: project.map(str::to_owned),
        outcomes: CHANGED.to_vec(),
        ..DecisionFilter::default()
    };
    let changed = context.index()?.decisions(&changed, 0, CHANGES_READ)?;
    let newest = changed.get(..changed.len().min(CHANGES)).unwrap_or_default();
    let body = html! {
        form.filter method="get" action="/breakers" { (layout::project_menu(view)) button { "Show" } }
        @if all.is_empty() { (layout::nothing(view, "No call of a breaker is recorded.")) }
        @for (name, it) in all.iter().take(ROWS) { (breaker(view, name, it, &changed)) }
        @if all.len() > ROWS { p { "The first " (ROWS) " of " (all.len()) " breakers are shown." } }
        @if !newest.is_empty() {
            h2 { "State changes, newest first" }
            (decision_table(view, newest))
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
        BreakerPhase::HalfOpen => ("half-open", "look"),
        BreakerPhase::Closed => ("closed", "good"),
    }
}

fn breaker(
    view: &PageView<'_>,
    project: &str,
    it: &BreakerView,
    changed: &[DecisionRow],
) -> Markup {
    let (word, tone) = words(it.phase());
    html! {
        article {
            h2 { (it.key) " " (badge(word, tone))
                @if it.breaker.needs_human { " " (badge("needs you", "bad")) } }
            p { a href=(address("/project", &[("project", project)])) { (view.name(project)) } ": " (it.status()) }
            (history(view.now, it, &changes_of(project, &it.key, changed)))
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

/// Returns the logged state changes of a breaker.
fn changes_of<'r>(project: &str, key: &str, changed: &'r [DecisionRow]) -> Vec<&'r DecisionRow> {
    let begin = format!("{key}: ");
    changed.iter().filter(|it| it.project == project && it.detail.starts_with(&begin)).collect()
}

/// Returns what is known about a breaker, newest first: its logged state changes, and what its record contains.
fn events(it: &BreakerView, changes: &[&DecisionRow]) -> Vec<(Timestamp, String)> {
    let breaker = &it.breaker;
    // Some times of the record are whole seconds.
    let second = |at: Timestamp| at.millis().div_euclid(1_000);
    let mut events: Vec<(Timestamp, String)> = changes
        .iter()
        .map(|row| {
            let why = row.detail.strip_prefix(&format!("{}: ", it.key)).unwrap_or(&row.detail);
            let (word, _) = outcome_words(row.outcome);
            (row.at, format!("{}: {why}", word.trim_start_matches("breaker ")))
        })
        .collect();
    let is_logged =
        |at: Timestamp| changes.iter().any(|it| (second(it.at) - second(at)).abs() <= 1);
    let mut add = |at: Option<Timestamp>, text: &str| {
        events.extend(at.map(|at| (at, text.to_owned())));
    };
    let word = match breaker.phase {
        BreakerPhase::Open => "opened",
        BreakerPhase::HalfOpen => "half-open",
        BreakerPhase::Closed => "closed",
    };
    add(breaker.last_change.filter(|it| !is_logged(*it)), word);
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
    let is_counted = |at: Timestamp| breaker.failures().any(|it| second(it) == second(at));
    add(breaker.last_failure.filter(|it| !is_counted(*it)), "last failure, not in the window");
    events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    events.truncate(EVENTS);
    events
}

fn history(now: Timestamp, it: &BreakerView, changes: &[&DecisionRow]) -> Markup {
    let events = events(it, changes);
    let rows = html! {
        @for (at, text) in &events { tr { td { (when(*at, now)) } td { (text) } } }
    };
    html! {
        details { summary { "History" }
            p { "State changes: " (it.breaker.generation) ". Openings since the breaker last stayed closed: " (it.breaker.openings) "." }
            @if !events.is_empty() { (table(&format!("History of {}", it.key), &["When", "What"], &rows)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_state::breaker::{Breaker, BreakerSettings, CountedCall};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn change(millis: i64, outcome: DecisionOutcome, detail: &str) -> DecisionRow {
        DecisionRow {
            project: "/w/app".to_owned(),
            id: String::new(),
            at: at(millis),
            session: String::new(),
            event: String::new(),
            tool: String::new(),
            outcome,
            would_stop: false,
            detail: detail.to_owned(),
        }
    }

    #[test]
    fn a_history_has_each_change_of_the_state_once() {
        let failed = CountedCall { at: at(9_500), outcome: CallOutcome::Failed };
        let breaker = Breaker {
            phase: BreakerPhase::Open,
            calls: vec![failed],
            // As the file has it: whole seconds.
            last_failure: Some(at(9_000)),
            last_change: Some(at(9_000)),
            cooldown_until: Some(at(69_000)),
            ..Breaker::default()
        };
        let settings = BreakerSettings::default();
        let it = BreakerView { key: "api/x".to_owned(), breaker, settings, now: at(10_000) };
        let changed = [
            change(9_501, DecisionOutcome::BreakerOpened, "api/x: E"),
            change(8_000, DecisionOutcome::BreakerHalfOpened, "api/x: a trial call is permitted"),
            change(8_500, DecisionOutcome::BreakerClosed, "api/xy: a user reset it"),
            change(1_000, DecisionOutcome::BreakerOpened, "api/x: E"),
        ];
        let of_it = changes_of("/w/app", "api/x", &changed);
        assert_eq!(changes_of("/w/other", "api/x", &changed).len(), 0);
        let found: Vec<(i64, String)> =
            events(&it, &of_it).into_iter().map(|(at, text)| (at.millis(), text)).collect();
        let expected = [
            (69_000, "end of the cooldown"),
            (9_501, "opened: E"),
            (9_500, "failure"),
            (8_000, "half-open: a trial call is permitted"),
            (1_000, "opened: E"),
        ];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
        let drawn = history(at(10_000), &it, &of_it).into_string();
        let future = "in <time datetime=\"1970-01-01T00:01:09.000Z\"";
        assert!(drawn.contains(future) && drawn.contains(">59s</time>"), "{drawn}");
    }
}
