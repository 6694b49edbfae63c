//! Delays before a retry. Contains: the arithmetic, and the parsers of delays in error texts.
//!
//! | known | delay |
//! |---|---|
//! | `Retry-After: 30`, `Retry-After: Wed, 21 Oct 2015 07:28:00 GMT` | as given, the last one in the text, at most `Waits::longest` |
//! | `try again in 1m26.5s`, `try again in 5 minutes` | as given |
//! | `limit reached\|1795305600` | until this Unix time in seconds or milliseconds |
//! | `resets 4am`, `resets 3:30pm (Europe/Berlin)` | until this time plus `Waits::margin`; tomorrow if it is past |
//! | requests per minute | `Waits::per_minute` seconds divided by them, from `Waits::least` to `Waits::most` |
//! | attempt `n`, from 1 | `initial · multiplier^(n-1)`, at most `cap`; reduced by a random share up to `jitter`, so that calls that failed together do not retry together |

use std::time::Duration;

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use policyd_yaml::time::Timestamp;

/// Retry policy of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Maximum number of retries.
    pub max: u32,
    /// Delay before the first retry.
    pub initial: Duration,
    /// Backoff multiplier: delay *n* is `initial · multiplier^(n-1)`, at most `cap`.
    pub multiplier: f64,
    /// Maximum delay.
    pub cap: Duration,
    /// Maximum share of a delay that is subtracted at random, 0 to 1.
    pub jitter: f64,
}

impl Default for Retry {
    /// Defaults of loki-mode's `rate_limit_handling`: 5 s, doubling up to 300 s, 5 attempts.
    fn default() -> Self {
        Self {
            max: 5,
            initial: Duration::from_secs(5),
            multiplier: 2.0,
            cap: Duration::from_secs(300),
            jitter: 0.0,
        }
    }
}

impl Retry {
    /// Returns the delay before attempt `number`, from 1. `chance` from 0 to 1 scales the jitter; 0
    /// means no jitter.
    #[must_use]
    pub fn wait(&self, number: u32, chance: f64) -> Duration {
        if self.initial.is_zero() {
            return Duration::ZERO;
        }
        let power = i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX);
        // For many attempts the power is infinite, and the cap limits it as well.
        let full = self.initial.as_secs_f64() * self.multiplier.powi(power);
        let capped = full.min(self.cap.as_secs_f64());
        let taken = self.jitter.clamp(0.0, 1.0) * chance.clamp(0.0, 1.0);
        Duration::try_from_secs_f64(capped * (1.0 - taken)).unwrap_or(self.cap)
    }
}

/// Policy for delays that a server requests in its error texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAfterPolicy {
    /// Maximum delay that is honored.
    pub max_retry_after: Duration,
    /// Additional delay after the reset time of a limit.
    pub reset_margin: Duration,
    /// Time that is divided by the permitted requests per minute.
    pub per_minute: Duration,
    /// Minimum delay by requests per minute.
    pub min_delay: Duration,
    /// Maximum delay by requests per minute.
    pub max_delay: Duration,
}

impl Default for RetryAfterPolicy {
    /// Defaults of loki-mode: 120 s after a reset; 7200 s divided by the requests per minute, from
    /// 60 s to 300 s.
    fn default() -> Self {
        Self {
            max_retry_after: Duration::from_secs(86_400),
            reset_margin: Duration::from_secs(120),
            per_minute: Duration::from_secs(7_200),
            min_delay: Duration::from_secs(60),
            max_delay: Duration::from_secs(300),
        }
    }
}

impl RetryAfterPolicy {
    /// Returns the delay that a text requests: the last `Retry-After`, otherwise the last "try
    /// again in", otherwise the last end of a limit. `None` if the text contains none.
    #[must_use]
    pub fn retry_after(&self, text: &str, now: Timestamp) -> Option<Duration> {
        let header = retry_after(text, now);
        let asked = header.or_else(|| after_each(text, "try again in").filter_map(in_words).last());
        let ended = || after_each(text, "reached|").filter_map(unix_time).last();
        let asked = asked.or_else(|| ended().map(|it| it.since(now)));
        asked.map(|it| it.min(self.max_retry_after))
    }

    /// Returns the time zone of the last reset time in a text: `Europe/Berlin`.
    #[must_use]
    pub fn reset_zone(text: &str) -> Option<&str> {
        let rest = after_each(text, "resets").filter(|it| hour_of_day(it).is_some()).last()?;
        let (_, zone) = rest.lines().next()?.split_once('(')?;
        zone.split_once(')').map(|(zone, _)| zone)
    }

    /// Returns the delay until the last `resets 3:30pm` in a text. `None` if the text has no time
    /// of day. `clock` returns the time since midnight that the wall clock shows after a delay.
    #[must_use]
    pub fn reset_time(&self, text: &str, clock: &dyn Fn(Duration) -> Duration) -> Option<Duration> {
        const DAY: Duration = Duration::from_secs(86_400);
        let at = after_each(text, "resets").filter_map(hour_of_day).last()?;
        let now = clock(Duration::ZERO);
        let next = if at > now { at } else { at.saturating_add(DAY) };
        let wait = next.saturating_sub(now);
        // Daylight saving time can begin or end meanwhile.
        let ahead = clock(wait).saturating_add(DAY).saturating_sub(at);
        let ahead = ahead.checked_sub(DAY).unwrap_or(ahead);
        let wait = if ahead > DAY / 2 {
            wait.saturating_add(DAY.saturating_sub(ahead))
        } else {
            wait.saturating_sub(ahead)
        };
        Some(wait.saturating_add(self.reset_margin))
    }

    /// Returns the delay for a provider that permits this number of requests per minute.
    #[must_use]
    pub fn by_requests_per_minute(&self, requests: u32) -> Duration {
        let share = self.per_minute.as_secs().checked_div(u64::from(requests));
        let share = share.map_or(self.max_delay, Duration::from_secs);
        share.min(self.max_delay).max(self.min_delay)
    }
}

/// Returns the delay of the last `Retry-After`.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let asked = after_each(text, "retry").filter_map(|rest| {
        let rest = rest.strip_prefix(['-', '_', ' ']).unwrap_or(rest);
        let value = strip_prefix_any_case(rest, "after")?;
        let value = value.trim_start_matches(['"', '\'', ':', '=', ' ', '\t']);
        seconds(value).or_else(|| until_date(value, now))
    });
    asked.last()
}

/// Parses a duration at the beginning of a text: ` 20s`, ` 1m26.5s`, ` 5 minutes`, ` 1 hour and 30
/// minutes`.
fn in_words(text: &str) -> Option<Duration> {
    let (mut rest, mut all) = (text, None);
    loop {
        let start = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let start = start.strip_prefix("and ").unwrap_or(start);
        let digits = start.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(start.len());
        let (number, after) = start.split_at_checked(digits)?;
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let millis = match unit.to_ascii_lowercase().as_str() {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
            "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3.6e6,
            "d" | "day" | "days" => 8.64e7,
            _ => return all,
        };
        let Ok(number) = number.parse::<f64>() else { return all };
        let one = Duration::try_from_secs_f64(number * millis / 1e3).unwrap_or(Duration::MAX);
        all = Some(all.unwrap_or(Duration::ZERO).saturating_add(one));
        rest = after;
    }
}

/// Parses a Unix time at the beginning of a text, in seconds, or in milliseconds if it has thirteen
/// digits.
fn unix_time(text: &str) -> Option<Timestamp> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    let number: i64 = digits.parse().ok()?;
    match digits.len() {
        9..=11 => Some(Timestamp::from_millis(number.saturating_mul(1_000))),
        12..=14 => Some(Timestamp::from_millis(number)),
        _ => None,
    }
}

/// Returns the rest of the text after each occurrence of an ASCII word, ignoring case.
fn after_each<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = &'t str> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.filter_map(move |at| strip_prefix_any_case(text.get(at..)?, word))
}

fn strip_prefix_any_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Parses an integer number of seconds at the beginning of a text. Saturates.
fn seconds(text: &str) -> Option<Duration> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().filter(|it| !it.is_empty())?;
    Some(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

/// Returns the time until an HTTP date: `Wed, 21 Oct 2015 07:28:00 GMT`.
fn until_date(text: &str, now: Timestamp) -> Option<Duration> {
    let line = text.lines().next()?;
    let end = line.find("GMT").map(|at| at + "GMT".len())?;
    let at = DateTime::parse_from_rfc2822(line.get(..end)?).ok()?;
    Some(Timestamp::from_millis(at.timestamp_millis()).since(now))
}

/// Parses a time of day on a 12-hour clock at the beginning of a text: ` 4am`, ` at 3:30pm`.
fn hour_of_day(text: &str) -> Option<Duration> {
    let text = text.trim_start();
    let text = strip_prefix_any_case(text, "at ").unwrap_or(text).trim_start();
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() <= 2);
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (hour, rest) = text.split_at_checked(digits)?;
    let (minute, rest) = match rest.strip_prefix(':') {
        Some(rest) => rest.split_at_checked(2)?,
        None => ("0", rest),
    };
    let half = rest.trim_start().get(..2)?;
    let later = if half.eq_ignore_ascii_case("pm") { 12 } else { 0 };
    let named = later > 0 || half.eq_ignore_ascii_case("am");
    let hour = number(hour).filter(|it| (1..=12).contains(it) && named)?;
    let minute = number(minute).filter(|it| *it < 60)?;
    Some(Duration::from_secs((hour % 12 + later) * 3_600 + minute * 60))
}

/// Pause after consecutive failures of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPause {
    /// Number of consecutive failures at which the pause begins.
    pub after: u32,
    /// Duration of the pause, and its growth.
    pub retry: Retry,
}

impl Default for RetryPause {
    /// Defaults of shipwright: from the third failure on, 5 minutes, doubling up to 480.
    fn default() -> Self {
        let minutes = |it: u64| Duration::from_secs(it * 60);
        let retry = Retry { initial: minutes(5), cap: minutes(480), ..Retry::default() };
        Self { after: 3, retry }
    }
}

impl RetryPause {
    /// Returns the pause after consecutive failures of one class. Zero below the threshold.
    #[must_use]
    pub fn after(&self, in_a_row: u32) -> Duration {
        match in_a_row.checked_sub(self.after) {
            Some(beyond) => self.retry.wait(beyond.saturating_add(1), 0.0),
            None => Duration::ZERO,
        }
    }
}

/// Heartbeat policy: when a worker counts as dead and its claims are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatPolicy {
    /// Maximum time between two heartbeats.
    pub silence: Duration,
}

impl Default for HeartbeatPolicy {
    /// Default of loki-mode: ten minutes without a heartbeat.
    fn default() -> Self {
        Self { silence: Duration::from_secs(600) }
    }
}

impl HeartbeatPolicy {
    /// Returns whether a process without a heartbeat for this time counts as dead.
    #[must_use]
    pub fn is_dead(&self, silence: Duration) -> bool {
        silence > self.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_cap_and_never_overflow() {
        let retry = Retry::default();
        let waits: Vec<u64> = (0..=8).map(|it| retry.wait(it, 0.0).as_secs()).collect();
        assert_eq!(waits, [5, 5, 10, 20, 40, 80, 160, 300, 300]);
        for number in [59, 64, 1_100, u32::MAX] {
            assert_eq!(retry.wait(number, 0.0), retry.cap, "{number}");
        }
        let never = Retry { initial: Duration::ZERO, ..retry };
        assert_eq!(never.wait(u32::MAX, 1.0), Duration::ZERO);
        let constant = Retry { multiplier: 1.0, ..retry };
        assert_eq!(constant.wait(u32::MAX, 0.0), Duration::from_secs(5));
    }

    #[test]
    fn chance_takes_its_share_below_the_cap_too() {
        let retry = Retry { jitter: 0.2, ..Retry::default() };
        let at = |chance: f64| retry.wait(20, chance).as_secs();
        assert_eq!([at(0.0), at(0.5), at(1.0), at(7.0), at(-1.0)], [300, 270, 240, 240, 300]);
    }

    #[test]
    fn the_last_retry_after_counts() {
        let now = Timestamp::parse("2015-10-21T07:27:00Z").unwrap();
        let read =
            |text: &str| RetryAfterPolicy::default().retry_after(text, now).map(|it| it.as_secs());
        for (text, wait) in [
            ("Retry-After: 30\nRetry-After: 90", Some(90)),
            ("retry-after:7", Some(7)),
            ("{\"retry_after\": 12}", Some(12)),
            ("\"retryAfter\":\"12\"", Some(12)),
            ("please retry after 45 seconds", Some(45)),
            ("Retry-After: 9999999", Some(86_400)),
            ("Retry-After: 99999999999999999999999", Some(86_400)),
            ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", Some(60)),
            ("retry-after: Wed, 21 Oct 2015 07:00:00 GMT\r\n", Some(0)),
            ("Rate limit reached. Please try again in 20s.", Some(20)),
            ("please try again in 1m26.5s", Some(86)),
            ("Try again in 5 minutes, or later", Some(300)),
            ("try again in 1 hour and 30 minutes", Some(5_400)),
            ("try again in 450ms", Some(0)),
            ("try again in 20s\nRetry-After: 7", Some(7)),
            ("try again in a few minutes", None),
            ("try again in 5", None),
            ("Claude AI usage limit reached|1445412480", Some(60)),
            ("Claude AI usage limit reached|1445412480000", Some(60)),
            ("limit reached|1445000000", Some(0)),
            ("limit reached|12", None),
            ("Retry-After: tomorrow", None),
            ("Retry-After: -5", None),
            ("retry later", None),
            ("ümlaut retry", None),
            ("", None),
        ] {
            assert_eq!(read(text), wait, "{text}");
        }
    }

    #[test]
    fn the_clock_of_twelve_hours_is_read() {
        let steady =
            |at: Duration, wait: Duration| Duration::from_secs((at + wait).as_secs() % 86_400);
        let of_day = |text: &str| {
            Duration::from_secs(
                Timestamp::parse(&format!("1970-01-01T{text}Z")).unwrap().millis().unsigned_abs()
                    / 1_000,
            )
        };
        for (now, text, wait) in [
            ("08:00:00", "resets 10am", Some(7_320)),
            ("10:08:09", "resets 11am", Some(3_231)),
            ("14:00:00", "resets 3:30pm", Some(5_520)),
            ("14:00:00", "Resets at 3:30 PM (UTC)", Some(5_520)),
            ("23:00:00", "limit reached · resets 12am", Some(3_720)),
            ("11:00:00", "resets 12pm", Some(3_720)),
            ("00:30:00", "resets 12:31am", Some(180)),
            ("09:00:00", "resets 8am", Some(23 * 3_600 + 120)),
            ("04:00:00", "resets 4am", Some(86_400 + 120)),
            ("04:00:00", "resets 4am, resets 5am", Some(3_720)),
            ("08:09:08", "resets 10am", Some(6_652 + 120)),
            ("04:00:00", "resets 13pm", None),
            ("04:00:00", "resets 0am", None),
            ("04:00:00", "resets 4:60am", None),
            ("04:00:00", "resets 4", None),
            ("04:00:00", "resets 4:", None),
            ("04:00:00", "resets the counter at 4am", None),
        ] {
            let found =
                RetryAfterPolicy::default().reset_time(text, &|wait| steady(of_day(now), wait));
            assert_eq!(found.map(|it| it.as_secs()), wait, "{now} {text}");
        }
    }

    #[test]
    fn the_zone_of_a_reset_time_is_the_one_beside_it() {
        for (text, zone) in [
            ("resets 3am (America/New_York)", Some("America/New_York")),
            ("limit reached ∙ resets at 3:30pm (Europe/Berlin)", Some("Europe/Berlin")),
            ("resets 3am\n(Europe/Berlin)", None),
            ("resets soon (Europe/Berlin)", None),
            ("resets 3am (Europe", None),
            ("(Europe/Berlin) resets 3am", None),
        ] {
            assert_eq!(RetryAfterPolicy::reset_zone(text), zone, "{text}");
        }
    }

    #[test]
    fn requests_per_minute_are_clamped() {
        let waits = RetryAfterPolicy::default();
        let table = [(0, 300), (1, 300), (24, 300), (50, 144), (60, 120), (120, 60), (500, 60)];
        for (requests, wait) in table {
            assert_eq!(waits.by_requests_per_minute(requests).as_secs(), wait, "{requests}");
        }
    }

    #[test]
    fn pauses_double_from_the_third_failure_on() {
        let minutes: Vec<u64> =
            (0..=11).map(|it| RetryPause::default().after(it).as_secs() / 60).collect();
        assert_eq!(minutes, [0, 0, 0, 5, 10, 20, 40, 80, 160, 320, 480, 480]);
        assert_eq!(RetryPause::default().after(u32::MAX).as_secs(), 480 * 60);
    }

    #[test]
    fn silence_up_to_the_longest_is_life() {
        let dead = |seconds| HeartbeatPolicy::default().is_dead(Duration::from_secs(seconds));
        assert_eq!([dead(0), dead(600), dead(601)], [false, false, true]);
    }
}
