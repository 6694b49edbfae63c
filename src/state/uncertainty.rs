//! Detects a lost agent: several signs at once, in several consecutive rounds.
//!
//! `step(watch, round, signs, settings) -> (watch, escalate)`:
//!
//! | state | the same round again | fewer signs than `signs` | enough signs |
//! |---|---|---|---|
//! | quiet, `n` rounds so far | no change | `n` = 0 | `n` + 1; at `rounds` it is reported, once |
//! | reported | no change | quiet, `n` = 0: the next episode is reported again | no change |
//!
//! One cause must not count as two signs: an unchanged diff is a standstill, and only a diff that
//! returns after another one oscillates.

use serde::{Deserialize, Serialize};

/// Thresholds for a lost agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncertaintySettings {
    /// Number of simultaneous signs.
    pub signs: u32,
    /// Number of consecutive rounds with these signs.
    pub rounds: u32,
    /// Number of stored diffs that a returning diff is compared with.
    pub ring: usize,
}

impl Default for UncertaintySettings {
    /// Defaults of loki-mode: two signs, two rounds, six diffs.
    fn default() -> Self {
        Self { signs: 2, rounds: 2, ring: 6 }
    }
}

/// Saved state of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UncertaintyTracker {
    /// Number of the last round.
    pub round: Option<u64>,
    /// Consecutive rounds with enough signs.
    pub in_a_row: u32,
    /// Whether this episode was reported.
    pub told: bool,
}

/// Records a round with this number of signs. Also returns whether to report it now.
#[must_use]
pub fn step(
    watch: &UncertaintyTracker,
    round: u64,
    signs: u32,
    settings: UncertaintySettings,
) -> (UncertaintyTracker, bool) {
    if watch.round == Some(round) {
        return (watch.clone(), false);
    }
    if signs < settings.signs {
        return (UncertaintyTracker { round: Some(round), ..UncertaintyTracker::default() }, false);
    }
    let in_a_row = watch.in_a_row.saturating_add(1);
    let told = in_a_row >= settings.rounds;
    (
        UncertaintyTracker { round: Some(round), in_a_row, told: watch.told || told },
        told && !watch.told,
    )
}

/// Returns whether a diff returns after another one: A, B, A does; A, A does not. `ring` contains
/// earlier diffs, oldest first.
#[must_use]
pub fn oscillates(ring: &[String], current: &str) -> bool {
    let changed = ring.iter().rposition(|it| it != current);
    let before = changed.and_then(|at| ring.get(..at)).unwrap_or_default();
    !current.is_empty() && before.iter().any(|it| it == current)
}

/// Appends a diff to the ring, and removes the oldest above the limit.
#[must_use]
pub fn remembered(ring: &[String], current: &str, settings: UncertaintySettings) -> Vec<String> {
    let mut ring: Vec<String> = ring.to_vec();
    ring.push(current.to_owned());
    let over = ring.len().saturating_sub(settings.ring);
    ring.split_off(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_meets_every_round() {
        let settings = UncertaintySettings::default();
        let watch = |in_a_row, told| UncertaintyTracker { round: Some(7), in_a_row, told };
        for (before, round, signs, after, tells) in [
            (watch(0, false), 7, 2, watch(0, false), false),
            (watch(0, false), 8, 0, watch(0, false), false),
            (watch(0, false), 8, 1, watch(0, false), false),
            (watch(0, false), 8, 2, watch(1, false), false),
            (watch(1, false), 7, 3, watch(1, false), false),
            (watch(1, false), 8, 1, watch(0, false), false),
            (watch(1, false), 8, 3, watch(2, true), true),
            (watch(2, true), 7, 3, watch(2, true), false),
            (watch(2, true), 8, 3, watch(3, true), false),
            (watch(2, true), 8, 1, watch(0, false), false),
        ] {
            let (got, told) = step(&before, round, signs, settings);
            let after = UncertaintyTracker { round: Some(round), ..after };
            assert_eq!((got, told), (after, tells), "{before:?} {round} {signs}");
        }
    }

    #[test]
    fn a_diff_swings_when_it_comes_back_after_another() {
        let of = |names: &str| names.chars().map(String::from).collect::<Vec<_>>();
        for (ring, current, wanted) in [
            ("AB", "A", true),
            ("ABB", "A", true),
            ("ABA", "A", true),
            ("AA", "A", false),
            ("BA", "A", false),
            ("A", "A", false),
            ("BC", "A", false),
            ("", "A", false),
        ] {
            assert_eq!(oscillates(&of(ring), current), wanted, "{ring} {current}");
        }
        assert!(!oscillates(&["".to_owned(), "A".to_owned()], ""), "an empty diff does not return");
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let settings = UncertaintySettings { ring: 2, ..UncertaintySettings::default() };
        let ring = ["A", "B", "C"].iter().fold(vec![], |ring, it| remembered(&ring, it, settings));
        assert_eq!(ring, ["B", "C"]);
        assert!(remembered(&ring, "D", UncertaintySettings { ring: 0, ..settings }).is_empty());
    }
}
