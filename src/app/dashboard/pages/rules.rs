//! Rules by how often they fired, were released, and were overridden.

use maud::html;

use super::layout::{self, PageSection, address, moment, table};
use super::{PageError, PageView, Pages};
use crate::report::rule_result::RuleResult;
use crate::store::decision_index::{DecisionFilter, RuleCounts};

/// Rows of one page.
const ROWS: usize = 200;

/// Columns: heading, name in the address, and the results that it counts.
const COLUMNS: [(&str, &str, &[RuleResult]); 5] = [
    ("Blocked", "blocked", &[RuleResult::Blocked, RuleResult::Halted]),
    ("Asked", "asked", &[RuleResult::Asked]),
    ("Released", "released", &[RuleResult::Released]),
    ("Overridden", "overridden", &[RuleResult::Overridden]),
    ("Observed", "would_block", &[RuleResult::WouldBlock]),
];

fn sum(rule: &RuleCounts, results: &[RuleResult]) -> u64 {
    results.iter().filter_map(|it| rule.results.get(it)).sum()
}

fn all(rule: &RuleCounts) -> u64 {
    rule.results.values().sum()
}

/// Share of the firings that a release or an override ended, in percent: a high share can mean false alarms.
fn undone_percent(rule: &RuleCounts) -> u64 {
    let undone = sum(rule, &[RuleResult::Released, RuleResult::Overridden]);
    undone.saturating_mul(100) / all(rule).max(1)
}

/// Returns the page of rules.
///
/// # Errors
/// The index cannot be read.
pub(super) fn page(pages: &Pages<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project").unwrap_or_default();
    let (_, since) = view.since();
    let filter = DecisionFilter {
        project: view.field("project").map(str::to_owned),
        since: Some(view.oldest()),
        ..DecisionFilter::default()
    };
    let mut rules = pages.index()?.rules(&filter)?;
    let order = view.field("order").unwrap_or("fired");
    match COLUMNS.iter().find(|(_, name, _)| *name == order) {
        Some((_, _, results)) => rules.sort_by_key(|it| std::cmp::Reverse(sum(it, results))),
        None if order == "undone" => {
            rules.sort_by_key(|it| std::cmp::Reverse((undone_percent(it), all(it))));
        }
        None => {}
    }
    let orders = [("fired", "fired"), ("undone", "released or overridden, in percent")]
        .into_iter()
        .chain(COLUMNS.iter().map(|(_, name, _)| {
            (*name, name.strip_prefix("would_").map_or(*name, |_| "observed"))
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
                td.number { (all(rule)) }
                @for (_, result, results) in COLUMNS {
                    @let count = sum(rule, results);
                    td.number { @if count > 0 { a href=(to(&rule.rule, result)) { (count) } } @else { "0" } }
                }
                td.number { (undone_percent(rule)) "%" }
                td.number { (moment(rule.last, view.now)) }
            }
        }
    };
    let headings = [
        "Rule",
        "Fired",
        "Blocked",
        "Asked",
        "Released",
        "Overridden",
        "Observed",
        "Undone",
        "Last",
    ];
    let body = html! {
        form.filter method="get" action="/rules" {
            (layout::project_menu(view))
            (layout::since_menu(view))
            (layout::select("order", "Sort by", &orders, order))
            button { "Show" }
        }
        p.hint { "Undone: the share that the block limit released or a user overrode. A high share can mean false alarms: \
            open a decision, and report that it was wrong." }
        @if rules.is_empty() { p { "No rule fired within this time." } } @else { (table("Rules", &headings, &rows)) }
        @if rules.len() > ROWS { p { "The first " (ROWS) " of " (rules.len()) " rules are shown." } }
    };
    Ok(layout::page(view, PageSection::Rules, "Rules", &body))
}
