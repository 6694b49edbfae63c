//! What the program of hooks does: one event in, one answer out, and the two commands that scripts and clients start as often.
//!
//! Contains: `policyd eval`, `breaker allow`, and `context line`, their command lines, and the streams.
//! Does not contain: the evaluation (`policyd-gate`), and any other command.
//!
//! ```
//! use policyd_eval::line::ArgumentLine;
//!
//! let words = ["policyd", "eval", "--hook", "stop"].map(Into::into);
//! assert_eq!(ArgumentLine::new(&words).plain_hook_call().unwrap().hook, "stop");
//! ```

pub mod breaker;
pub mod console;
pub mod error;
pub mod exit;
pub mod line;
pub mod run;
pub mod status_line;

use std::path::PathBuf;

pub use console::Console;

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalFormat {
    /// Response in the client's hook protocol; the exit code is always 0.
    Hook,
    /// Full report as JSON.
    Json,
    /// Human-readable text.
    Text,
}

/// A call of `policyd eval`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalCall {
    /// Hook event, such as `stop`.
    pub hook: String,
    /// Client that sends the event. `None`: detected from the payload.
    pub harness: Option<String>,
    /// Format of the answer.
    pub format: EvalFormat,
    /// Pack directory. `None`: the pack of the project.
    pub policies: Option<PathBuf>,
    /// File with the event. `None`: standard input.
    pub input: Option<PathBuf>,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether the value of each part of each condition is shown.
    pub explain: bool,
    /// Time of the evaluation (RFC 3339). `None`: now.
    pub now: Option<String>,
}
