//! Rules by how often they fired, were released, and were overridden.

use maud::html;

use super::super::page_context::PageContext;
use super::super::page_error::PageError;
use super::layout::{self, PageSection, address, moment};
use super::view::PageView;
use policyd_index::{DecisionFilter, RuleCounts};
use policyd_record::rule_result::RuleResult;
use policyd_report::html::table;

/// Rows of one page.
const ROWS: usize = 200;

/// Columns: heading, name in the address, and the results that it counts.
const COLUMNS: [(&str, &str, &[RuleResult]); 6] = [
    ("Blocked", "blocked", &[RuleResult::Blocked, RuleResult::Halted]),
    ("Asked", "asked", &[RuleResult::Asked]),
    ("Released", "released", &[RuleResult::Released]),
    ("Overridden", "overridden", &[RuleResult::Overridden]),
    ("Would block", "would_block", &[RuleResult::WouldBlock]),
    (
        "Other",
        "other",
        &[RuleResult::Warned, RuleResult::Logged, RuleResult::Allowed, RuleResult::Other],
    ),
];

/// Results of firings that blocked or asked, or would have if they had not been undone.
const EFFECTS: [RuleResult; 5] = [
    RuleResult::Blocked,
    RuleResult::Halted,
    RuleResult::Asked,
    RuleResult::Released,
    RuleResult::Overridden,
];

/// Returns the results that a link of a column means, or the one result of this name.
pub(super) fn results_of(name: &str) -> Vec<RuleResult> {
    let column = COLUMNS.iter().find(|it| it.1 == name).map(|it| it.2.to_vec());
    column.unwrap_or_else(|| RuleResult::find(name).into_iter().collect())
}

fn sum(rule: &RuleCounts, results: &[RuleResult]) -> u64 {
    results.iter().filter_map(|it| rule.results.get(it)).sum()
}

/// Number of decisions in which the rule fired. A rule with an unknown value did not.
fn fired(rule: &RuleCounts) -> u64 {
    COLUMNS.iter().map(|(_, _, results)| sum(rule, results)).sum()
}

/// Share of the firings that blocked or asked and then were released or overridden, in percent: a high share can mean
/// false alarms. `None` if it never blocked or asked.
fn undone_percent(rule: &RuleCounts) -> Option<u64> {
    let undone = sum(rule, &[RuleResult::Released, RuleResult::Overridden]);
    let whole = sum(rule, &EFFECTS);
    undone.saturating_mul(100).saturating_add(whole / 2).checked_div(whole)
}

/// Returns the page of rules.
///
/// # Errors
/// The index cannot be read.
pub(super) fn page(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project").unwrap_or_default();
    let (_, since) = view.since();
    let filter = DecisionFilter {
        project: view.field("project").map(str::to_owned),
        since: Some(view.oldest()),
        ..DecisionFilter::default()
    };
    let mut rules = context.index()?.rules(&filter)?;
    rules.retain(|it| fired(it) > 0);
    rules.sort_by_key(|it| std::cmp::Reverse(fired(it)));
    let order = view.field("order").unwrap_or("fired");
    match COLUMNS.iter().find(|(_, name, _)| *name == order) {
        Some((_, _, results)) => rules.sort_by_key(|it| std::cmp::Reverse(sum(it, results))),
        None if order == "undone" => {
            rules.sort_by_key(|it| std::cmp::Reverse((undone_percent(it), fired(it))));
        }
        None => {}
    }
    let orders = [("fired", "fired"), ("undone", "released or overridden, in percent")]
        .into_iter()
        .chain(COLUMNS.iter().map(|(_, name, _)| {
            (*name, if *name == "would_block" { "would block" } else { *name })
        }));
    let orders: Vec<(String, String)> =
        orders.map(|(value, text)| (value.to_owned(), text.to_owned())).collect();
    let to = |rule: &str, result: &str| {
        address(
            "/decisions",
            &[("rule", rule), ("result", result), ("project", project), ("since", &since)],
        )
    };
    let rows = html! {
        @for rule in rules.iter().take(ROWS) {
            tr {
                th scope="row" { a href=(to(&rule.rule, "")) { (rule.rule) } }
                td.number { (fired(rule)) }
                @for (_, result, results) in COLUMNS {
                    @let count = sum(rule, results);
                    td.number { @if count > 0 { a href=(to(&rule.rule, result)) { (count) } } @else { "0" } }
                }
                td.number { @match undone_percent(rule) { Some(percent) => { (percent) "%" }, None => "–" } }
                td.number { (moment(rule.last, view.now)) }
            }
        }
    };
    let counted = COLUMNS.map(|it| it.0);
    let headings: Vec<&str> =
        ["Rule", "Fired"].into_iter().chain(counted).chain(["Undone", "Last"]).collect();
    let body = html! {
        form.filter method="get" action="/rules" {
            (layout::project_menu(view))
            (layout::since_menu(view))
            (layout::select("order", "Sort by", &orders, order))
            button { "Show" }
        }
        p.hint { "Undone: of the decisions in which the rule blocked or asked, the share that the block limit released or a \
            user overrode. A high share can mean false alarms: open a decision, and report that it was wrong." }
        @if rules.is_empty() { p { "No rule fired within this time." } } @else { (table("Rules", &headings, &rows)) }
        @if rules.len() > ROWS { p { "The first " (ROWS) " of " (rules.len()) " rules are shown." } }
    };
    Ok(layout::page(view, PageSection::Rules, "Rules", &body))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use policyd_yaml::time::Timestamp;

    #[test]
    fn a_share_is_one_of_the_firings_that_had_an_effect() {
        let rule = |results: &[(RuleResult, u64)]| RuleCounts {
            rule: "r".to_owned(),
            results: BTreeMap::from_iter(results.iter().copied()),
            last: Timestamp::default(),
        };
        let it = rule(&[
            (RuleResult::Blocked, 5),
            (RuleResult::Halted, 1),
            (RuleResult::Released, 2),
            (RuleResult::Overridden, 1),
            (RuleResult::Warned, 90),
            (RuleResult::Unknown, 7),
        ]);
        assert_eq!((fired(&it), undone_percent(&it)), (99, Some(33)));
        assert_eq!(undone_percent(&rule(&[(RuleResult::Warned, 3)])), None);
        assert_eq!(fired(&rule(&[(RuleResult::Unknown, 3)])), 0);
    }

    #[test]
    fn each_result_of_a_firing_is_in_one_column_and_its_link_counts_the_same() {
        for result in RuleResult::ALL.into_iter().filter(|it| *it != RuleResult::Unknown) {
            let columns: Vec<_> = COLUMNS.iter().filter(|it| it.2.contains(&result)).collect();
            assert_eq!(columns.len(), 1, "{result:?}");
            assert_eq!(results_of(columns[0].1), columns[0].2);
        }
        assert_eq!(results_of("unknown"), [RuleResult::Unknown]);
        assert_eq!(results_of("none"), []);
    }
}
