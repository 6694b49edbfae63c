//! What the commands over the resilience stores may say.

use clap::{Subcommand, ValueEnum};

use super::ListFormat;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BreakerArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: BreakerAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BreakerAction {
    /// List them with their state
    List {
        /// Form of the list
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Whether a call may be made now: exit code 0, or 1 with the reason and the time to wait
    Allow {
        /// Name of the breaker, such as `api/claude`
        key: String,
    },
    /// Take in what became of a call
    Record {
        /// Name of the breaker
        key: String,
        /// What became of it
        #[arg(value_enum)]
        result: CallResult,
        /// What the failure said
        #[arg(long, default_value = "")]
        error: String,
    },
    /// Forget a breaker: calls go through again
    Reset {
        /// Name of the breaker
        key: String,
    },
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum CallResult {
    /// It worked
    Success,
    /// It failed
    Failure,
}
