//! Permitted number of turns of a run, with extensions for a run that makes progress.

use serde::{Deserialize, Serialize};

/// Insertions per turn. Above, an extension is longer; below, it is shorter. shipwright uses the
/// same value.
const FAST: u32 = 20;
const SLOW: u32 = 5;

/// How a run is extended that has used up its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Times at most; 0 for never.
    pub times: u32,
    /// Turns of one extension.
    pub turns: u32,
}

/// Input of the decision about another turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of extensions.
    pub extended: u32,
    /// Whether the last tests passed. `None` if unknown.
    pub tests: Option<bool>,
    /// Number of consecutive failed turns.
    pub failures: u32,
    /// Whether the agent claimed to be done.
    pub claimed: bool,
    /// Recent insertions per turn.
    pub velocity: u32,
}

/// Decision about another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnPermission {
    /// The turn is permitted.
    Yes,
    /// The turn is permitted, and the limit grows by this number of turns.
    Extended(u32),
    /// The turn is not permitted.
    No,
}

/// Decides whether turn `next`, from 1, may begin. `max` turns are permitted.
#[must_use]
pub fn allowed(next: u32, max: u32, extension: Extension, it: Progress) -> TurnPermission {
    if next <= max {
        return TurnPermission::Yes;
    }
    let going_on = it.failures < 2 && !it.claimed;
    if it.extended >= extension.times || !(going_on || it.tests == Some(false)) {
        return TurnPermission::No;
    }
    let turns = extension.turns.max(1);
    TurnPermission::Extended(match it.velocity {
        v if v > FAST => turns.saturating_add(3),
        v if v < SLOW => turns.saturating_sub(2).max(1),
        _ => turns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENSION: Extension = Extension { times: 3, turns: 5 };

    #[test]
    fn exactly_as_many_turns_as_are_allowed() {
        for max in 0..20 {
            let may = |next| allowed(next, max, Extension::default(), Progress::default());
            let begun = (1..40).take_while(|it| may(*it) == TurnPermission::Yes).count();
            assert_eq!(begun, max as usize);
        }
    }

    #[test]
    fn a_run_that_gets_somewhere_is_extended() {
        let of = |it: Progress| allowed(21, 20, EXTENSION, it);
        let base = Progress { velocity: 10, ..Progress::default() };
        assert_eq!(of(base), TurnPermission::Extended(5));
        assert_eq!(of(Progress { velocity: 21, ..base }), TurnPermission::Extended(8));
        assert_eq!(of(Progress { velocity: 4, ..base }), TurnPermission::Extended(3));
        assert_eq!(of(Progress { failures: 2, ..base }), TurnPermission::No);
        assert_eq!(
            of(Progress { failures: 2, tests: Some(false), ..base }),
            TurnPermission::Extended(5)
        );
        assert_eq!(of(Progress { claimed: true, ..base }), TurnPermission::No);
        assert_eq!(of(Progress { extended: 3, tests: Some(false), ..base }), TurnPermission::No);
        let short = Extension { times: 1, turns: 2 };
        assert_eq!(allowed(21, 20, short, Progress::default()), TurnPermission::Extended(1));
    }
}
