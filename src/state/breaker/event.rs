//! What a breaker is told, and what it answers.

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
    /// For how long what was called wants to be left alone.
    pub retry_after: Option<Duration>,
    /// What else is known of it.
    pub told: Told,
}

/// What happens to a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Somebody wants to call.
    Request,
    /// An admitted call worked.
    Success(Told),
    /// An admitted call failed.
    Failure(Failure<'a>),
    /// Somebody opens it by hand.
    Trip {
        /// For how long; until it is reset, where absent.
        length: Option<Duration>,
        /// Why.
        reason: &'a str,
    },
    /// Somebody closes it by hand.
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
    /// A result was taken in.
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
