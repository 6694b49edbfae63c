//! The overview of all projects, and one project.

use std::time::Duration;

use maud::{Markup, html};

use super::layout::{self, PageSection, address, badge, moment, tone};
use super::{PageError, PageView, Pages};
use policyd_index::{DecisionFilter, DecisionIndex, TimeSlot};
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_report::html::{legend, table};
use policyd_report::overview::{ProjectRow, Urgency};
use policyd_report::plot::{self, Axis, Bar};
use policyd_state::run::budget::usd_text;
use policyd_yaml::time::{Timestamp, duration_text};

/// Rows of one page: a page must stay small.
const ROWS: usize = 100;
/// Length of time above which a plot begins with its first decision.
const WHOLE: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Bars of a plot over time.
const SLOTS: u32 = 48;

/// Returns the page of all projects.
pub(super) fn all(pages: &Pages<'_>, view: &PageView<'_>, since: Duration) -> String {
    let state = view.field("state").unwrap_or_default();
    let fits = |it: &&ProjectRow| state.is_empty() || it.urgency().as_str() == state;
    let rows: Vec<&ProjectRow> = view.snapshot.rows.iter().filter(fits).collect();
    let page = view.page();
    let shown: Vec<&ProjectRow> =
        rows.iter().skip(page.saturating_mul(ROWS)).take(ROWS).copied().collect();
    let has_more = rows.len() > page.saturating_add(1).saturating_mul(ROWS);
    let body = html! {
        (super::waiting::first_questions(pages, view))
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
    let details = row.details();
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
            td.number { @match row.cost_usd() { Some(cost) => (usd_text(cost)), None => "–" } }
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
pub(super) fn one(pages: &Pages<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let directory = view.field("project").unwrap_or_default();
    pages.known(directory)?;
    let row = view.snapshot.rows.iter().find(|it| it.directory == directory);
    let filter = DecisionFilter {
        project: Some(directory.to_owned()),
        since: Some(view.oldest()),
        ..DecisionFilter::default()
    };
    let plot = decision_plot(view, &pages.index()?, &filter)?;
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
        (super::runs::usage(pages, directory)?)
    };
    let title = view.name(directory);
    Ok(layout::page(view, PageSection::Projects, &title, &body))
}

/// Groups of outcomes in one color, from the bottom up.
const GROUPS: [(&str, &str, &[DecisionOutcome]); 4] = [
    (
        "blocked",
        "bad",
        &[DecisionOutcome::BlockedStop, DecisionOutcome::BlockedCall, DecisionOutcome::Halted],
    ),
    ("asked", "look", &[DecisionOutcome::Asked]),
    ("released", "released", &[DecisionOutcome::ReleasedStop]),
    (
        "other",
        "quiet",
        &[
            DecisionOutcome::PassedStop,
            DecisionOutcome::Noted,
            DecisionOutcome::ApprovedCall,
            DecisionOutcome::LeftPrompt,
            DecisionOutcome::Switched,
            DecisionOutcome::NotEvaluated,
            DecisionOutcome::RunEnded,
            DecisionOutcome::Escalated,
            DecisionOutcome::BreakerOpened,
            DecisionOutcome::BreakerHalfOpened,
            DecisionOutcome::BreakerClosed,
            DecisionOutcome::DeadLettered,
        ],
    ),
];

/// Returns a plot of the decisions of a filter over its time, and a table with the same numbers.
///
/// # Errors
/// The index cannot be read.
pub(super) fn decision_plot(
    view: &PageView<'_>,
    index: &DecisionIndex,
    filter: &DecisionFilter,
) -> Result<Markup, PageError> {
    // "All" begins with the first decision.
    let first = if view.since().0 > WHOLE { index.oldest(filter)? } else { filter.since };
    let begin = first.unwrap_or(view.now);
    let slot_ms = slot_ms(view.now.since(begin));
    let slots = index.over_time(filter, begin, slot_ms)?;
    Ok(drawn_plot(&slots, begin, slot_ms))
}

/// Returns the length of one of [`SLOTS`] bars in milliseconds, rounded up: the last bar ends now or later.
fn slot_ms(whole: Duration) -> u64 {
    let whole = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    whole.saturating_add(1).div_ceil(u64::from(SLOTS)).max(1000)
}

#[expect(clippy::cast_precision_loss, reason = "positions and heights of a plot")]
fn drawn_plot(slots: &[TimeSlot], begin: Timestamp, slot_ms: u64) -> Markup {
    if slots.is_empty() {
        return html! { p { "No decision is logged for this time." } };
    }
    let whole = slot_ms.saturating_mul(u64::from(SLOTS)) as f64;
    let group = |slot: &TimeSlot, outcomes: &[DecisionOutcome]| -> u64 {
        outcomes.iter().filter_map(|it| slot.outcomes.get(it)).sum()
    };
    let bar = |slot: &TimeSlot| {
        let counts = GROUPS.map(|(name, class, outcomes)| (name, class, group(slot, outcomes)));
        let words: Vec<String> = counts
            .iter()
            .filter(|(_, _, count)| *count > 0)
            .map(|(name, _, count)| format!("{count} {name}"))
            .collect();
        Bar {
            at: slot.begins.millis().saturating_sub(begin.millis()) as f64 / whole,
            parts: counts.iter().map(|(_, class, count)| (*class, *count as f64)).collect(),
            title: format!("{}: {}", slot.begins, words.join(", ")),
        }
    };
    let bars: Vec<Bar> = slots.iter().map(bar).collect();
    let axis = Axis { begin: begin.to_string(), end: "now".to_owned(), unit: "", most: None };
    html! {
        figure {
            (plot::bars("Decisions over time", &bars, SLOTS, &axis))
            (legend(&GROUPS.map(|(name, class, _)| (class, name))))
            details { summary { "Numbers" }
                (table("Decisions over time", &["From", "Blocked", "Asked", "Released", "Other"], &html! {
                    @for slot in slots { tr {
                        td { (slot.begins) }
                        @for (_, _, outcomes) in GROUPS { td.number { (group(slot, outcomes)) } }
                    } }
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_index::OutcomeCounts;

    #[test]
    fn bars_fill_the_time_of_the_plot() {
        let (begin, length) =
            (Timestamp::from_millis(1_000_000), slot_ms(Duration::from_secs(480)));
        assert_eq!(length, 10_001, "48 bars are longer than the time");
        assert_eq!(slot_ms(Duration::ZERO), 1000);
        let slot = |number: u64| TimeSlot {
            begins: begin.plus(Duration::from_millis(length * number)),
            outcomes: OutcomeCounts::from([
                (DecisionOutcome::BlockedCall, 2),
                (DecisionOutcome::Halted, 1),
                (DecisionOutcome::PassedStop, 4),
            ]),
        };
        let drawn = drawn_plot(&[slot(0), slot(47)], begin, length).into_string();
        assert!(drawn.contains("3 blocked, 4 other"), "{drawn}");
        assert!(drawn.contains("x=\"56\"") && drawn.contains("x=\"698.33"), "{drawn}");
        assert!(drawn.contains("<td class=\"number\">3</td>"), "{drawn}");
    }
}
