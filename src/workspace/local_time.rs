//! What a clock on the wall shows: the time of day where this machine stands, in a named zone of its
//! time zone database, or by a POSIX rule.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tz::TimeZone;

use policyd_state::retry::RetryAfterPolicy;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Where Unix machines keep their time zone database.
const ZONES: &str = "/usr/share/zoneinfo";
/// The zone of this machine.
const OWN_ZONE: &str = "/etc/localtime";
/// A zone is a few kilobytes.
const ZONE_BYTES_MAX: usize = 64 * 1024;
const DAY_SECONDS: i64 = 86_400;
/// The name of a zone that is read and shown, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The clock on a wall: in a named zone, else where this machine stands.
pub struct WallClock {
    now: Timestamp,
    /// By UTC, where the machine says nothing about its zone.
    zone: TimeZone,
}

impl WallClock {
    /// The wait until the reset time of a text. `report` receives a message if a time zone is unknown.
    pub fn until_reset(
        world: &dyn World,
        now: Timestamp,
        waits: &RetryAfterPolicy,
        text: &str,
        mut report: impl FnMut(&str),
    ) -> Option<Duration> {
        waits.reset_time(text, &|wait| wait)?;
        let clock = Self::new(world, now, RetryAfterPolicy::reset_zone(text), &mut report);
        waits.reset_time(text, &|wait| clock.after(wait))
    }

    fn new(
        world: &dyn World,
        now: Timestamp,
        zone: Option<&str>,
        report: &mut dyn FnMut(&str),
    ) -> Self {
        let variable = world.env("TZ").filter(|it| !it.is_empty());
        let variable = variable.as_deref().map(|it| it.trim_start_matches(':'));
        for name in [zone, variable].into_iter().flatten() {
            if let Some(zone) = named_zone(world, name) {
                return Self { now, zone };
            }
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            report(&format!(
                "the time zone {name:?} is unknown, so reset times are read by the zone of this machine; \
                 help: install the time zone database, or correct `TZ`"
            ));
        }
        let zone = zone_of(world, Path::new(OWN_ZONE)).unwrap_or_else(TimeZone::utc);
        Self { now, zone }
    }

    /// The time since midnight that the clock shows after a wait, by the offset that applies then.
    fn after(&self, wait: Duration) -> Duration {
        let wait = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        let seconds = self.now.millis().div_euclid(1_000).saturating_add(wait);
        let offset = self.zone.find_local_time_type(seconds);
        let offset = offset.map_or(0, |it| i64::from(it.ut_offset()));
        let seconds = seconds.saturating_add(offset).rem_euclid(DAY_SECONDS);
        Duration::from_secs(seconds.unsigned_abs())
    }
}

/// Returns the offset of the local time from UTC at a point in time, in seconds. An unknown zone counts as UTC.
pub fn utc_offset(world: &dyn World, at: Timestamp) -> i32 {
    let clock = WallClock::new(world, at, None, &mut |_| {});
    let found = clock.zone.find_local_time_type(at.millis().div_euclid(1_000));
    found.map_or(0, |it| it.ut_offset())
}

/// Returns the time that the local clock shows at a point in time, as if it was UTC.
pub fn local(world: &dyn World, at: Timestamp) -> Timestamp {
    let offset = i64::from(utc_offset(world, at)).saturating_mul(1_000);
    Timestamp::from_millis(at.millis().saturating_add(offset))
}

/// What a clock without daylight saving time shows after a wait.
pub fn later(time_of_day: Duration, wait: Duration) -> Duration {
    let seconds = time_of_day.saturating_add(wait).as_secs();
    Duration::from_secs(seconds % DAY_SECONDS.unsigned_abs())
}

/// The zone of a name of the database, or of a rule as POSIX writes it: `EST5EDT,M3.2.0,M11.1.0`.
fn named_zone(world: &dyn World, name: &str) -> Option<TimeZone> {
    if matches!(name, "UTC" | "GMT") {
        return Some(TimeZone::utc());
    }
    zone_file(name).and_then(|it| zone_of(world, &it)).or_else(|| zone_of_rule(name))
}

/// Returns the file of a time zone. `None` if the text cannot be the name of a zone.
fn zone_file(name: &str) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/');
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    named.then(|| Path::new(ZONES).join(name))
}

fn zone_of(world: &dyn World, file: &Path) -> Option<TimeZone> {
    TimeZone::from_tz_data(&world.read(file, ZONE_BYTES_MAX).ok()?).ok()
}

/// The zone of a POSIX rule. The crate reads one only at the end of a zone file (version 2), so the rule
/// is put behind an otherwise empty one.
fn zone_of_rule(rule: &str) -> Option<TimeZone> {
    let plain = |it: char| it.is_ascii_graphic();
    if rule.len() > NAME_CHARS_MAX || !rule.chars().all(plain) {
        return None;
    }
    TimeZone::from_tz_data(&rule_file(rule)).ok()
}

/// `TZif`, version 2: one local time type without an offset, and the rule.
fn rule_file(rule: &str) -> Vec<u8> {
    let counts = [0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat();
    let block = [&[0_u8; 6][..], b"UTC\0"].concat();
    let start = [b"TZif2".as_slice(), &[0; 15]].concat();
    let once = [start, counts, block].concat();
    [&once, &once, format!("\n{rule}\n").as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";

    /// The wait until 4am, and what was reported.
    fn wait(world: &FakeWorld, now: &str, zone: &str) -> (u64, String) {
        let text = format!("resets 4am{zone}");
        let (now, waits) = (Timestamp::parse(now).unwrap(), RetryAfterPolicy::default());
        let mut said = String::new();
        let found = WallClock::until_reset(world, now, &waits, &text, |it| said.push_str(it));
        (found.unwrap().as_secs() - 120, said)
    }

    #[test]
    fn a_named_zone_comes_before_the_own_one_and_both_before_utc() {
        let world = FakeWorld::new();
        let hours = |zone| wait(&world, "2026-02-01T12:00:00Z", zone).0 / 3600;
        assert_eq!(hours(" (Asia/Tokyo)"), 16, "no zone is known");
        world.put(OWN_ZONE, rule_file("XXX5"));
        world.put("/usr/share/zoneinfo/Asia/Tokyo", rule_file("XXX-9"));
        assert_eq!(hours(""), 21);
        assert_eq!(hours(" (Asia/Tokyo)"), 7);
        assert_eq!(hours(" (../../etc/passwd)"), 21);
        world.set_env("TZ", ":Asia/Tokyo");
        assert_eq!(hours(""), 7);
    }

    #[test]
    fn a_reset_time_is_read_by_the_offset_that_applies_then() {
        let world = FakeWorld::new();
        world.set_env("TZ", NEW_YORK);
        for (midnight, seconds) in
            [("2026-03-08T05:00:00Z", 10_800), ("2026-11-01T04:00:00Z", 18_000)]
        {
            assert_eq!(wait(&world, midnight, ""), (seconds, String::new()), "{midnight}");
        }
        assert_eq!(wait(&world, "2026-06-01T04:00:00Z", "").0, 14_400);
    }

    #[test]
    fn an_unknown_zone_is_reported() {
        let world = FakeWorld::new();
        world.set_env("TZ", "UTC");
        let now = "2026-02-01T00:00:00Z";
        assert_eq!(wait(&world, now, ""), (14_400, String::new()));
        let (seconds, said) = wait(&world, now, " (Mars/Base\u{1b})");
        assert_eq!(seconds, 14_400);
        assert!(said.contains(r#""Mars/Base\u{1b}" is unknown"#), "{said}");
        world.set_env("TZ", "Nowhere");
        assert!(wait(&world, now, "").1.contains("\"Nowhere\" is unknown"));
    }
}
