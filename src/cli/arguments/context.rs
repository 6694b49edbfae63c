//! What `policyd context` may say.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::ListFormat;
use super::resilience::duration;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ContextArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: ContextAction,
    /// Folder of the pack
    #[arg(long, value_name = "DIR", global = true)]
    pub(in crate::cli) policies: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ContextAction {
    /// Show how full the context of a session is, and what it spent: exit code 1 from the tier `act` on
    Status {
        /// A transcript, or the beginning of a session's id; the project's newest by default
        session: Option<String>,
        /// Form of what is printed; `compact` is one line
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
        /// Print it again and again
        #[arg(long)]
        watch: bool,
        /// Time between two looks
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
        every: Duration,
        /// End after that time
        #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "watch")]
        length: Option<Duration>,
    },
    /// Summarise a session for the context that comes after it: printed, and kept to be told there
    Summary {
        /// A transcript, or the beginning of a session's id; the project's newest by default
        session: Option<String>,
        /// A commit from which on changes count
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
        /// Only print it
        #[arg(long)]
        print: bool,
    },
    /// One line for the client's status line: its JSON comes on stdin
    Line,
}
