//! Checks of numbers in expressions: what they are divided by and compared with.

use std::collections::BTreeSet;

use super::terms::{each_part, each_part_with};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::paths::{self, Fact};
use policyd_fact_table::types::Type;
use policyd_state::context::MeterKind;

pub(crate) fn division_by_zero(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let ExprKind::Arithmetic('/' | '%', _, divisor) = &term.kind
            && divisor.kind == ExprKind::Int(0)
        {
            let message = "division by zero, which fails at every evaluation";
            out.help(site.span(&divisor.range), message, "use another divisor");
        }
    });
}

/// Parts of the paths of all positions.
const AT_POSITIONS: [&str; 3] = [".at", "_at", ".position"];

/// Facts that are positions in the transcript, by their last names.
#[rustfmt::skip]
const POSITIONS: [&str; 9] = [
    "at", "last_at", "last_passed_at", "denied_at", "undone_at", "last_prompt_at", "compacted_at",
    "prompted_at", "position",
];

/// Whether a fact is a position in the transcript; none if it is not an integer fact.
fn is_position(term: &Expr) -> Option<bool> {
    let row = paths::member(term.fact()?)?;
    // What a probe's program prints may be a position.
    let counts = row.result == Type::Int && row.name != "number";
    counts.then(|| POSITIONS.contains(&row.name))
}

pub(crate) fn position_and_number(subject: &Subject<'_>, out: &mut Findings) {
    each_part_with(subject, &AT_POSITIONS, |site, term| {
        let ExprKind::Compare(_, one, other) = &term.kind else { return };
        let (Some(left), Some(right)) = (is_position(one), is_position(other)) else { return };
        if left != right {
            let (place, number) = if left { (one, other) } else { (other, one) };
            let (place, number) = (site.part(&place.range), site.part(&number.range));
            let message = format!("`{place}` is a position, but `{number}` is not");
            out.add(site.span(&term.range), message, |it| {
                it.with_note("positions count transcript lines and tool calls")
                    .with_help("compare two positions, such as `files.last_at`, or two counts")
            });
        }
    });
}

/// Facts that are shares, 0 to 1.
const SHARES: [&str; 2] = ["task.confidence", "run.confidence"];
/// Facts that are percentages.
#[rustfmt::skip]
const PERCENTAGES: [&str; 5] = [
    "context.percent", "context.measured", "context.cumulative_pct", "context.threshold",
    "run.health",
];

/// Facts that are numbers of tokens, of a whole context.
const TOKENS: [&str; 4] = ["tokens.context", "context.tokens", "context.spent", "context.window"];
/// Facts that are US cents.
const CENTS: [&str; 1] = ["context.cost_cents"];

/// A number that is most likely written in another unit than the fact has, and the number that is meant.
fn of_other_unit(fact: Fact<'_>, value: f64, occupancy: bool) -> Option<(String, f64)> {
    let is_bounded = fact.is("run.health") || (occupancy && fact.is("context.percent"));
    if is_bounded && value > 100.0 {
        let meant = if value > 1000.0 { 100.0 } else { value / 10.0 };
        return Some((format!("`{}` is a percentage from 0 to 100", fact.text()), meant));
    }
    if fact.is_one_of(&TOKENS) && value > 0.0 && value < 1000.0 {
        let message = format!("`{}` counts tokens, not thousands of tokens", fact.text());
        return Some((message, value * 1000.0));
    }
    let is_fraction = value.fract() != 0.0;
    (fact.is_one_of(&CENTS) && is_fraction)
        .then(|| (format!("`{}` is in cents, not in dollars", fact.text()), value * 100.0))
}

/// The number that a part is.
fn decimal(term: &Expr) -> Option<f64> {
    if let ExprKind::Int(value) = &term.kind {
        return i32::try_from(*value).ok().map(f64::from);
    }
    if let ExprKind::Decimal(text) = &term.kind { text.parse().ok() } else { None }
}

pub(crate) fn share_and_percent(subject: &Subject<'_>, out: &mut Findings) {
    #[rustfmt::skip]
    let members = [
        "confidence", "percent", "measured", "cumulative_pct", "threshold", "health", "tokens",
        "context", "spent", "window", "cost_cents",
    ];
    // Of all tokens that were spent there may be more than the context holds.
    let occupancy = subject.reviewed.meant.context().settings.measured == MeterKind::Occupancy;
    each_part_with(subject, &members, |site, term| {
        let ExprKind::Compare(_, one, other) = &term.kind else { return };
        for (fact, number) in [(one, other), (other, one)] {
            let (Some(fact), Some(value)) = (fact.fact(), decimal(number)) else { continue };
            let message = if fact.is_one_of(&SHARES) && value > 1.0 {
                format!("`{}` is a fraction from 0 to 1", fact.text())
            } else if fact.is_one_of(&PERCENTAGES) && value > 0.0 && value < 1.0 {
                format!("`{}` is a percentage, from 0 to 100", fact.text())
            } else if let Some((message, meant)) = of_other_unit(fact, value, occupancy) {
                let help = format!("write `{meant}` if you intend that value");
                out.help(site.span(&number.range), message, help);
                continue;
            } else {
                continue;
            };
            let meant = if value > 1.0 { value / 100.0 } else { value * 100.0 };
            let help = format!("write `{meant}` if you intend that value");
            out.help(site.span(&number.range), message, help);
        }
    });
}

/// Whether an expression contains a division: most `/` and `%` are in texts.
fn divides(site: &Site<'_>) -> bool {
    let mut found = false;
    if memchr::memchr2(b'/', b'%', site.text.as_bytes()).is_some() {
        site.visit(|term| found |= matches!(term.kind, ExprKind::Arithmetic('/' | '%', ..)));
    }
    found
}

pub(crate) fn unguarded_division(subject: &Subject<'_>, out: &mut Findings) {
    let dividing = subject.sites.iter().filter(|it| it.condition && divides(it));
    for site in dividing.filter(|it| !subject.has_error(it)) {
        // `when` may ask for it where `satisfied` divides.
        let of_rule = subject.entry_of(site).map(|it| subject.sites_of(it));
        let mut compared = BTreeSet::new();
        of_rule.unwrap_or(std::slice::from_ref(site)).iter().for_each(|site| {
            site.visit(|term| {
                if let ExprKind::Compare(_, one, other) = &term.kind {
                    compared.extend([one.canonical(), other.canonical()]);
                }
            });
        });
        site.visit(|term| {
            let ExprKind::Arithmetic('/' | '%', _, divisor) = &term.kind else { return };
            let names = site.names(subject.names());
            let may_be_zero = divisor.fact().is_some_and(|it| it.number(names).range.0 <= 0);
            if !may_be_zero || compared.contains(&divisor.canonical()) {
                return;
            }
            let fact = site.part(&divisor.range);
            out.add(site.span(&divisor.range), format!("`{fact}` can be 0"), |it| {
                it.with_note("a division by 0 fails, so the rule is unknown")
                    .with_help(format!("check for 0 first: `{fact} > 0 && …`"))
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_POSITIONS, POSITIONS};
    use policyd_fact_table::members;

    #[test]
    fn every_position_is_known() {
        for row in members::tables() {
            // How far the transcript goes is a position, too.
            let is_position = row.doc.starts_with("Position of")
                || row.doc.starts_with("Its position")
                || row.doc.starts_with("How far");
            assert_eq!(POSITIONS.contains(&row.name), is_position, "{}", row.name);
            let path = format!("owner.{}", row.name);
            assert!(!is_position || AT_POSITIONS.iter().any(|it| path.contains(it)), "{path}");
        }
    }
}
