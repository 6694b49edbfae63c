//! Whether an agent is lost: several signs at once, several rounds in a row.
//!
//! `step(watch, round, signs, settings) -> (watch, escalate)`:
//!
//! | state | the same round again | fewer signs than `signs` | enough signs |
//! |---|---|---|---|
//! | quiet, `n` rounds so far | nothing | `n` = 0 | `n` + 1; from `rounds` on it is reported once |
//! | reported | nothing | quiet, `n` = 0: the next episode is reported again | nothing |
//!
//! One cause must not show as two signs: a diff that stays as it is stands still, and only one that
//! comes back after another one swings.

use serde::{Deserialize, Serialize};

/// When uncertainty is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Signs that must hold at once.
    pub signs: u32,
    /// Rounds in a row they must hold.
    pub rounds: u32,
    /// Diffs that are remembered to see them come back.
    pub ring: usize,
}

impl Default for Settings {
    /// loki-mode: two signs, two rounds, six diffs.
    fn default() -> Self {
        Self { signs: 2, rounds: 2, ring: 6 }
    }
}

/// Memory of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Number of the last round.
    pub round: Option<u64>,
    /// Rounds in a row in which enough signs held.
    pub in_a_row: u32,
    /// Whether this episode was reported.
    pub told: bool,
}

/// Records a round with its number of signs. Returns whether to report now.
#[must_use]
pub fn step(watch: &Watch, round: u64, signs: u32, settings: Settings) -> (Watch, bool) {
    if watch.round == Some(round) {
        return (watch.clone(), false);
    }
    if signs < settings.signs {
        return (Watch { round: Some(round), ..Watch::default() }, false);
    }
    let in_a_row = watch.in_a_row.saturating_add(1);
    let told = in_a_row >= settings.rounds;
    (Watch { round: Some(round), in_a_row, told: watch.told || told }, told && !watch.told)
}

/// Whether a diff comes back after another one: A, B, A does; A, A does not. `ring` holds the diffs
/// before it, oldest first.
#[must_use]
pub fn swings(ring: &[String], current: &str) -> bool {
    let changed = ring.iter().rposition(|it| it != current);
    let before = changed.and_then(|at| ring.get(..at)).unwrap_or_default();
    !current.is_empty() && before.iter().any(|it| it == current)
}

/// The ring with a diff more, the oldest left out where it is full.
#[must_use]
pub fn remembered(ring: &[String], current: &str, settings: Settings) -> Vec<String> {
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
        let settings = Settings::default();
        let watch = |in_a_row, told| Watch { round: Some(7), in_a_row, told };
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
            let after = Watch { round: Some(round), ..after };
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
            assert_eq!(swings(&of(ring), current), wanted, "{ring} {current}");
        }
        assert!(!swings(&["".to_owned(), "A".to_owned()], ""), "an empty diff does not count");
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let settings = Settings { ring: 2, ..Settings::default() };
        let ring = ["A", "B", "C"].iter().fold(vec![], |ring, it| remembered(&ring, it, settings));
        assert_eq!(ring, ["B", "C"]);
        assert!(remembered(&ring, "D", Settings { ring: 0, ..settings }).is_empty());
    }
}
