//! Arguments of `policyd breaker`, `failure` and `rationalization`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::format::ListFormat;
use super::values::{duration, time, time_of_day, time_or_seconds};

#[derive(Debug, clap::Args)]
pub(crate) struct BreakerArguments {
    #[command(subcommand)]
    pub(crate) action: BreakerAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BreakerAction {
    /// List the circuit breakers with their states
    List {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Print one line for a shell prompt (exit code 1: a breaker is open)
    Status {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show all data of a breaker
    Show {
        /// Breaker key, such as `api/claude`
        key: String,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Explain the state of a breaker and its next transition
    Explain {
        /// Breaker key, such as `api/claude`
        key: String,
    },
    /// Check whether a call is permitted now (exit code 1: no, with reason and delay)
    Allow {
        /// Breaker key, such as `api/claude`
        key: String,
        /// Output format; `json` includes the generation to pass to `breaker record`
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Record the result of a call
    Record(RecordArguments),
    /// Force a breaker open until it is reset or the duration ends
    Trip {
        /// Breaker key, such as `api/claude`
        key: String,
        /// Duration, such as `10m`; default: until it is reset
        #[arg(long = "for", value_name = "DURATION", value_parser = time)]
        length: Option<Duration>,
        /// Reason
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Reset a breaker: discard its history and permit calls
    Reset {
        /// Breaker key, such as `api/claude`
        key: String,
    },
    /// Print a line for each state change until the output is closed
    Watch {
        /// Interval between checks
        #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = time)]
        every: Duration,
    },
    /// Print the first tier of a fallback chain that permits calls (exit code 1: none, with delay)
    Route {
        /// Name of the chain in `routes.yaml`; default: the first chain
        chain: Option<String>,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct RecordArguments {
    /// Breaker key, such as `api/claude`
    pub(crate) key: String,
    /// Result of the call
    #[arg(value_enum)]
    pub(crate) result: CallResult,
    /// Error message of the failure
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) error: String,
    /// Failure class; the breaker's settings list the classes that do not count
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Delay requested by the server (`Retry-After`): a duration such as `90s`, or whole seconds
    #[arg(long, value_name = "DURATION", value_parser = time_or_seconds)]
    pub(crate) retry_after: Option<Duration>,
    /// Duration of the call
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) took: Option<Duration>,
    /// Generation from `breaker allow --format json`; results of other generations do not count
    #[arg(long, value_name = "N")]
    pub(crate) generation: Option<u64>,
}

/// Result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallResult {
    /// The call succeeded
    Success,
    /// The call failed
    Failure,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailureArguments {
    #[command(subcommand)]
    pub(crate) action: FailureAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FailureAction {
    /// Show the class of a failure, its meaning, and the pattern that matched
    Classify {
        #[command(flatten)]
        what: FailureOptions,
        /// Profile of `failures.yaml`: print the class names of another program
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Compute the delay before the next attempt (exit code 1: no further attempt)
    Wait {
        #[command(flatten)]
        what: FailureOptions,
        /// Number of the next attempt, starting at 1
        #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
        attempt: u32,
        /// Requests per minute that the provider allows
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// Local time of day, to interpret times such as "resets 4am"
        ///
        /// Default: the time in the named time zone, else the local time of this machine.
        #[arg(long, value_name = "HH:MM:SS", value_parser = time_of_day)]
        local_time: Option<Duration>,
    },
    /// Choose the recovery action (exit code 1: an agent cannot continue alone)
    Recover {
        #[command(flatten)]
        what: FailureOptions,
        /// Number of attempts so far
        #[arg(long, value_name = "N", default_value = "0")]
        attempts: u32,
        /// Time spent so far, such as `90s` or `20m`
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
        elapsed: Duration,
        /// Cost so far, in the unit of the pack's limit
        #[arg(long, value_name = "NUMBER", default_value = "0")]
        cost: f64,
        /// Classes of the previous failures, oldest first
        #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
        history: Vec<String>,
        /// Exit code of a build or test command
        #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
        exit_code: Option<i64>,
        /// The working tree is damaged
        #[arg(long)]
        tree_corrupt: bool,
        /// The provider is unreachable
        #[arg(long)]
        provider_down: bool,
    },
}

/// Arguments that describe a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct FailureOptions {
    /// Error message; `-` reads standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Error name from a hook, such as `rate_limit`; takes precedence over the message
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) error: String,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Output format; `compact` prints only the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RationalizationArguments {
    #[command(subcommand)]
    pub(crate) action: RationalizationAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RationalizationAction {
    /// List the rationalizations in a text, with corrections (exit code 1: at least one)
    Check {
        /// Text to check; default: standard input (also `-`)
        #[arg(allow_hyphen_values = true)]
        text: Option<String>,
        /// Pack directory; default: the pack of the project
        #[arg(long, value_name = "DIR")]
        policies: Option<PathBuf>,
        /// Output format; `compact` prints one line per match
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}
