//! Arguments of `policyd dlq` and `policyd escalation`.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::format::ListFormat;
use super::values::{fraction, time};
use policyd_state::dead_letter::MARKS;

#[derive(Debug, clap::Args)]
pub(crate) struct DlqArguments {
    #[command(subcommand)]
    pub(crate) action: DlqAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DlqAction {
    /// Record a failed attempt; rules may move the task to the dead-letter queue
    Add(Box<DlqAdd>),
    /// List tasks
    List {
        /// Queue to list
        #[arg(long = "in", value_enum, default_value = "dead-letter")]
        place: QueueSelector,
        /// Only tasks whose last error has this fingerprint, as shown by `stats`
        #[arg(long, value_name = "CAUSE")]
        cause: Option<String>,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show a task with its attempts and the action of the next review
    Show {
        /// Task ID
        task: String,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Review dead-lettered tasks: retry, split, escalate, abandon or wait, as the rules decide
    Review {
        /// Task IDs; default: all dead-lettered tasks
        tasks: Vec<String>,
        /// Only if the last review is older than `review_every`
        #[arg(long)]
        if_due: bool,
        /// Dry run: show the actions without performing them
        #[arg(long)]
        dry_run: bool,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Requeue a task, with a new approach or by human decision
    Retry(DlqRetry),
    /// Abandon a task; `abandoned.json` keeps it with the reason
    Abandon {
        /// Task ID
        task: String,
        /// Reason
        #[arg(long)]
        reason: String,
    },
    /// Mark a task as done and remove it from the queues
    Resolve {
        /// Task ID
        task: String,
    },
    /// Requeue dead-lettered tasks, oldest first, at the rate that `redrive` allows
    Redrive {
        /// Task IDs; default: all dead-lettered tasks
        tasks: Vec<String>,
        /// Only tasks whose last error has this fingerprint
        #[arg(long, value_name = "CAUSE")]
        cause: Option<String>,
        /// Dry run: show the actions without performing them
        #[arg(long)]
        dry_run: bool,
    },
    /// Claim a dead-lettered task: no other agent of any host gets it until the lease ends
    Claim {
        /// Task ID; default: the oldest dead-lettered task that is free
        task: Option<String>,
        /// Name of the agent; default: the user
        #[arg(long, value_name = "NAME", default_value = "")]
        holder: String,
        /// Length of the lease
        #[arg(long, value_name = "DURATION", value_parser = time, default_value = "10m")]
        lease: Duration,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Give a claimed task back before its lease ends
    Unclaim {
        /// Task ID
        task: String,
        /// Generation that `claim` printed
        #[arg(long)]
        generation: u64,
    },
    /// Mark a claimed task as done (exit code 1: another agent claimed it since)
    Finish {
        /// Task ID
        task: String,
        /// Generation that `claim` printed
        #[arg(long)]
        generation: u64,
    },
    /// Show task counts, causes of failure, and active alarms
    Stats {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct DlqAdd {
    /// Task ID
    pub(crate) task: String,
    /// Error message of the attempt; `-` reads standard input
    #[arg(long, default_value = "")]
    pub(crate) error: String,
    /// Error type, such as `test_failure`, `timeout`, `dependency`, `validation` or `rate_limit`
    #[arg(long = "type", value_name = "TYPE", default_value = "")]
    pub(crate) error_type: String,
    /// Approach of the attempt
    #[arg(long, default_value = "")]
    pub(crate) approach: String,
    /// Agent that made the attempt
    #[arg(long, default_value = "")]
    pub(crate) agent: String,
    /// Title of the task
    #[arg(long, default_value = "")]
    pub(crate) title: String,
    /// Description of the task
    #[arg(long, default_value = "")]
    pub(crate) description: String,
    /// Priority of the task
    #[arg(long, value_parser = ["high", "medium", "low"])]
    pub(crate) priority: Option<String>,
    /// ID of a task that this task depends on; repeatable
    #[arg(long = "depends-on", value_name = "TASK")]
    pub(crate) dependencies: Vec<String>,
    /// Label of the failure; repeatable
    #[arg(long = "label", value_name = "LABEL", value_parser = MARKS.to_vec())]
    pub(crate) marks: Vec<String>,
    /// Confidence of the agent in its approach, from 0 to 1
    #[arg(long, value_name = "0..1", value_parser = fraction)]
    pub(crate) confidence: Option<f64>,
    /// Idempotency key: a second report with the same key is ignored
    #[arg(long, default_value = "")]
    pub(crate) key: String,
    /// Move the task to the dead-letter queue now, without evaluating the rules
    #[arg(long)]
    pub(crate) immediately: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DlqRetry {
    /// Task ID
    pub(crate) task: String,
    /// New approach; resets the failure count to 0
    #[arg(long, default_value = "")]
    pub(crate) approach: String,
    /// Smaller scope; creates a new task
    #[arg(long, default_value = "")]
    pub(crate) scope: String,
    /// Commit that fixed the cause of the failure
    #[arg(long, default_value = "", value_name = "COMMIT")]
    pub(crate) fix_commit: String,
    /// Mark the missing dependency as available
    #[arg(long)]
    pub(crate) dependency_available: bool,
    /// Requeue the task even if it reached the requeue limit
    #[arg(long)]
    pub(crate) force: bool,
}

/// Selects a task queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueSelector {
    /// Tasks that wait for a worker
    Pending,
    /// Tasks in progress
    InProgress,
    /// Tasks that failed repeatedly
    DeadLetter,
    /// Abandoned tasks
    Abandoned,
    /// All tasks
    All,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EscalationArguments {
    #[command(subcommand)]
    pub(crate) action: EscalationAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EscalationAction {
    /// Request a human decision and print the path of its document
    Open(EscalationOpen),
    /// List escalations
    List {
        /// Include resolved escalations
        #[arg(long)]
        all: bool,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show the document of an escalation
    Show {
        /// Escalation ID or a unique prefix
        id: String,
    },
    /// Resolve an escalation (humans only): requeue its task, or abandon it with `--reject`
    Resolve {
        /// Escalation ID or a unique prefix
        id: String,
        /// Decision
        #[arg(long, value_name = "TEXT")]
        decision: String,
        /// Reject: abandon the task
        #[arg(long)]
        reject: bool,
    },
    /// Acknowledge an escalation: channels of `config.yaml` do not repeat its alert
    Ack {
        /// Escalation ID or a unique prefix
        id: String,
    },
    /// Send notifications that are due: of this project's pack, and of all projects by `config.yaml`
    Notify,
    /// Send a test alert through a channel of `config.yaml` or `escalation.yaml`
    Test {
        /// Name of the channel
        channel: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct EscalationOpen {
    /// Reason why a human must decide
    #[arg(long)]
    pub(crate) reason: String,
    /// Task that the escalation is about
    #[arg(long, default_value = "", conflicts_with = "gate")]
    pub(crate) task: String,
    /// Quality gate that fails
    #[arg(long, default_value = "")]
    pub(crate) gate: String,
    /// Summary of the failure
    #[arg(long, default_value = "")]
    pub(crate) summary: String,
    /// Attempts and why they failed
    #[arg(long, default_value = "")]
    pub(crate) analysis: String,
    /// Possible decision with its cost; repeatable
    #[arg(long = "option", value_name = "TEXT")]
    pub(crate) options: Vec<String>,
    /// Severity of the escalation
    #[arg(long, default_value = "high", value_parser = ["low", "medium", "high", "critical"])]
    pub(crate) severity: String,
    /// Block the task until the escalation is resolved
    #[arg(long)]
    pub(crate) blocking: bool,
}
