//! Events of a circuit breaker, and its responses.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::FailureEffect;

/// Details of a call besides its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallMetadata {
    /// Generation in which the call was admitted.
    pub generation: Option<u64>,
    /// Duration of the call.
    pub took: Option<Duration>,
}

/// A failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerFailure<'a> {
    /// Error text.
    pub error: &'a str,
    /// Effect on the breaker.
    pub effect: FailureEffect,
    /// Delay that the server requested.
    pub retry_after: Option<Duration>,
    /// Further details.
    pub told: CallMetadata,
}

/// Event of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerEvent<'a> {
    /// A call is about to be made.
    Request,
    /// An admitted call succeeded.
    Success(CallMetadata),
    /// An admitted call failed.
    Failure(BreakerFailure<'a>),
    /// The breaker is opened manually.
    Trip {
        /// Duration. `None`: until a reset.
        length: Option<Duration>,
        /// Reason, as displayed.
        reason: &'a str,
    },
    /// The breaker is reset manually.
    Reset,
}

impl<'a> BreakerEvent<'a> {
    /// Creates a success without details.
    #[must_use]
    pub const fn success() -> Self {
        Self::Success(CallMetadata { generation: None, took: None })
    }

    /// Creates a failure that counts, without further details.
    #[must_use]
    pub const fn failure(error: &'a str) -> Self {
        Self::Failure(BreakerFailure::new(error))
    }
}

impl<'a> BreakerFailure<'a> {
    /// Creates a failure that counts, without further details.
    #[must_use]
    pub const fn new(error: &'a str) -> Self {
        let told = CallMetadata { generation: None, took: None };
        Self { error, effect: FailureEffect::Trip, retry_after: None, told }
    }
}

/// Response of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerResponse {
    /// The result was recorded.
    Recorded,
    /// The call is permitted.
    Permitted,
    /// The call is permitted, because the breaker only observes. It would be rejected otherwise.
    WouldReject {
        /// Wait time, as in [`BreakerResponse::Rejected`].
        wait: Option<Duration>,
    },
    /// The call is rejected.
    Rejected {
        /// Time until a call is permitted. `None` if a manual trip has no end.
        wait: Option<Duration>,
    },
}
