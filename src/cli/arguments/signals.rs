//! What `policyd signal` and `policyd decide` may say.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::ListFormat;
use super::resilience::duration;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SignalArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: SignalAction,
    /// Form of what is printed
    #[arg(long, value_enum, default_value = "text", global = true)]
    pub(in crate::cli) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SignalAction {
    /// Create a signal: its name, and what it says
    Emit {
        /// Name of the signal, such as `HUMAN_REVIEW_NEEDED`
        name: String,
        /// What it says: `reason=…`; a list is given once for each item
        #[arg(value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        /// Who sends it
        #[arg(long, default_value = "")]
        from: String,
        /// Time after which it is void, such as 1h
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<Duration>,
    },
    /// List the signals that wait, and what is odd about the folder
    List,
    /// List the signals that there can be
    Kinds,
    /// Show one signal, pending or over
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Take a signal: exit code 0 with what it says, 1 where none waits
    Consume {
        /// Its name (the oldest that waits) or its id
        signal: String,
        /// Who takes it
        #[arg(long)]
        by: Option<String>,
        /// Only keep it from others for that long; `consume ID` then takes it
        #[arg(long, value_name = "DURATION", value_parser = duration, requires = "by")]
        hold: Option<Duration>,
    },
    /// Give a signal back that was held
    Release {
        /// Its id
        id: String,
        /// Who held it
        #[arg(long)]
        by: String,
    },
    /// For humans: say yes to a request
    Approve {
        /// Its id, or the beginning of it
        id: String,
        /// What was decided
        #[arg(long, default_value = "")]
        decision: String,
        /// Who decides
        #[arg(long)]
        by: Option<String>,
    },
    /// For humans: say no to a request, or take any signal back
    Reject {
        /// Its id, or the beginning of it
        id: String,
        /// Why
        #[arg(long, default_value = "")]
        reason: String,
        /// Who decides
        #[arg(long)]
        by: Option<String>,
    },
    /// List the signals that are over, newest last
    History {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Only those of this name
        #[arg(long)]
        signal: Option<String>,
    },
    /// Print signals as they come and go
    Watch {
        /// Time between two looks
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
        every: Duration,
        /// End after that time
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        length: Option<Duration>,
    },
    /// Say which signals are due for a run: exit code 1 where one is
    Check {
        /// What is known of the run: `consecutive_failures=3`
        #[arg(value_name = "NAME=VALUE")]
        run: Vec<String>,
        /// Create them, unless one of the name waits
        #[arg(long)]
        emit: bool,
    },
    /// Do what is due: approvals, timeouts, files that cannot be used
    Process,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DecideArguments {
    /// The table; without one, they are listed
    pub(in crate::cli) table: Option<String>,
    /// What is asked: `confidence=0.72`
    #[arg(value_name = "NAME=VALUE")]
    pub(in crate::cli) given: Vec<String>,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) policies: Option<PathBuf>,
    /// Form of the answer; `compact` is the answer alone
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: ListFormat,
}
