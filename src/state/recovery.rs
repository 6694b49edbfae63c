//! Decisions after a failure, and after repeated failures of a quality gate. Does not contain:
//! failure classes (`failure`).
//!
//! `recover(situation, limits) -> (action, reason)`, by the first row that is true:
//!
//! | condition | action | reason |
//! |---|---|---|
//! | the failure is permanent | `stop` | `permanent:<name>` |
//! | the last `repeats` failures of the history have the same name | `stop` | `repeated_signature:<name>` |
//! | all `attempts` are used | `escalate` | `cap_attempts` |
//! | all `time` is used | `escalate` | `cap_time` |
//! | all `cost` is used, if it is limited | `escalate` | `cap_cost` |
//! | the working tree is damaged | `checkpoint_rollback` | `tree_corrupt` |
//! | the provider is down | `failover` | `provider_unavailable` |
//! | a build or test ended with a non-zero exit code | `revise` | `build_failed` |
//! | none of these | `retry` | `transient:<name>` |
//!
//! Only the exit code shows a failed build, never a text: an agent that writes a compiler prints
//! compile errors often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of the recovery from one failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryLimits {
    /// Maximum number of attempts.
    pub attempts: u32,
    /// Maximum time.
    pub time: Duration,
    /// Maximum cost in the caller's currency. `None`: no limit.
    pub cost: Option<f64>,
    /// Number of consecutive failures with one name that show a lack of progress.
    pub repeats: u32,
    /// Tier that replaces an unavailable provider. Never the name of a model.
    pub tier: String,
    /// A failed program with fewer lines of output counts as crashed.
    pub crash_lines: u32,
}

impl Default for RecoveryLimits {
    /// Defaults of loki-mode (3 attempts, 1800 s, the same class 3 times) and shipwright (3 lines).
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

/// Input of the decision after a failure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureContext<'a> {
    /// Name of the failure class.
    pub class: &'a str,
    /// Whether the class is permanent.
    pub permanent: bool,
    /// Name of the failure in the history.
    pub signature: &'a str,
    /// Names of earlier failures, oldest first.
    pub history: &'a [String],
    /// Number of attempts.
    pub attempts: u32,
    /// Time since the first attempt.
    pub elapsed: Duration,
    /// Cost of all attempts.
    pub cost: f64,
    /// Whether the working tree is damaged: conflict markers, partly written files.
    pub tree_corrupt: bool,
    /// Whether the provider cannot be reached.
    pub provider_down: bool,
    /// Exit code of a build or test command. `None` if none ran.
    pub exit_code: Option<i64>,
}

/// Action after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Retry unchanged.
    Retry,
    /// Retry with the error.
    Revise,
    /// Restore the last intact state.
    Rollback,
    /// Use another provider or model of a tier.
    Failover,
    /// Ask a human.
    Escalate,
    /// Stop, because no attempt can succeed.
    Stop,
}

impl Action {
    /// Returns the name. loki-mode uses the same names.
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

/// Returns the action after a failure, and the reason.
#[must_use]
pub fn recover(it: &FailureContext<'_>, limits: &RecoveryLimits) -> (Action, String) {
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

/// Returns whether the history ends with at least `threshold` equal names. Interrupted repetitions
/// do not count.
#[must_use]
pub fn repeats(history: &[String], name: &str, threshold: u32) -> bool {
    let in_a_row = history.iter().rev().take_while(|it| *it == name).count();
    threshold > 0 && !name.is_empty() && u32::try_from(in_a_row).is_ok_and(|it| it >= threshold)
}

/// Thresholds for repeated failures of a quality gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationThresholds {
    /// Consecutive failures at which a human is notified.
    pub escalate: u32,
    /// Consecutive failures at which the loop pauses.
    pub pause: u32,
}

impl Default for EscalationThresholds {
    /// Defaults of loki-mode: escalates at 3 failures, pauses at 10.
    fn default() -> Self {
        Self { escalate: 3, pause: 10 }
    }
}

/// Step of an escalation. A failing quality gate never passes because it failed often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscalationStep {
    /// The gate blocks.
    Block,
    /// The gate blocks, and a human is notified.
    Escalate,
    /// The gate blocks, and the loop pauses until a human decides.
    Pause,
}

impl EscalationStep {
    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Escalate => "escalate",
            Self::Pause => "pause",
        }
    }
}

impl EscalationThresholds {
    /// Returns the step after a number of consecutive failures.
    #[must_use]
    pub const fn at(&self, failures: u32) -> EscalationStep {
        if failures >= self.pause {
            EscalationStep::Pause
        } else if failures >= self.escalate {
            EscalationStep::Escalate
        } else {
            EscalationStep::Block
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of the table in the header: the change that makes it true, its action, and its
    /// reason.
    type Row = (fn(&mut FailureContext<'_>), Action, &'static str);

    /// The rows in order.
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
        let limits = RecoveryLimits { cost: Some(10.0), ..RecoveryLimits::default() };
        let history = ["x", "again", "again", "again"].map(str::to_owned);
        for holding in 0..1_u32 << ROWS.len() {
            let mut situation =
                FailureContext { class: "auth", history: &history, ..Default::default() };
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
        let nearly = FailureContext {
            class: "unknown",
            signature: "a",
            history: &["a", "a", "a", "b", "a", "a"].map(str::to_owned),
            attempts: 2,
            elapsed: Duration::from_secs(1_799),
            cost: 1e9,
            exit_code: Some(0),
            ..FailureContext::default()
        };
        assert_eq!(recover(&nearly, &RecoveryLimits::default()).0, Action::Retry);
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
        let at: Vec<&str> =
            (0..12).map(|it| EscalationThresholds::default().at(it).as_str()).collect();
        let expected = [["block"; 3].as_slice(), &["escalate"; 7], &["pause"; 2]].concat();
        assert_eq!(at, expected);
    }
}
