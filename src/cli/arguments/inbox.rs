//! Arguments of `policyd inbox`.

use clap::{Subcommand, ValueEnum};

use super::format::ListFormat;

#[derive(Debug, clap::Args)]
pub(crate) struct InboxArguments {
    /// Output format of the list
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
    #[command(subcommand)]
    pub(crate) action: Option<InboxAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InboxAction {
    /// List what waits, as `policyd inbox` does
    List {
        /// Output format of the list
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Answer an item: approve, retry or reset it, or reject or abandon it
    Answer(AnswerArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArguments {
    /// Id of the item, or its beginning
    pub(crate) id: String,
    /// The answer
    #[arg(value_enum)]
    pub(crate) answer: YesOrNo,
    /// What the agent should know, such as the decision or the reason
    pub(crate) text: Vec<String>,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesOrNo {
    /// Approve, retry, or reset
    #[value(alias = "approve")]
    Yes,
    /// Reject or abandon
    #[value(alias = "reject")]
    No,
}

impl YesOrNo {
    /// Whether it is a yes.
    pub(crate) fn is_yes(self) -> bool {
        self == Self::Yes
    }
}
