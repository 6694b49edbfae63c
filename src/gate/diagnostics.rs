//! What is reported while an event is evaluated, beside its answer.

use policyd_base::limits;
use policyd_evaluation::message;

/// Collects what functions report about an event. A function that takes it reports, and does not change the answer.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// Problems for the user, in the order in which they were found. No problem blocks anything.
    pub problems: Vec<String>,
    /// Lines of the debug log.
    pub trace: Vec<String>,
}

impl Diagnostics {
    /// Reports a problem to the user. A long text is cut.
    pub fn problem(&mut self, text: &str) {
        self.problems.push(message::cut(text, limits::PROBLEM_CHARS_MAX));
    }

    /// Adds a line to the debug log.
    pub fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }
}
