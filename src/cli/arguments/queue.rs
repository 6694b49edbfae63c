//! What `policyd dlq` and `policyd escalation` may say.

use clap::{Subcommand, ValueEnum};

use super::ListFormat;
use crate::state::dead_letter::MARKS;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DlqArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: DlqAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DlqAction {
    /// Take a failed attempt in; the task is put aside where the rules say so
    Add(Box<DlqAdd>),
    /// List tasks
    List {
        /// Which list
        #[arg(long = "in", value_enum, default_value = "dead-letter")]
        place: ListPlace,
        /// Only tasks whose last error has this fingerprint, as `stats` shows it
        #[arg(long, value_name = "CAUSE")]
        cause: Option<String>,
        /// Form of the list
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show one task with its attempts, and what the next review would do with it
    Show {
        /// Its id
        task: String,
        /// Form of the answer
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Look at the dead letters and do what the rules say: retry, split, escalate, abandon, wait
    Review {
        /// Ids of tasks; all dead letters by default
        tasks: Vec<String>,
        /// Only where the last review is longer ago than `review_every`
        #[arg(long)]
        if_due: bool,
        /// Show what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Form of the report
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Put a task back to work: with what was learned, or because a human says so
    Retry(DlqRetry),
    /// Give a task up; it is kept in `abandoned.json` with the reason
    Abandon {
        /// Its id
        task: String,
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// Say that a task is done; it leaves the lists
    Resolve {
        /// Its id
        task: String,
    },
    /// Put dead letters back to work, oldest first, no faster than `redrive` allows
    Redrive {
        /// Ids of tasks; all dead letters by default
        tasks: Vec<String>,
        /// Only tasks whose last error has this fingerprint
        #[arg(long, value_name = "CAUSE")]
        cause: Option<String>,
        /// Show what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Count the tasks, their causes, and what the alarms say
    Stats {
        /// Form of the answer
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DlqAdd {
    /// Id of the task
    pub(in crate::cli) task: String,
    /// What the attempt ended with; `-` reads it from standard input
    #[arg(long, default_value = "")]
    pub(in crate::cli) error: String,
    /// Type of the error, such as `test_failure`, `timeout`, `dependency`, `validation`, `rate_limit`
    #[arg(long = "type", value_name = "TYPE", default_value = "")]
    pub(in crate::cli) error_type: String,
    /// What was tried
    #[arg(long, default_value = "")]
    pub(in crate::cli) approach: String,
    /// Who tried
    #[arg(long, default_value = "")]
    pub(in crate::cli) agent: String,
    /// Title of the task
    #[arg(long, default_value = "")]
    pub(in crate::cli) title: String,
    /// Description of the task
    #[arg(long, default_value = "")]
    pub(in crate::cli) description: String,
    /// How urgent it is
    #[arg(long, value_parser = ["high", "medium", "low"])]
    pub(in crate::cli) priority: Option<String>,
    /// Id of a task that it needs; may be given several times
    #[arg(long = "needs", value_name = "TASK")]
    pub(in crate::cli) dependencies: Vec<String>,
    /// What is the case; may be given several times
    #[arg(long = "mark", value_name = "MARK", value_parser = MARKS.to_vec())]
    pub(in crate::cli) marks: Vec<String>,
    /// How sure the agent is that it knows what to do, from 0 to 1
    #[arg(long, value_name = "0..1", value_parser = fraction)]
    pub(in crate::cli) confidence: Option<f64>,
    /// Names this report: the same one is taken in once
    #[arg(long, default_value = "")]
    pub(in crate::cli) key: String,
    /// Put it aside at once, whatever the rules say
    #[arg(long)]
    pub(in crate::cli) at_once: bool,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: ListFormat,
}

fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|it| (0.0..=1.0).contains(it));
    value.ok_or_else(|| "it is a number from 0 to 1, such as 0.35".to_owned())
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DlqRetry {
    /// Its id
    pub(in crate::cli) task: String,
    /// A new approach: failures count from 0 again
    #[arg(long, default_value = "")]
    pub(in crate::cli) approach: String,
    /// A smaller scope: a new task is made of it
    #[arg(long, default_value = "")]
    pub(in crate::cli) scope: String,
    /// The commit that fixed what blocked it
    #[arg(long, default_value = "", value_name = "COMMIT")]
    pub(in crate::cli) fix_commit: String,
    /// What it waited for is there
    #[arg(long)]
    pub(in crate::cli) dependency_available: bool,
    /// Put it back however often that was done before
    #[arg(long)]
    pub(in crate::cli) force: bool,
}

/// A list of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ListPlace {
    /// Those that wait for somebody
    Pending,
    /// Those that somebody works on
    InProgress,
    /// Those that failed again and again
    DeadLetter,
    /// Those that were given up
    Abandoned,
    /// All of them
    All,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EscalationArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: EscalationAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum EscalationAction {
    /// Ask a human to decide; the document is named on standard output
    Open(EscalationOpen),
    /// List what humans were asked
    List {
        /// Those that were answered, too
        #[arg(long)]
        all: bool,
        /// Form of the list
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Show the document of one
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Answer one, as a human: the task goes on, or is given up
    Resolve {
        /// Its id, or the beginning of it
        id: String,
        /// What was decided
        #[arg(long, value_name = "TEXT")]
        decision: String,
        /// The task is given up
        #[arg(long)]
        reject: bool,
    },
    /// Tell humans of everything that is open and due
    Remind,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EscalationOpen {
    /// Why a human is needed
    #[arg(long)]
    pub(in crate::cli) reason: String,
    /// The task it is about
    #[arg(long, default_value = "", conflicts_with = "gate")]
    pub(in crate::cli) task: String,
    /// The gate that cannot be passed
    #[arg(long, default_value = "")]
    pub(in crate::cli) gate: String,
    /// What fails
    #[arg(long, default_value = "")]
    pub(in crate::cli) summary: String,
    /// What was tried, and why it failed
    #[arg(long, default_value = "")]
    pub(in crate::cli) analysis: String,
    /// What may be decided, with what it costs; may be given several times
    #[arg(long = "option", value_name = "TEXT")]
    pub(in crate::cli) options: Vec<String>,
    /// How much it matters
    #[arg(long, default_value = "high", value_parser = ["low", "medium", "high", "critical"])]
    pub(in crate::cli) severity: String,
    /// The task stands still until a human answered
    #[arg(long)]
    pub(in crate::cli) blocking: bool,
}
