//! Events of a breaker, and its responses.

use std::time::Duration;

use super::Effect;

/// What is known of a call besides its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// The generation in which it was admitted.
    pub generation: Option<u64>,
    /// How long it took.
    pub took: Option<Duration>,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What it said.
    pub error: &'a str,
    /// What that does to the breaker.
    pub effect: Effect,
    /// Delay that the server requested.
    pub retry_after: Option<Duration>,
    /// What else is known of it.
    pub told: Told,
}

/// What happens to a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A call is requested.
    Request,
    /// An admitted call worked.
    Success(Told),
    /// An admitted call failed.
    Failure(Failure<'a>),
    /// The user forces it open.
    Trip {
        /// For how long; until it is reset, where absent.
        length: Option<Duration>,
        /// Reason of the user.
        reason: &'a str,
    },
    /// The user closes it.
    Reset,
}

impl<'a> Event<'a> {
    /// A success of which nothing else is known.
    #[must_use]
    pub const fn success() -> Self {
        Self::Success(Told { generation: None, took: None })
    }

    /// A failure that counts, and of which nothing but its error is known.
    #[must_use]
    pub const fn failure(error: &'a str) -> Self {
        Self::Failure(Failure::new(error))
    }
}

impl<'a> Failure<'a> {
    /// One that counts, and of which nothing but its error is known.
    #[must_use]
    pub const fn new(error: &'a str) -> Self {
        let told = Told { generation: None, took: None };
        Self { error, effect: Effect::Trip, retry_after: None, told }
    }
}

/// What a breaker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The result is recorded.
    Noted,
    /// The call may be made.
    Admitted,
    /// The call may be made, since the breaker only observes; else it would be rejected.
    Tolerated {
        /// As of a rejected one.
        wait: Option<Duration>,
    },
    /// The call may not be made now.
    Rejected {
        /// Time until one may; none where it was opened by hand for good.
        wait: Option<Duration>,
    },
}
