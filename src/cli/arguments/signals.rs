//! Arguments of `policyd signal` and `policyd debug decide`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::format::ListFormat;
use super::values::duration;

#[derive(Debug, clap::Args)]
pub(crate) struct SignalArguments {
    #[command(subcommand)]
    pub(crate) action: SignalAction,
    /// Output format
    #[arg(long, value_enum, default_value = "text", global = true)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SignalAction {
    /// Create a signal
    Emit {
        /// Name of the signal, such as `HUMAN_REVIEW_NEEDED`
        name: String,
        /// Field of the signal, such as `reason=…`; repeat a list field for each item
        #[arg(value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        /// Sender
        #[arg(long, default_value = "")]
        from: String,
        /// Time until the signal expires, such as `1h`
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<Duration>,
    },
    /// List pending signals, and report invalid files of the signal directory
    List,
    /// List the signal types
    Types,
    /// Show a pending or ended signal
    Show {
        /// Signal ID or a unique prefix
        id: String,
    },
    /// Consume a signal and print it (exit code 1: no such signal is pending)
    Consume {
        /// Signal name (consumes the oldest pending signal) or signal ID
        signal: String,
        /// Consumer; default: the user name
        #[arg(long)]
        by: Option<String>,
        /// Claim the signal for this duration; `consume ID` then consumes it
        #[arg(long, value_name = "DURATION", value_parser = duration, requires = "by")]
        lease: Option<Duration>,
    },
    /// Release a claimed signal
    Release {
        /// Signal ID
        id: String,
        /// Holder of the lease
        #[arg(long)]
        by: String,
    },
    /// Approve a request (humans only)
    Approve {
        /// Signal ID or a unique prefix
        id: String,
        /// Decision
        #[arg(long, default_value = "")]
        decision: String,
        /// Name of the user who decides
        #[arg(long)]
        by: Option<String>,
    },
    /// Reject a request, or withdraw a signal (humans only)
    Reject {
        /// Signal ID or a unique prefix
        id: String,
        /// Reason
        #[arg(long, default_value = "")]
        reason: String,
        /// Name of the user who decides
        #[arg(long)]
        by: Option<String>,
    },
    /// List ended signals, newest last
    History {
        /// Maximum number of entries
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Only signals with this name
        #[arg(long)]
        signal: Option<String>,
    },
    /// Print signals when they are created or end
    Watch {
        /// Interval between checks
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
        every: Duration,
        /// Stop after this duration
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        length: Option<Duration>,
    },
    /// List the signals that are due for a run (exit code 1: at least one)
    Check {
        /// Fact about the run, such as `consecutive_failures=3`; repeatable
        #[arg(value_name = "NAME=VALUE")]
        run: Vec<String>,
        /// Create the due signals, unless one with the same name is pending
        #[arg(long)]
        emit: bool,
    },
    /// Perform due actions: approvals, timeouts, and quarantine of invalid files
    Process,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DecideArguments {
    /// Name of the table; default: list all tables
    pub(crate) table: Option<String>,
    /// Input of the table, such as `confidence=0.72`; repeatable
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) given: Vec<String>,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Output format; `compact` prints only the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}
