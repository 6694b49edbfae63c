//! What `policyd run` may say.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::resilience::duration;
use crate::state::run::budget;

/// What is printed while a run is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RunFormat {
    /// For people
    Text,
    /// One JSON object for each event
    Jsonl,
}

/// How an agent says that it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ClaimWay {
    /// The signal COMPLETION_REQUESTED
    Signal,
    /// `complete: true` in an answer by a JSON schema
    Structured,
    /// Any turn that ends with exit code 0
    Exit,
}

impl ClaimWay {
    /// Its name in `run.yaml`.
    pub(in crate::cli) const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Structured => "structured",
            Self::Exit => "exit",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RunArguments {
    /// What is to be reached: a text, or a file that holds it
    #[arg(long, value_name = "TEXT|FILE", required_unless_present = "resume")]
    pub(in crate::cli) goal: Option<String>,
    /// Turns of all sessions together
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_iterations: Option<u32>,
    /// Fresh sessions where the context is full or the agent is stuck; never more than 5
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_restarts: Option<u32>,
    /// Money at most, in USD; the command must tell what it costs
    #[arg(long, value_name = "USD", value_parser = money)]
    pub(in crate::cli) budget_usd: Option<f64>,
    /// Longest time of one turn
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(in crate::cli) turn_deadline: Option<Duration>,
    /// How the agent says that it is done; as run.yaml says, else
    #[arg(long, value_enum, value_name = "HOW")]
    pub(in crate::cli) claim: Vec<ClaimWay>,
    /// Folder of our own, in the place of `.policyd`
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) state: Option<PathBuf>,
    /// Go on with the last run that is not complete
    #[arg(long, conflicts_with = "goal")]
    pub(in crate::cli) resume: bool,
    /// Folder of the pack; the project's own by default
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) policies: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: RunFormat,
    /// The command of a turn. `{prompt}` in an argument is the prompt; without one it is given on
    /// standard input
    #[arg(last = true, value_name = "CMD", required_unless_present = "resume")]
    pub(in crate::cli) command: Vec<String>,
}

fn money(text: &str) -> Result<f64, String> {
    let limit = budget::parse(text).filter(|it| *it > 0.0);
    limit.ok_or_else(|| format!("`{text}` is no amount of money; write 10 or 2.50"))
}
