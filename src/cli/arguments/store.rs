//! Arguments of `policyd store`.

use clap::{Subcommand, ValueEnum};

use super::format::ListFormat;

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    pub(crate) action: StoreAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAction {
    /// Create the tables, the roles, and the group of the configuration in the database
    Init {
        /// URL of an account that may create tables and roles; default: the configured one
        #[arg(long)]
        url: Option<String>,
    },
    /// Update the tables to the version of this program
    Migrate {
        /// URL of an account that may change tables; default: the configured one
        #[arg(long)]
        url: Option<String>,
    },
    /// Show the server, the local copy, and what waits (exit code 1: the server cannot be used)
    Status {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Compare the local copy with the server (exit code 1: they differ)
    Verify,
    /// Copy documents that the target does not have
    Copy {
        /// Where the documents are
        #[arg(long, value_enum)]
        from: StorePlace,
        /// Where they are copied to
        #[arg(long, value_enum)]
        to: StorePlace,
    },
    /// List the supervised runs of all hosts, the newest record first
    Runs {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Send what waits, and take over changes of other hosts (exit code 1: something waits or was rejected)
    Sync,
    /// Move what waits for an earlier address or group to the configured one
    Move {
        /// URL that the configuration contained before
        #[arg(long)]
        from: String,
        /// Group before; default: the configured one
        #[arg(long)]
        from_group: Option<String>,
    },
    /// List the operations that the server rejected, send them again, or remove them
    Rejected {
        /// What to do with them
        #[arg(value_enum, default_value = "list")]
        action: RejectedAction,
        /// Names of operations, as listed; default: all
        names: Vec<String>,
        /// Output format of the list
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Keep the local copy current until it is interrupted
    Watch,
}

/// What `policyd store rejected` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RejectedAction {
    /// List them, oldest first
    List,
    /// Send them again
    Send,
    /// Remove them
    Drop,
}

/// Where shared documents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StorePlace {
    /// The files of the project
    Files,
    /// The server
    Postgres,
}
