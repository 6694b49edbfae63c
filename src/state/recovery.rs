//! What to do after a failure, and what a gate does that fails again and again. Lives here: the
//! decisions; `failure` classifies failures.
//!
//! `recover(situation, limits) -> (action, reason)`, the first row that holds:
//!
//! | holds | action | reason |
//! |---|---|---|
//! | the failure is permanent | `stop` | `permanent:<name>` |
//! | the same name stands `repeats` times in a row at the end of the history | `stop` | `repeated_signature:<name>` |
//! | `attempts` are used up | `escalate` | `cap_attempts` |
//! | `time` is used up | `escalate` | `cap_time` |
//! | `cost` is used up, where it is limited | `escalate` | `cap_cost` |
//! | the working tree is damaged | `checkpoint_rollback` | `tree_corrupt` |
//! | the provider is down | `failover` | `provider_unavailable` |
//! | a build or test ended with an exit code other than 0 | `revise` | `build_failed` |
//! | nothing of this | `retry` | `transient:<name>` |
//!
//! That a build failed says its exit code alone, never a text: an agent that writes a compiler prints
//! compile errors all day.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When recovering is given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Attempts at one failure.
    pub attempts: u32,
    /// Time spent on one failure.
    pub time: Duration,
    /// Cost of one failure in the currency of the caller; no limit, where absent.
    pub cost: Option<f64>,
    /// Failures of one name in a row that mean that nothing changes.
    pub repeats: u32,
    /// Tier that is asked for where the provider is down; never a model's name.
    pub tier: String,
    /// A program that failed with fewer lines of output than this crashed.
    pub crash_lines: u32,
}

impl Default for Limits {
    /// loki-mode: 3 attempts, 1800 s, the same class 3 times; shipwright: 3 lines.
    fn default() -> Self {
        Self {
            attempts: 3,
            time: Duration::from_secs(1_800),
            cost: None,
            repeats: 3,
            tier: "development".to_owned(),
            crash_lines: 3,
        }
    }
}

/// What is known of a failure when it is decided what to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Situation<'a> {
    /// Name of its class.
    pub class: &'a str,
    /// Whether its class is permanent.
    pub permanent: bool,
    /// Its name in the history.
    pub signature: &'a str,
    /// Names of the failures before it, oldest first.
    pub history: &'a [String],
    /// Attempts made so far.
    pub attempts: u32,
    /// Time spent on it so far.
    pub elapsed: Duration,
    /// Cost of it so far.
    pub cost: f64,
    /// Whether the working tree is damaged: conflict markers, half-written files.
    pub tree_corrupt: bool,
    /// Whether the provider cannot be reached at all.
    pub provider_down: bool,
    /// Exit code of a build or test command; `None` where none ran.
    pub exit_code: Option<i64>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The same again.
    Retry,
    /// Again with what was wrong.
    Revise,
    /// Back to the last sound state.
    Rollback,
    /// Another provider or model of a tier.
    Failover,
    /// A person decides.
    Escalate,
    /// Nothing can succeed.
    Stop,
}

impl Action {
    /// Its name, as loki-mode has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Revise => "revise",
            Self::Rollback => "checkpoint_rollback",
            Self::Failover => "failover",
            Self::Escalate => "escalate",
            Self::Stop => "stop",
        }
    }
}

/// What to do after a failure, and which row of the table says so.
#[must_use]
pub fn recover(it: &Situation<'_>, limits: &Limits) -> (Action, String) {
    let told = |action: Action, reason: &str| (action, reason.to_owned());
    if it.permanent {
        return (Action::Stop, format!("permanent:{}", it.class));
    }
    if repeats(it.history, it.signature, limits.repeats) {
        return (Action::Stop, format!("repeated_signature:{}", it.signature));
    }
    if it.attempts >= limits.attempts {
        return told(Action::Escalate, "cap_attempts");
    }
    if it.elapsed >= limits.time {
        return told(Action::Escalate, "cap_time");
    }
    if limits.cost.is_some_and(|most| it.cost >= most) {
        return told(Action::Escalate, "cap_cost");
    }
    if it.tree_corrupt {
        return told(Action::Rollback, "tree_corrupt");
    }
    if it.provider_down {
        return told(Action::Failover, "provider_unavailable");
    }
    if it.exit_code.is_some_and(|code| code != 0) {
        return told(Action::Revise, "build_failed");
    }
    (Action::Retry, format!("transient:{}", it.class))
}

/// Returns whether a name occurs at least `threshold` times in a row at the end of the history. What was
/// broken off an hour ago says nothing about now.
#[must_use]
pub fn repeats(history: &[String], name: &str, threshold: u32) -> bool {
    let in_a_row = history.iter().rev().take_while(|it| *it == name).count();
    threshold > 0 && !name.is_empty() && u32::try_from(in_a_row).is_ok_and(|it| it >= threshold)
}

/// What a gate does that fails again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// Failures in a row from which it is passed on.
    pub escalate: u32,
    /// Failures in a row from which the loop pauses.
    pub pause: u32,
}

impl Default for Ladder {
    /// loki-mode: passed on from 3 on, paused from 10 on.
    fn default() -> Self {
        Self { escalate: 3, pause: 10 }
    }
}

/// A step of the ladder. A gate that fails is never let pass for failing often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// It blocks.
    Block,
    /// It blocks, and the parent is notified.
    Escalate,
    /// It blocks, and the loop pauses for a person.
    Pause,
}

impl Rung {
    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Escalate => "escalate",
            Self::Pause => "pause",
        }
    }
}

impl Ladder {
    /// What a gate does after so many failures in a row.
    #[must_use]
    pub const fn at(&self, failures: u32) -> Rung {
        if failures >= self.pause {
            Rung::Pause
        } else if failures >= self.escalate {
            Rung::Escalate
        } else {
            Rung::Block
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of the table in the header: what makes it hold, and what it says.
    type Row = (fn(&mut Situation<'_>), Action, &'static str);

    /// The rows from the first to the last.
    const ROWS: [Row; 8] = [
        (|it| it.permanent = true, Action::Stop, "permanent:auth"),
        (|it| it.signature = "again", Action::Stop, "repeated_signature:again"),
        (|it| it.attempts = 3, Action::Escalate, "cap_attempts"),
        (|it| it.elapsed = Duration::from_secs(1_800), Action::Escalate, "cap_time"),
        (|it| it.cost = 10.0, Action::Escalate, "cap_cost"),
        (|it| it.tree_corrupt = true, Action::Rollback, "tree_corrupt"),
        (|it| it.provider_down = true, Action::Failover, "provider_unavailable"),
        (|it| it.exit_code = Some(1), Action::Revise, "build_failed"),
    ];

    #[test]
    fn of_everything_that_may_hold_at_once_the_first_row_decides() {
        let limits = Limits { cost: Some(10.0), ..Limits::default() };
        let history = ["x", "again", "again", "again"].map(str::to_owned);
        for holding in 0..1_u32 << ROWS.len() {
            let mut situation =
                Situation { class: "auth", history: &history, ..Default::default() };
            let holds = |at: usize| holding >> at & 1 == 1;
            for (at, row) in ROWS.iter().enumerate() {
                if holds(at) {
                    row.0(&mut situation);
                }
            }
            let first = (0..ROWS.len()).find(|at| holds(*at)).map(|at| (ROWS[at].1, ROWS[at].2));
            let (action, reason) = recover(&situation, &limits);
            let wanted = first.unwrap_or((Action::Retry, "transient:auth"));
            assert_eq!((action, reason.as_str()), wanted, "{holding:b}");
        }
    }

    #[test]
    fn below_every_limit_it_is_tried_again() {
        let nearly = Situation {
            class: "unknown",
            signature: "a",
            history: &["a", "a", "a", "b", "a", "a"].map(str::to_owned),
            attempts: 2,
            elapsed: Duration::from_secs(1_799),
            cost: 1e9,
            exit_code: Some(0),
            ..Situation::default()
        };
        assert_eq!(recover(&nearly, &Limits::default()).0, Action::Retry);
    }

    #[test]
    fn names_repeat_at_the_end_of_the_history_only() {
        let of = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(repeats(&of("b a a a"), "a", 3));
        assert!(!repeats(&of("a a a b"), "a", 3));
        assert!(!repeats(&of("a a"), "a", 3));
        assert!(!repeats(&of("a"), "a", 0));
        assert!(!repeats(&["".to_owned()], "", 1));
    }

    #[test]
    fn the_ladder_has_three_rungs() {
        let at: Vec<&str> = (0..12).map(|it| Ladder::default().at(it).as_str()).collect();
        let expected = [["block"; 3].as_slice(), &["escalate"; 7], &["pause"; 2]].concat();
        assert_eq!(at, expected);
    }
}
