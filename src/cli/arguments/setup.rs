//! Arguments of `policyd trust`, `install`, `uninstall` and `doctor`.

use std::path::PathBuf;

use super::format::ReportFormat;
use policyd_policy::approval::ApprovalLevel;

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArguments {
    /// Pack directory, or directory that contains `.policyd/policies`; default: the project
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// List trusted packs
    #[arg(long, conflicts_with_all = ["revoke", "changes", "folder"])]
    pub(crate) list: bool,
    /// Revoke the trust
    #[arg(long, conflicts_with = "changes")]
    pub(crate) revoke: bool,
    /// Trust future changes too; only for a directory that only you can write
    #[arg(long)]
    pub(crate) changes: bool,
    /// Honor `.disabled` files and amplihack's configuration in this project
    #[arg(long, conflicts_with_all = ["list", "changes", "folder"])]
    pub(crate) switch_files: bool,
    /// Print the content hash of the pack, for `trust.allowed_packs` of an organization
    #[arg(long, conflicts_with_all = ["list", "changes", "revoke", "switch_files"])]
    pub(crate) hash: bool,
}

/// Settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
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
pub(crate) struct InstallArguments {
    /// Clients, separated by commas; default: the clients found on this machine
    ///
    /// Supported: claude-code, codex, gemini, cursor, copilot, droid, opencode.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) harness: Vec<String>,
    /// Settings to change
    #[arg(long, value_enum, default_value = "user")]
    pub(crate) scope: Scope,
    /// Events, separated by commas, or `all`; default: the events that policyd can decide
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// What happens to a tool call if its hook fails; stops are always `open`
    #[arg(long, value_enum, default_value = "open")]
    pub(crate) on_failure: OnFailure,
    /// Dry run: show the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Observe: evaluate and log every rule, and block nothing until `policyd enforce`
    #[arg(long)]
    pub(crate) observe: bool,
    /// Permission prompts that policyd answers in place of you
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) approve: Option<Approve>,
    /// Write a Claude Code plugin to this directory instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["harness", "scope"])]
    pub(crate) plugin: Option<PathBuf>,
}

/// Which permission prompts policyd answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Approve {
    /// None
    None,
    /// Of calls that only read in the project, or ask a service
    Read,
    /// Also of tests, builds, formatters, writes in the project, and commits on your branch
    Work,
}

impl From<Approve> for ApprovalLevel {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::None => Self::None,
            Approve::Read => Self::Read,
            Approve::Work => Self::Work,
        }
    }
}

/// What a client does if a hook cannot start, times out or crashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnFailure {
    /// The call proceeds
    #[default]
    Open,
    /// The call is blocked, if the client supports it
    Closed,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArguments {
    /// Clients, separated by commas; default: the clients found on this machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) harness: Vec<String>,
    /// Settings to change
    #[arg(long, value_enum, default_value = "user")]
    pub(crate) scope: Scope,
    /// Also remove the configuration, the cache, and the state of policyd, here and in every known project
    #[arg(long)]
    pub(crate) purge: bool,
    /// With `--purge`: also remove your packs (`policies`)
    #[arg(long, requires = "purge")]
    pub(crate) packs: bool,
    /// Dry run: show the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ReportFormat,
}
