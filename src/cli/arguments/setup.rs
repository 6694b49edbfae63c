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
    /// Trust future changes too; only for a directory that only you can write
    #[arg(long)]
    pub(in crate::cli) changes: bool,
    /// Honor `.disabled` files and amplihack's configuration in this project
    #[arg(long, conflicts_with_all = ["list", "changes", "folder"])]
    pub(in crate::cli) switch_files: bool,
}

/// Which settings are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Scope {
    /// Yours, in all projects
    User,
    /// The project's, for everybody who works on it
    Project,
    /// Yours in this project (Claude Code only); leave its file out of the repository
    Local,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InstallArguments {
    /// The clients: claude-code, codex, gemini, cursor, copilot, droid, opencode; those that are
    /// found by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) harness: Vec<String>,
    /// Which settings
    #[arg(long, value_enum, default_value = "user")]
    pub(in crate::cli) scope: Scope,
    /// The events, `all`, or those that policyd may have an opinion on by default
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(in crate::cli) events: Vec<String>,
    /// What happens if a hook of tool calls fails; stops stay open
    #[arg(long, value_enum, default_value = "open")]
    pub(in crate::cli) on_failure: OnFailure,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Write a plugin of Claude Code into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["harness", "scope"])]
    pub(in crate::cli) plugin: Option<PathBuf>,
}

/// What a client does if a hook cannot start, times out or crashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum OnFailure {
    /// The call goes ahead
    #[default]
    Open,
    /// The call is blocked, where the client has such a setting
    Closed,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UninstallArguments {
    /// The clients; those that are found by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) harness: Vec<String>,
    /// Which settings
    #[arg(long, value_enum, default_value = "user")]
    pub(in crate::cli) scope: Scope,
    /// Also remove your own folders of policyd: configuration, cache and state; projects keep theirs
    #[arg(long)]
    pub(in crate::cli) purge: bool,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DoctorArguments {
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: super::ReportFormat,
}
