//! Facts about the clock, in UTC and in time zones.

use chrono::{DateTime, Datelike, Timelike, Utc};

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument};
use super::row::{FactRow, field, method, number};
use super::time_zones::utc_offset;
pub use super::time_zones::{ZoneRules, all_zones, zones};
use super::types::{Evidence::Neutral, PackName, Subject, TextForm, Type, Unit};

/// Rows of `now`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Now,
        "hour",
        Unit::Other,
        Neutral,
        ["Hour of the day, 0 to 23.", "now.hour >= 22"],
        |it, _| Ok(count(clock(it).hour())),
    )
    .with_range((0, 23)),
    number(
        Subject::Now,
        "minute",
        Unit::Other,
        Neutral,
        ["Minute of the hour, 0 to 59.", "now.hour == 16 && now.minute >= 30"],
        |it, _| Ok(count(clock(it).minute())),
    )
    .with_range((0, 59)),
    number(
        Subject::Now,
        "weekday",
        Unit::Other,
        Neutral,
        ["Day of the week, 1 is Monday.", "now.weekday >= 6"],
        |it, _| Ok(count(clock(it).weekday().number_from_monday())),
    )
    .with_range((1, 7)),
    field(
        Subject::Now,
        "date",
        Type::Text,
        Neutral,
        ["Date, `2026-01-31`.", "now.date < \"2027-01-01\""],
        |it, _| Ok(clock(it).format("%Y-%m-%d").to_string().into()),
    )
    .of_form(TextForm::Day),
    method(
        Subject::Now,
        "in_zone",
        &[(Type::Text, PackName::TimeZone.as_domain())],
        (Subject::Now.as_type(), Neutral),
        [
            "The clock in a time zone of the IANA database, written out.",
            "now.in_zone(\"Europe/Berlin\").hour >= 17",
        ],
        |it, args| {
            let name = text_argument(args, 0)?;
            let rules = it.context().zones.get(name.as_str());
            let rules = rules.ok_or_else(|| not_written_out(&name))?;
            Ok(it.part(ContextPart::Now(utc_offset(rules, it.context().now.millis())?)))
        },
    )
    .written_out(),
];

fn not_written_out(name: &str) -> FactError {
    format!("the rules of the pack do not name the time zone `{name}`: write it out").into()
}

/// What the clock shows, as if it was UTC.
fn clock(it: &Object) -> DateTime<Utc> {
    let offset = if let ContextPart::Now(offset) = it.part { offset } else { 0 };
    let millis = i64::from(offset).saturating_mul(1_000);
    DateTime::from_timestamp_millis(it.context().now.millis().saturating_add(millis))
        .unwrap_or_default()
}
