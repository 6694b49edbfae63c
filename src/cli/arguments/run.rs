//! Arguments of `policyd run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::values::{duration, money};

/// Output format of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Human-readable text
    Text,
    /// One JSON object per event
    Jsonl,
}

/// How an agent claims completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClaimWay {
    /// Signal `COMPLETION_REQUESTED`
    Signal,
    /// `complete: true` in structured JSON output
    Structured,
    /// Exit code 0 of a turn
    Exit,
}

impl ClaimWay {
    /// Returns the name used in `run.yaml`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Structured => "structured",
            Self::Exit => "exit",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Goal of the run: text, or a file that contains it
    #[arg(long, value_name = "TEXT|FILE", required_unless_present = "resume")]
    pub(crate) goal: Option<String>,
    /// Maximum number of turns, over all sessions
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// Maximum number of fresh sessions after a full context or a stuck agent; at most 5
    #[arg(long, value_name = "N")]
    pub(crate) max_restarts: Option<u32>,
    /// Maximum cost in USD; the agent command must report its cost
    #[arg(long, value_name = "USD", value_parser = money)]
    pub(crate) budget_usd: Option<f64>,
    /// Time limit of one turn
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) turn_deadline: Option<Duration>,
    /// How the agent claims completion; default: as set in `run.yaml`; repeatable
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) claim: Vec<ClaimWay>,
    /// State directory; default: `.policyd`
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Resume the last unfinished run
    #[arg(long, conflicts_with = "goal")]
    pub(crate) resume: bool,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RunFormat,
    /// Agent command of a turn; `{prompt}` is replaced by the prompt, else stdin receives it
    #[arg(last = true, value_name = "CMD", required_unless_present = "resume")]
    pub(crate) command: Vec<String>,
}
