//! Arguments of `policyd context`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::format::ListFormat;
use super::values::duration;

#[derive(Debug, clap::Args)]
pub(crate) struct ContextArguments {
    #[command(subcommand)]
    pub(crate) action: ContextAction,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) policies: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextAction {
    /// Show context usage and cost of a session (exit code 1 from tier `act` upward)
    Status {
        /// Transcript file or session ID prefix; default: the project's newest session
        session: Option<String>,
        /// Output format; `compact` prints one line
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
        /// Repeat until interrupted, or for the duration of `--for`
        #[arg(long)]
        watch: bool,
        /// Interval between updates
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
        every: Duration,
        /// Stop after this duration
        #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "watch")]
        length: Option<Duration>,
    },
    /// Summarize a session, and save the summary for the next context
    Summary {
        /// Transcript file or session ID prefix; default: the project's newest session
        session: Option<String>,
        /// Only include changes since this commit
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
        /// Print the summary without saving it
        #[arg(long)]
        print: bool,
    },
    /// Print one line for the client's status line; reads the client's JSON from stdin
    Line,
}
