//! What the commands over the resilience stores may say.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{NaiveTime, Timelike as _};
use clap::{Subcommand, ValueEnum};

use super::ListFormat;
use crate::time::parse_duration;

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
    /// One line for a prompt: exit code 0 where all are closed, 1 where something is open
    Status {
        /// Form of the line
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show everything that is known of one
    Show {
        /// Name of the breaker
        key: String,
        /// Form of the answer
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Explain why one stands where it stands, and what happens next
    Explain {
        /// Name of the breaker
        key: String,
    },
    /// Whether a call may be made now: exit code 0, or 1 with the reason and the time to wait
    Allow {
        /// Name of the breaker, such as `api/claude`
        key: String,
        /// Form of the answer; `json` tells the generation that a result may carry
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Take in what became of a call
    Record(RecordArguments),
    /// Open one by hand, until it is reset or the time is over
    Trip {
        /// Name of the breaker
        key: String,
        /// For how long, such as 10m; until it is reset, where it is left out
        #[arg(long = "for", value_name = "DURATION", value_parser = time)]
        length: Option<Duration>,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Forget what happened to a breaker: calls go through again
    Reset {
        /// Name of the breaker
        key: String,
    },
    /// Print a line for each change, until the reader is gone
    Watch {
        /// How often to look
        #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = time)]
        every: Duration,
    },
    /// The first tier of a chain of fallbacks whose breaker admits a call: exit code 0, or 1 with
    /// the time when the first one opens again
    Route {
        /// Name of the chain in `routes.yaml`; the first one by default
        chain: Option<String>,
        /// Form of the answer
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RecordArguments {
    /// Name of the breaker
    pub(in crate::cli) key: String,
    /// What became of it
    #[arg(value_enum)]
    pub(in crate::cli) result: CallResult,
    /// What the failure said
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(in crate::cli) error: String,
    /// Class of the failure: the breaker's settings say which ones do not count
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) class: Option<String>,
    /// For how long the server wants to be left alone: 90s, or seconds
    #[arg(long, value_name = "DURATION", value_parser = time_or_seconds)]
    pub(in crate::cli) retry_after: Option<Duration>,
    /// How long the call took
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(in crate::cli) took: Option<Duration>,
    /// The generation that `allow --format json` told; a result of another one is late
    #[arg(long, value_name = "N")]
    pub(in crate::cli) generation: Option<u64>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum CallResult {
    /// It worked
    Success,
    /// It failed
    Failure,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FailureArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: FailureAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum FailureAction {
    /// Of which class it is, what that means, and what decided
    Classify {
        #[command(flatten)]
        what: Failure,
        /// In the words of another program: a profile of `failures.yaml`
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// How long to wait before the next attempt, and why; exit code 1 where there is none
    Wait {
        #[command(flatten)]
        what: Failure,
        /// Number of the next attempt, from 1
        #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
        attempt: u32,
        /// Requests that the provider allows per minute
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// Local time of day, by which "resets 4am" is read; by default that of the zone it names, else
        /// of this machine
        #[arg(long, value_name = "HH:MM:SS", value_parser = time_of_day)]
        local_time: Option<Duration>,
    },
    /// What to do after it; exit code 1 where an agent cannot go on by itself
    Recover {
        #[command(flatten)]
        what: Failure,
        /// Attempts made so far
        #[arg(long, value_name = "N", default_value = "0")]
        attempts: u32,
        /// Time spent so far: `90s`, `20m`
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
        elapsed: Duration,
        /// Cost so far
        #[arg(long, value_name = "NUMBER", default_value = "0")]
        cost: f64,
        /// Classes of the failures before it, oldest first
        #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
        history: Vec<String>,
        /// Exit code of a build or test command
        #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
        exit_code: Option<i64>,
        /// The working tree is damaged
        #[arg(long)]
        tree_corrupt: bool,
        /// The provider cannot be reached
        #[arg(long)]
        provider_down: bool,
    },
}

/// What failed.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Failure {
    /// What it said; `-` is standard input
    #[arg(allow_hyphen_values = true)]
    pub(in crate::cli) text: Option<String>,
    /// The name a hook gives it, such as `rate_limit`; it decides where a class knows it
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(in crate::cli) error: String,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) policies: Option<PathBuf>,
    /// Form of the answer; `compact` is the answer alone
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: ListFormat,
}

/// A duration with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .map_err(|_| "write a number and its unit, such as `90s` or `20m`".to_owned())
}

/// The time since midnight.
fn time_of_day(text: &str) -> Result<Duration, String> {
    let read = NaiveTime::parse_from_str(text, "%H:%M:%S");
    let read = read.or_else(|_| NaiveTime::parse_from_str(text, "%H:%M"));
    let time = read.map_err(|_| "write a time of day, such as `14:05:00`".to_owned())?;
    Ok(Duration::from_secs(u64::from(time.num_seconds_from_midnight())))
}

/// A time with its unit.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|_| "write a time with its unit, such as 90s or 10m".to_owned())
}

/// The same, or whole seconds as in a `Retry-After`.
fn time_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().map(Duration::from_secs);
    seconds.or_else(|_| parse_duration(text)).map_err(|_| "write 90s, 10m or seconds".to_owned())
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RationalizationArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: RationalizationAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RationalizationAction {
    /// Which of them a text holds, why each is wrong, and what to do instead; exit code 1 where any
    Check {
        /// The text, as an agent would say it; standard input without one, or with `-`
        #[arg(allow_hyphen_values = true)]
        text: Option<String>,
        /// Folder of the pack
        #[arg(long, value_name = "DIR")]
        policies: Option<PathBuf>,
        /// Form of the answer; `compact` is one line each
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}
