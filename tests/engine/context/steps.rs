//! The table of the tiers: every state with every reading.

use policyd::state::context::{
    ContextMeasurement, ContextSettings, MeterKind, Overrides, Tier, TierEffect, TierState, step,
};

fn settings() -> ContextSettings {
    let tier = |(id, at): (&str, f64)| Tier { id: id.to_owned(), at };
    ContextSettings {
        measured: MeterKind::Occupancy,
        tiers: [("notice", 55.0), ("warn", 65.0), ("act", 70.0)].map(tier).into(),
        hysteresis: 5.0,
    }
}

fn standing(tier: &str) -> TierState {
    TierState { tier: tier.to_owned(), compactions: 1, since: 10, ..TierState::default() }
}

/// Percentages, and what each state becomes at them: `+` is a crossing, `~` a re-arming, `-` no tier.
const PERCENTS: [Option<f64>; 10] = [
    None,
    Some(10.0),
    Some(49.9),
    Some(50.0),
    Some(55.0),
    Some(62.0),
    Some(65.0),
    Some(69.9),
    Some(70.0),
    Some(300.0),
];
const TABLE: [(&str, &str); 4] = [
    ("", "- - - - notice+ notice+ warn+ warn+ act+ act+"),
    ("notice", "notice -~ -~ notice notice notice warn+ warn+ act+ act+"),
    ("warn", "warn -~ -~ -~ notice~ warn warn warn act+ act+"),
    ("act", "act -~ -~ -~ notice~ notice~ act act act act"),
];

#[test]
fn every_state_with_every_reading() {
    for (state, row) in TABLE {
        for (percent, expected) in PERCENTS.into_iter().zip(row.split(' ')) {
            let reading = ContextMeasurement {
                percent,
                compactions: 1,
                position: 99,
                ..ContextMeasurement::default()
            };
            let (next, found) = step(&standing(state), &reading, &settings());
            let effect = match expected.chars().last() {
                Some('+') => Some(TierEffect::Crossed),
                Some('~') => Some(TierEffect::Rearmed),
                _ => None,
            };
            let tier = expected.trim_matches(['+', '~', '-']);
            assert_eq!((next.tier.as_str(), found), (tier, effect), "{state:?} at {percent:?}");
            let since = if tier == state { 10 } else { 99 };
            assert_eq!((next.since, next.compactions), (since, 1), "{state:?} at {percent:?}");
            // The same reading again changes nothing and is not told again.
            assert_eq!(step(&next, &reading, &settings()), (next, None));
        }
    }
}

#[test]
fn after_a_compaction_each_tier_is_told_anew() {
    for state in ["", "notice", "warn", "act"] {
        for (percent, tier) in
            [(None, ""), (Some(10.0), ""), (Some(56.0), "notice"), (Some(99.0), "act")]
        {
            let reading = ContextMeasurement {
                percent,
                compactions: 2,
                position: 99,
                ..ContextMeasurement::default()
            };
            let (next, found) = step(&standing(state), &reading, &settings());
            assert_eq!((next.tier.as_str(), next.compactions), (tier, 2), "{state:?} {percent:?}");
            let expected = match (tier, state) {
                ("", "") => None,
                ("", _) => Some(TierEffect::Rearmed),
                _ => Some(TierEffect::Crossed),
            };
            assert_eq!(found, expected, "{state:?} {percent:?}");
        }
    }
}

#[test]
fn a_meter_that_swings_is_told_once() {
    let (mut standing, mut told) = (TierState::default(), 0);
    for percent in [54.0, 55.0, 53.0, 56.0, 51.0, 57.0, 54.0, 55.0] {
        let reading =
            ContextMeasurement { percent: Some(percent), ..ContextMeasurement::default() };
        let (next, effect) = step(&standing, &reading, &settings());
        told += usize::from(effect == Some(TierEffect::Crossed));
        standing = next;
    }
    assert_eq!((standing.tier.as_str(), told), ("notice", 1));
}

#[test]
fn the_environment_moves_act_and_what_is_above_it_gives_way() {
    let of = |text: &str| {
        let text = text.to_owned();
        let (overrides, wrong) =
            Overrides::read(|name| (name == "CONTEXT_EXHAUSTION_THRESHOLD").then(|| text.clone()));
        let tiers = overrides.settings(&settings()).tiers;
        let tiers: Vec<String> = tiers.iter().map(|it| format!("{} {}", it.id, it.at)).collect();
        (tiers.join(", "), wrong.len())
    };
    assert_eq!(of("90"), ("notice 55, warn 65, act 90".to_owned(), 0));
    assert_eq!(of("60"), ("notice 55, act 60".to_owned(), 0));
    assert_eq!(of("50"), ("act 50".to_owned(), 0));
    assert_eq!(of("70.5"), ("notice 55, warn 65, act 70.5".to_owned(), 0));
    for odd in ["", "high", "inf", "70%"] {
        assert_eq!(of(odd), ("notice 55, warn 65, act 70".to_owned(), 1), "{odd}");
    }
}

#[test]
fn windows_of_the_environment_are_numbers_or_said_to_be_none() {
    for (text, window, wrong) in [
        ("200000", Some(200_000), 0),
        ("0", Some(0), 0),
        ("-5", Some(0), 0),
        ("08", Some(8), 0),
        ("200k", None, 1),
        ("1e6", None, 1),
        ("-x", None, 1),
        ("99999999999999999999999", Some(u64::MAX), 0),
    ] {
        let (overrides, found) =
            Overrides::read(|name| (name == "CONTEXT_WINDOW_TOKENS").then(|| text.to_owned()));
        assert_eq!((overrides.window, found.len()), (window, wrong), "{text}");
    }
}

/// Readings of a transcript: its compactions and calls.
fn reading(percent: f64, compactions: u64, calls: u64) -> ContextMeasurement {
    ContextMeasurement { percent: Some(percent), compactions, calls, position: 99 }
}

#[test]
fn a_client_that_says_so_first_is_believed_until_its_transcript_shows_more() {
    for state in ["", "notice", "warn", "act"] {
        let before = TierState { model: "m".to_owned(), ..standing(state) };
        let emptied = before.emptied(&reading(80.0, 1, 40));
        assert_eq!(
            (emptied.tier.as_str(), emptied.compactions, emptied.model.as_str()),
            ("", 2, "m")
        );
        // What was read before says nothing of the context that is new.
        let (same, effect) = step(&emptied, &reading(80.0, 1, 40), &settings());
        assert_eq!((&same, effect), (&emptied, None), "{state}");
        // The boundary that follows is the one that was told of.
        let (next, effect) = step(&emptied, &reading(20.0, 2, 41), &settings());
        assert_eq!((next.tier.as_str(), next.compactions, effect), ("", 2, None));
        let (next, effect) = step(&next, &reading(56.0, 2, 50), &settings());
        assert_eq!((next.tier.as_str(), effect), ("notice", Some(TierEffect::Crossed)));
        // A client that writes no boundary is measured again from its next call on.
        let (next, effect) = step(&emptied, &reading(71.0, 1, 41), &settings());
        assert_eq!((next.tier.as_str(), effect), ("act", Some(TierEffect::Crossed)));
        // Told of after its boundary was read it is the same compaction.
        assert_eq!(before.emptied(&reading(20.0, 2, 40)).compactions, 2);
    }
}
