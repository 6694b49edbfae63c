//! The streams of the process: what is said to people, and whether it arrives.

use std::io::{Read, Write};

/// Streams of the process.
pub struct Console<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Whether standard output is a terminal.
    pub terminal: bool,
    /// Whether standard error is a terminal, so that somebody sees how far a long run is.
    pub watched: bool,
    /// Whether standard input is a terminal; a hook's never is.
    pub typed: bool,
}

impl Console<'_> {
    /// Writes to standard output; a closed pipe is nobody's problem.
    pub(super) fn say(&mut self, text: &str) {
        drop(self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()));
    }

    /// Writes a line to standard error.
    pub(super) fn complain(&mut self, text: &str) {
        drop(writeln!(self.stderr, "policyd: {text}"));
    }

    /// Whether somebody writes JSON to standard input, as a client does that runs hooks.
    pub(super) fn is_fed_json(&mut self) -> bool {
        let mut sign = [b' '];
        while !self.typed && sign[0].is_ascii_whitespace() {
            match self.stdin.read(&mut sign) {
                Ok(1) => {}
                Ok(_) | Err(_) => return false,
            }
        }
        sign[0] == b'{'
    }

    /// Whether output is coloured and links are shown: a terminal, or what `--color` says.
    pub(super) const fn color(&self) -> bool {
        self.terminal
    }
}

/// A stream, and why what was written to it did not arrive.
pub(super) struct Watched<'a> {
    pub(super) stream: &'a mut dyn Write,
    pub(super) lost: Option<std::io::Error>,
}

impl Watched<'_> {
    /// Notes an error; whoever closed a pipe has read enough.
    fn noted<T>(&mut self, outcome: std::io::Result<T>) -> std::io::Result<T> {
        outcome.map_err(|error| {
            let kind = error.kind();
            if kind != std::io::ErrorKind::BrokenPipe {
                self.lost = Some(error);
            }
            kind.into()
        })
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let outcome = self.stream.write(bytes);
        self.noted(outcome)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let outcome = self.stream.flush();
        self.noted(outcome)
    }
}
