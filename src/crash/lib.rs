//! The answer that a hook gives if a signal ends its process: a stack overflow, an abort without memory, a limit of
//! the processor time.
//!
//! Clients take a hook that dies for a hook without an answer, so the tool call runs. Therefore the hook prepares an
//! answer before it reads anything. The handler of the signals writes it to standard output, leaves a record for the
//! next event, and ends the process with 0.
//!
//! Contains: the handler, and the `unsafe` code that it needs. A handler may call only functions that POSIX calls
//! async-signal-safe, so everything that it needs is allocated before.
//! Does not contain: what the answer says, and who reads the record.
//!
//! ```
//! use policyd_crash::{CrashAnswer, prepare, withdraw};
//!
//! prepare(CrashAnswer { answer: b"{}", record: None, text: b"" });
//! // … the analysis …
//! withdraw();
//! ```

use std::path::Path;

/// What a process writes if a signal ends it.
#[derive(Debug, Clone, Copy)]
pub struct CrashAnswer<'a> {
    /// Written to standard output. Can be empty.
    pub answer: &'a [u8],
    /// The file that receives the record. `None`: the record is not written.
    pub record: Option<&'a Path>,
    /// The record, without the number of the signal, which follows it in a line.
    pub text: &'a [u8],
}

#[cfg(unix)]
mod unix;

/// Prepares the answer. A later call replaces it.
pub fn prepare(answer: CrashAnswer<'_>) {
    #[cfg(unix)]
    unix::prepare(answer);
    #[cfg(not(unix))]
    let _unsupported = answer;
}

/// Removes the answer. From here on, signals do what they do without this crate.
pub fn withdraw() {
    #[cfg(unix)]
    unix::withdraw();
}
