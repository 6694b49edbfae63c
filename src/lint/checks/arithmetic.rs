//! Checks of numbers in expressions: what they are divided by and compared with.

use std::collections::BTreeSet;

use super::terms::each_part;
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::types::{Names, Unit};
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

/// Whether a fact is a position in the transcript; none if it is not a number, or one that can be anything.
fn is_position(term: &Expr, names: &Names) -> Option<bool> {
    let unit = term.fact()?.unit(names)?;
    let is_known = !matches!(unit, Unit::Dollars | Unit::Share | Unit::Unknown);
    is_known.then_some(unit == Unit::Position)
}

pub(crate) fn position_and_number(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::Compare(_, one, other) = &term.kind else { return };
        let names = site.names(subject.names());
        let (Some(left), Some(right)) = (is_position(one, names), is_position(other, names)) else {
            return;
        };
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

/// Why a number is most likely written in another unit than the fact has, and the number that is meant. `occupancy`:
/// the context holds all tokens that are counted.
fn of_other_unit(
    fact: Fact<'_>,
    unit: Unit,
    value: f64,
    occupancy: bool,
) -> Option<(&'static str, f64)> {
    let is_fraction = value > 0.0 && value < 1.0;
    let is_bounded = unit == Unit::PercentOfWhole || (occupancy && fact.is("context.percent"));
    match unit {
        Unit::Share if value > 1.0 => Some(("is a fraction from 0 to 1", value / 100.0)),
        Unit::Percent | Unit::PercentOfWhole if is_fraction => {
            Some(("is a percentage, from 0 to 100", value * 100.0))
        }
        Unit::Percent | Unit::PercentOfWhole if is_bounded && value > 100.0 => {
            let meant = if value > 1000.0 { 100.0 } else { value / 10.0 };
            Some(("is a percentage from 0 to 100", meant))
        }
        Unit::ContextTokens if value > 0.0 && value < 1000.0 => {
            Some(("counts tokens, not thousands of tokens", value * 1000.0))
        }
        Unit::Cents if value.fract() != 0.0 => Some(("is in cents, not in dollars", value * 100.0)),
        Unit::Share
        | Unit::Percent
        | Unit::PercentOfWhole
        | Unit::ContextTokens
        | Unit::Cents
        | Unit::Count
        | Unit::Position
        | Unit::Dollars
        | Unit::Other
        | Unit::Unknown => None,
    }
}

/// The number that a part is.
fn decimal(term: &Expr) -> Option<f64> {
    if let ExprKind::Int(value) = &term.kind {
        return i32::try_from(*value).ok().map(f64::from);
    }
    if let ExprKind::Decimal(text) = &term.kind { text.parse().ok() } else { None }
}

pub(crate) fn share_and_percent(subject: &Subject<'_>, out: &mut Findings) {
    // Of all tokens that were spent there may be more than the context holds.
    let occupancy = subject.reviewed.meant.context().settings.measured == MeterKind::Occupancy;
    each_part(subject, |site, term| {
        let ExprKind::Compare(_, one, other) = &term.kind else { return };
        for (fact, number) in [(one, other), (other, one)] {
            let (Some(fact), Some(value)) = (fact.fact(), decimal(number)) else { continue };
            let unit = fact.unit(site.names(subject.names()));
            let found = unit.and_then(|it| of_other_unit(fact, it, value, occupancy));
            let Some((what, meant)) = found else { continue };
            let fix =
                site.write(&number.range, meant.to_string()).because(" if you intend that value");
            out.help(site.span(&number.range), format!("`{}` {what}", fact.text()), fix);
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
    use policyd_fact_table::members;
    use policyd_fact_table::types::Unit;

    #[test]
    fn every_position_has_the_unit() {
        for row in members::tables() {
            // How far the transcript goes is a position, too.
            let is_position = row.doc.starts_with("Position of")
                || row.doc.starts_with("Its position")
                || row.doc.starts_with("How far");
            assert_eq!(row.unit == Some(Unit::Position), is_position, "{}", row.name);
        }
    }
}
