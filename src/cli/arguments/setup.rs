//! What `policyd trust`, `install`, `uninstall` and `doctor` may say.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TrustArguments {
    /// The pack, or a folder with `.policyd/policies` in it; the project's by default
    #[arg(value_name = "DIR")]
    pub(in crate::cli) folder: Option<PathBuf>,
    /// List the packs that are trusted
    #[arg(long, conflicts_with_all = ["revoke", "changes", "folder"])]
    pub(in crate::cli) list: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "changes")]
    pub(in crate::cli) revoke: bool,
    /// Trust whatever it becomes, too: for a folder that nobody else writes
    #[arg(long)]
    pub(in crate::cli) changes: bool,
}
