//! The plot of decisions over time, and a table with the same numbers.

use std::time::Duration;

use maud::{Markup, html};

use super::super::page_error::PageError;
use super::view::PageView;
use policyd_index::{DecisionFilter, DecisionIndex, TimeSlot};
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_report::html::{legend, table};
use policyd_report::plot::{self, Axis, Bar};
use policyd_yaml::time::Timestamp;

/// Length of time above which a plot begins with its first decision.
const WHOLE: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Bars of a plot over time.
const SLOTS: u32 = 48;

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
