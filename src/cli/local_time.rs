//! What a clock on the wall shows: the time of day where this machine stands, or in a named zone of
//! its time zone database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tz::TimeZone;

use crate::time::Timestamp;
use crate::world::World;

/// Where Unix machines keep their time zone database.
const ZONES: &str = "/usr/share/zoneinfo";
/// The zone of this machine.
const OWN_ZONE: &str = "/etc/localtime";
/// A zone is a few kilobytes.
const ZONE_BYTES_MAX: usize = 64 * 1024;
const DAY_SECONDS: i64 = 86_400;

/// The time since midnight in the named zone, else where this machine stands; by UTC, where neither is
/// known.
pub(super) fn time_of_day(world: &dyn World, now: Timestamp, zone: Option<&str>) -> Duration {
    let utc_seconds = now.millis().div_euclid(1_000);
    let own = || {
        let named = world.env("TZ").filter(|it| !it.is_empty());
        let named = named.and_then(|it| zone_file(it.trim_start_matches(':')));
        named.unwrap_or_else(|| PathBuf::from(OWN_ZONE))
    };
    let named = zone.and_then(zone_file).and_then(|it| offset(world, &it, utc_seconds));
    let offset = named.or_else(|| offset(world, &own(), utc_seconds)).unwrap_or(0);
    let seconds = utc_seconds.saturating_add(offset).rem_euclid(DAY_SECONDS);
    Duration::from_secs(seconds.unsigned_abs())
}

/// The file of a zone; nothing for what is no name of one.
fn zone_file(name: &str) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/');
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    named.then(|| Path::new(ZONES).join(name))
}

/// Seconds east of Greenwich.
fn offset(world: &dyn World, file: &Path, utc_seconds: i64) -> Option<i64> {
    let bytes = world.read(file, ZONE_BYTES_MAX).ok()?;
    let zone = TimeZone::from_tz_data(&bytes).ok()?;
    Some(zone.find_local_time_type(utc_seconds).ok()?.ut_offset().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::fake::FakeWorld;

    /// A zone without summer time: `TZif`, version 2, one local time type, and its rule.
    fn zone(offset_seconds: i32, rule: &str) -> Vec<u8> {
        let header = [0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat();
        let block = [&offset_seconds.to_be_bytes()[..], &[0, 0], b"XXX\0"].concat();
        let start = [b"TZif2".as_slice(), &[0; 15]].concat();
        let once = [start, header, block].concat();
        [&once, &once, format!("\n{rule}\n").as_bytes()].concat()
    }

    #[test]
    fn a_named_zone_comes_before_the_own_one_and_both_before_utc() {
        let world = FakeWorld::new();
        let now = Timestamp::parse("2026-02-01T12:00:00Z").unwrap();
        let hours = |zone| time_of_day(&world, now, zone).as_secs() / 3600;
        assert_eq!(hours(Some("Asia/Tokyo")), 12, "no zone is known");
        world.put(OWN_ZONE, zone(-5 * 3600, "XXX5"));
        world.put("/usr/share/zoneinfo/Asia/Tokyo", zone(9 * 3600, "XXX-9"));
        assert_eq!(hours(None), 7);
        assert_eq!(hours(Some("Asia/Tokyo")), 21);
        assert_eq!(hours(Some("../../etc/passwd")), 7);
        world.set_env("TZ", ":Asia/Tokyo");
        assert_eq!(hours(None), 21);
    }
}
