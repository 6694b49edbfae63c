//! Arguments of `policyd rule` and `policyd rules`.

use std::path::PathBuf;

use clap::Subcommand;

use super::format::ListFormat;

#[derive(Debug, clap::Args)]
pub(crate) struct RuleArguments {
    #[command(subcommand)]
    pub(crate) action: RuleAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RuleAction {
    /// Disable rules or guard sets
    Off(RuleStateArguments),
    /// Let rules or guard sets only warn
    Warn(RuleStateArguments),
    /// Let rules or guard sets only write to the decision log
    Observe(RuleStateArguments),
    /// Let rules or guard sets act again
    On(RuleStateArguments),
    /// List the rules; `--changed` lists those that you or the project changed
    List(RuleListArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RuleStateArguments {
    /// Rule or guard set, such as `git_reset_hard` or `git-discipline`
    #[arg(value_name = "ID|SET", required = true)]
    pub(crate) names: Vec<String>,
    /// Change your own pack, for every project (default)
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,
    /// Change the pack of this project, for everyone who trusts it
    #[arg(long)]
    pub(crate) project: bool,
    /// Reason, which the pack and the decision log contain
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RuleListArguments {
    /// Only rules that your pack or the pack of the project changes
    #[arg(long)]
    pub(crate) changed: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArguments {
    /// Rule, set or word to search for, such as `rm_recursive` or `force`; default: list all rules
    #[arg(value_name = "ID|SET|WORD")]
    pub(crate) name: Option<String>,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Output format; `compact` prints one line per rule with its location
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}
