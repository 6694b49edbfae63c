//! Events of a circuit breaker, and its responses.

use std::time::Duration;

use super::Effect;

/// Details of a call besides its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Generation in which the call was admitted.
    pub generation: Option<u64>,
    /// Duration of the call.
    pub took: Option<Duration>,
}

/// A failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Error text.
    pub error: &'a str,
    /// Effect on the breaker.
    pub effect: Effect,
    /// Delay that the server requested.
    pub retry_after: Option<Duration>,
    /// Further details.
    pub told: Told,
}

/// Event of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A call is about to be made.
    Request,
    /// An admitted call succeeded.
    Success(Told),
    /// An admitted call failed.
    Failure(Failure<'a>),
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

impl<'a> Event<'a> {
    /// Creates a success without details.
    #[must_use]
    pub const fn success() -> Self {
        Self::Success(Told { generation: None, took: None })
    }

    /// Creates a failure that counts, without further details.
    #[must_use]
    pub const fn failure(error: &'a str) -> Self {
        Self::Failure(Failure::new(error))
    }
}

impl<'a> Failure<'a> {
    /// Creates a failure that counts, without further details.
    #[must_use]
    pub const fn new(error: &'a str) -> Self {
        let told = Told { generation: None, took: None };
        Self { error, effect: Effect::Trip, retry_after: None, told }
    }
}

/// Response of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The result was recorded.
    Noted,
    /// The call is permitted.
    Admitted,
    /// The call is permitted, because the breaker only observes. It would be rejected otherwise.
    Tolerated {
        /// Wait time, as in [`Answer::Rejected`].
        wait: Option<Duration>,
    },
    /// The call is rejected.
    Rejected {
        /// Time until a call is permitted. `None` if a manual trip has no end.
        wait: Option<Duration>,
    },
}
