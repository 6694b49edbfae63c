//! What has to happen when a signal ends or a drift is reported, and the result of one pass over all signals.

use super::appended_drift::AppendedDrift;
use super::found::StoredSignal;
use policyd_state::signal::End;
use policyd_world::WorldError;

/// Action that the end of a signal requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalFollowUp {
    /// The task of a request goes on, as a human decided.
    Unblock {
        /// The request.
        request: Box<StoredSignal>,
        /// The approval.
        approval: Box<StoredSignal>,
    },
    /// The task of an unanswered request is moved to the dead-letter queue.
    DeadLetter {
        /// The request.
        request: Box<StoredSignal>,
    },
    /// A human is notified of an unanswered request.
    Alert {
        /// The request.
        request: Box<StoredSignal>,
    },
    /// Another program reported a drift.
    Drift {
        /// The drift.
        drift: Box<AppendedDrift>,
        /// Text for the agent. Empty until the effect is done.
        message: String,
    },
}

/// Performs a follow-up. If it fails, the signal stays pending and the next process tries again.
pub type FollowUpHandler<'d> = dyn FnMut(&SignalFollowUp) -> Result<(), WorldError> + 'd;

/// Result of one pass over all signals.
#[derive(Debug, Clone, Default)]
pub struct FollowUpResult {
    /// Signals that ended, and how.
    pub ended: Vec<(StoredSignal, End)>,
    /// Approvals that approve nothing, and why.
    pub stale: Vec<(StoredSignal, String)>,
    /// Signals whose consumer did not come back.
    pub given_back: Vec<StoredSignal>,
    /// Quarantined files, and why.
    pub quarantined: Vec<(String, String)>,
    /// Signals of which something could not be done, and why; they wait.
    pub failed: Vec<(StoredSignal, String)>,
    /// Appended drifts whose effect could not be done, and why; they wait.
    pub failed_drifts: Vec<(AppendedDrift, String)>,
}
