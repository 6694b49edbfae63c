//! Parsers of argument values, for `clap`: durations, times of day, shares, amounts of money.

use std::time::Duration;

use chrono::{NaiveTime, Timelike as _};

use policyd_state::run::budget;
use policyd_yaml::time::parse_duration;

/// Why the value of an argument is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    /// Contains a valid example.
    #[error("expected a number with a unit, such as `90s` or `{0}`")]
    Duration(&'static str),
    #[error("expected a duration such as `90s`, or whole seconds")]
    DurationOrSeconds,
    #[error("expected a time of day, such as `14:05:00`")]
    TimeOfDay,
    #[error("expected a number from 0 to 1, such as `0.35`")]
    Fraction,
    #[error("expected an amount greater than 0, such as `10` or `2.50`")]
    Amount,
}

/// Parses a duration with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, ArgumentError> {
    parse_duration(text).map_err(|_| ArgumentError::Duration("20m"))
}

/// Parses a time of day into the time since midnight.
pub(super) fn time_of_day(text: &str) -> Result<Duration, ArgumentError> {
    let read = NaiveTime::parse_from_str(text, "%H:%M:%S");
    let read = read.or_else(|_| NaiveTime::parse_from_str(text, "%H:%M"));
    let time = read.map_err(|_| ArgumentError::TimeOfDay)?;
    Ok(Duration::from_secs(u64::from(time.num_seconds_from_midnight())))
}

/// Parses a duration with its unit, for `breaker`.
pub(super) fn time(text: &str) -> Result<Duration, ArgumentError> {
    parse_duration(text).map_err(|_| ArgumentError::Duration("10m"))
}

/// Parses a duration with its unit, or whole seconds as in a `Retry-After` header.
pub(super) fn time_or_seconds(text: &str) -> Result<Duration, ArgumentError> {
    let seconds = text.trim().parse().map(Duration::from_secs);
    seconds.or_else(|_| parse_duration(text)).map_err(|_| ArgumentError::DurationOrSeconds)
}

/// Parses a number from 0 to 1.
pub(super) fn fraction(text: &str) -> Result<f64, ArgumentError> {
    let value = text.parse::<f64>().ok().filter(|it| (0.0..=1.0).contains(it));
    value.ok_or(ArgumentError::Fraction)
}

/// Parses an amount of money greater than 0.
pub(super) fn money(text: &str) -> Result<f64, ArgumentError> {
    let limit = budget::parse(text).filter(|it| *it > 0.0);
    limit.ok_or(ArgumentError::Amount)
}
