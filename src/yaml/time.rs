//! Points in time, durations with units, and their text forms. Does not contain: a clock.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::schema::DATE_PATTERN;

/// A point in time in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates the point `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339 (`2026-01-31T10:00:00Z`), a time without a zone (`2025-12-17T19:30:00`,
    /// taken as UTC, as amplihack writes it), or a date (its first instant in UTC).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Some(Self(at.timestamp_millis()));
        }
        if let Ok(at) = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f") {
            return Some(Self(at.and_utc().timestamp_millis()));
        }
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(Self(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis()))
    }

    /// Returns the point `duration` later. Saturates at the ends of the range.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the point `duration` earlier. Saturates at the ends of the range.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time from `earlier` to this point. Zero if the clock went backward.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the date and the minute in UTC, such as `2026-01-25 12:00Z`.
    #[must_use]
    pub fn minute(self) -> String {
        let text = self.to_string();
        match text.split_once('T') {
            Some((date, time)) => format!("{date} {}Z", time.get(..5).unwrap_or(time)),
            None => text,
        }
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp_millis(self.0) {
            Some(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true)),
            None => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("invalid timestamp"))
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": DATE_PATTERN })
    }
}

/// Reason why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationError {
    /// A number without a unit: `300`.
    NoUnit,
    /// Any other text: `5 minutes`, `-1s`, or nothing.
    Malformed,
    /// Longer than a hundred years.
    TooLong,
}

/// Units of a duration and their length in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];
const LONGEST_MILLIS: u64 = 100 * 366 * 86_400_000;

/// Parses a duration with units: `250ms`, `300s`, `5m`, `1h30m`, `24h`, `30d`.
///
/// # Errors
/// [`DurationError::NoUnit`] for a bare number, [`DurationError::TooLong`] for more than a hundred
/// years, [`DurationError::Malformed`] otherwise.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(DurationError::NoUnit);
    }
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(DurationError::NoUnit)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let number: u64 = number.parse().map_err(|_| DurationError::Malformed)?;
        let (_, length) =
            UNITS.iter().find(|(name, _)| *name == unit).ok_or(DurationError::Malformed)?;
        total = number
            .checked_mul(*length)
            .and_then(|part| total.checked_add(part))
            .filter(|sum| *sum <= LONGEST_MILLIS)
            .ok_or(DurationError::TooLong)?;
        rest = next;
    }
    if text.is_empty() { Err(DurationError::Malformed) } else { Ok(Duration::from_millis(total)) }
}

/// Other spellings of the units; a bare number is in seconds.
const SPELLINGS: [(&str, &[&str]); 6] = [
    ("ms", &["msec", "millisecond"]),
    ("s", &["", "sec", "second"]),
    ("m", &["min", "minute"]),
    ("h", &["hr", "hour"]),
    ("d", &["day"]),
    ("w", &["week"]),
];

/// Returns the duration that a text in another notation means: `60`, `5 minutes`, `1.5s`, `1h 30m`.
#[must_use]
pub fn meant_duration(text: &str) -> Option<String> {
    let joined: String = text.split_whitespace().collect();
    if parse_duration(&joined).is_ok() {
        return Some(joined);
    }
    let digits = joined.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(joined.len());
    let (number, unit) = joined.split_at_checked(digits)?;
    let unit = unit.to_ascii_lowercase();
    let single = unit.strip_suffix('s').unwrap_or(&unit);
    let is_spelled = |it: &&(&str, &[&str])| {
        it.0 == unit
            || it.1.contains(&unit.as_str())
            || it.1.iter().any(|it| *it == single && !it.is_empty())
    };
    let (name, _) = SPELLINGS.iter().find(is_spelled)?;
    let Some((whole, fraction)) = number.split_once('.') else {
        let written = format!("{number}{name}");
        return parse_duration(&written).is_ok().then_some(written);
    };
    let (_, length) = UNITS.iter().find(|(it, _)| it == name)?;
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let millis = parts.checked_add(fraction.parse().ok()?)?.checked_mul(*length)?;
    let written = duration_text(Duration::from_millis(millis.checked_div(scale)?));
    (millis.is_multiple_of(scale) && parse_duration(&written).is_ok()).then_some(written)
}

/// Returns the date that a text in another notation means: `2027/1/31`, `31.12.2027`, `12/31/2027`. `None` if day and
/// month could be the other way around.
#[must_use]
pub fn meant_date(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.trim().split(['/', '.', '-']).collect();
    let [one, two, three] = parts.as_slice() else { return None };
    let number = |it: &str| it.parse::<u32>().ok();
    let (year, month, day) = match (one.len(), three.len()) {
        (4, 1 | 2) => (one, number(two)?, number(three)?),
        (1 | 2, 4) if text.contains('.') => (three, number(two)?, number(one)?),
        (1 | 2, 4) if number(one)? > 12 => (three, number(two)?, number(one)?),
        (1 | 2, 4) if number(two)? > 12 => (three, number(one)?, number(two)?),
        _ => return None,
    };
    let date = format!("{year}-{month:02}-{day:02}");
    Timestamp::parse(&date).map(|_| date)
}

/// Formats a duration in its largest whole unit: `5m`, `300ms`, `36h`.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fitting = UNITS
        .iter()
        .rev()
        .find(|(name, length)| *name != "w" && millis >= *length && millis.is_multiple_of(*length));
    match fitting {
        Some((unit, length)) => format!("{}{unit}", millis / length),
        None => "0s".to_owned(),
    }
}

/// Returns the seconds of a duration, rounded up, so that a wait of this length is never too short.
#[must_use]
pub fn seconds_rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Formats a duration in its two largest units, rounded up to whole seconds: `4m59s`, `2h3m`, `1s`.
#[must_use]
pub fn short_text(duration: Duration) -> String {
    let mut rest = seconds_rounded_up(duration);
    let units = UNITS.iter().rev().filter(|(name, _)| !matches!(*name, "w" | "ms"));
    let mut parts = Vec::new();
    for (name, length) in units {
        let length = length / 1_000;
        if rest >= length || !parts.is_empty() {
            parts.push((rest / length, name));
            rest %= length;
        }
    }
    let told = parts.iter().take(2).filter(|(count, _)| *count > 0);
    let text: String = told.map(|(count, name)| format!("{count}{name}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Writes a duration rounded down to seconds, minutes, hours (up to two days), or days: `59s`, `4m`, `36h`, `3d`.
#[must_use]
pub fn rough_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let unit = match seconds {
        0..60 => 1,
        60..3_600 => 60,
        3_600..172_800 => 3_600,
        172_800.. => 86_400,
    };
    duration_text(Duration::from_secs(seconds - seconds % unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_units() {
        let millis = |text| parse_duration(text).map(|it| it.as_millis());
        assert_eq!(millis("300s"), Ok(300_000));
        assert_eq!(millis("1h30m"), Ok(5_400_000));
        assert_eq!(millis("250ms"), Ok(250));
        assert_eq!(millis("300"), Err(DurationError::NoUnit));
        assert_eq!(millis("0.5"), Err(DurationError::NoUnit));
        assert_eq!(millis("5 minutes"), Err(DurationError::Malformed));
        assert_eq!(millis(""), Err(DurationError::Malformed));
        assert_eq!(millis("99999999999999999999s"), Err(DurationError::Malformed));
        assert_eq!(millis("99999999999w"), Err(DurationError::TooLong));
    }

    #[test]
    fn other_notations_mean_a_duration() {
        for (text, meant) in [
            ("60", "60s"),
            ("5 minutes", "5m"),
            ("5min", "5m"),
            ("2 Hours", "2h"),
            ("30 secs", "30s"),
            ("1 day", "1d"),
            ("250 msec", "250ms"),
            ("1.5s", "1500ms"),
            ("0.5 h", "30m"),
            ("1h 30m", "1h30m"),
        ] {
            assert_eq!(meant_duration(text).as_deref(), Some(meant), "{text}");
        }
        for unclear in ["", "s", "-5s", "5 parsecs", "1.2.3s", "0.3333333 ms", "never", "9999999w"]
        {
            assert_eq!(meant_duration(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn other_notations_mean_a_date() {
        for (text, meant) in [
            ("2027/1/5", "2027-01-05"),
            ("2027-1-5", "2027-01-05"),
            ("5.1.2027", "2027-01-05"),
            ("12/31/2027", "2027-12-31"),
            ("31/12/2027", "2027-12-31"),
        ] {
            assert_eq!(meant_date(text).as_deref(), Some(meant), "{text}");
        }
        for unclear in ["05/01/2027", "31.12.27", "2027-13-01", "2027-02-30", "soon", ""] {
            assert_eq!(meant_date(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn duration_text_reads_back() {
        for text in ["250ms", "90s", "5m", "36h", "2d", "0s"] {
            assert_eq!(duration_text(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn rough_texts_have_one_unit() {
        for (text, rough) in [
            ("900ms", "0s"),
            ("59s", "59s"),
            ("299s", "4m"),
            ("7384s", "2h"),
            ("2159m", "35h"),
            ("49h", "2d"),
        ] {
            assert_eq!(rough_text(parse_duration(text).unwrap()), rough);
        }
    }

    #[test]
    fn short_texts_have_two_units_and_no_fraction() {
        for (text, short) in [
            ("299s", "4m59s"),
            ("300s", "5m"),
            ("1ms", "1s"),
            ("59900ms", "1m"),
            ("7384s", "2h3m"),
            ("36h", "1d12h"),
            ("30d", "30d"),
            ("0s", "0s"),
        ] {
            assert_eq!(short_text(parse_duration(text).unwrap()), short);
        }
    }

    #[test]
    fn timestamps_read_rfc3339_seed_format_and_dates() {
        let at = Timestamp::parse("2025-12-17T19:30:00Z").unwrap();
        assert_eq!(Timestamp::parse("2025-12-17T19:30:00"), Some(at));
        assert_eq!(Timestamp::parse("2025-12-17T20:30:00+01:00"), Some(at));
        assert_eq!(at.to_string(), "2025-12-17T19:30:00.000Z");
        assert_eq!(Timestamp::parse("2025-12-17").unwrap().to_string(), "2025-12-17T00:00:00.000Z");
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn a_clock_that_went_backwards_gives_zero() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(5));
        assert_eq!(late.since(early).as_millis(), 4);
        assert_eq!(early.since(late).as_millis(), 0);
    }
}
