//! Arguments of `policyd trust`, `install`, `uninstall` and `doctor`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TrustArguments {
    /// Pack directory, or directory that contains `.policyd/policies`; default: the project
    #[arg(value_name = "DIR")]
    pub(in crate::cli) folder: Option<PathBuf>,
    /// List trusted packs
    #[arg(long, conflicts_with_all = ["revoke", "changes", "folder"])]
    pub(in crate::cli) list: bool,
    /// Revoke the trust
    #[arg(long, conflicts_with = "changes")]
    pub(in crate::cli) revoke: bool,
    /// Trust future changes too; only for a directory that only you can write
    #[arg(long)]
    pub(in crate::cli) changes: bool,
    /// Honor `.disabled` files and amplihack's configuration in this project
    #[arg(long, conflicts_with_all = ["list", "changes", "folder"])]
    pub(in crate::cli) switch_files: bool,
    /// Print the content hash of the pack, for `trust.allowed_packs` of an organization
    #[arg(long, conflicts_with_all = ["list", "changes", "revoke", "switch_files"])]
    pub(in crate::cli) hash: bool,
}

/// Settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Scope {
    /// User settings, for all projects
    User,
    /// Project settings, shared with the team
    Project,
    /// User settings for this project (Claude Code only); do not commit the file
    Local,
    /// Settings of the machine, which no user can change; run the command as root
    System,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InstallArguments {
    /// Clients, separated by commas; default: the clients found on this machine
    ///
    /// Supported: claude-code, codex, gemini, cursor, copilot, droid, opencode.
    #[arg(long, visible_alias = "client", value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) harness: Vec<String>,
    /// Settings to change
    #[arg(long, value_enum, default_value = "user")]
    pub(in crate::cli) scope: Scope,
    /// Events, separated by commas, or `all`; default: the events that policyd can decide
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(in crate::cli) events: Vec<String>,
    /// What happens to a tool call if its hook fails; stops are always `open`
    #[arg(long, value_enum, default_value = "open")]
    pub(in crate::cli) on_failure: OnFailure,
    /// Dry run: show the changes without writing them
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Observe: evaluate and log every rule, and block nothing until `policyd enforce`
    #[arg(long)]
    pub(in crate::cli) observe: bool,
    /// Write a Claude Code plugin to this directory instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["harness", "scope"])]
    pub(in crate::cli) plugin: Option<PathBuf>,
}

/// What a client does if a hook cannot start, times out or crashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum OnFailure {
    /// The call proceeds
    #[default]
    Open,
    /// The call is blocked, if the client supports it
    Closed,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UninstallArguments {
    /// Clients, separated by commas; default: the clients found on this machine
    #[arg(long, visible_alias = "client", value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) harness: Vec<String>,
    /// Settings to change
    #[arg(long, value_enum, default_value = "user")]
    pub(in crate::cli) scope: Scope,
    /// Also remove the configuration, the cache, and the state of policyd, here and in every known project
    #[arg(long)]
    pub(in crate::cli) purge: bool,
    /// With `--purge`: also remove your packs (`policies`)
    #[arg(long, requires = "purge")]
    pub(in crate::cli) packs: bool,
    /// Dry run: show the changes without writing them
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DoctorArguments {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: super::ReportFormat,
}
