//! The streams of the process: what is said to people, and whether it arrives. Every command writes
//! through [`Console`], which escapes the control characters of texts that others wrote.

use std::io::{Read, Write};
use std::time::Duration;

use crate::exit::{EXIT_BROKEN, EXIT_OK};
use policyd_record::paint::for_terminal;
use policyd_record::table::{Screen, wrap_lines};
use policyd_store::document::DocumentError;
use policyd_world::World;

/// How long a client is waited for that may have called: it writes at once.
const INPUT_WAIT: Duration = Duration::from_secs(2);

/// Streams of the process.
pub struct Console<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Whether standard output is a terminal.
    pub stdout_is_tty: bool,
    /// Whether standard error is a terminal, so that the user sees the progress of a long operation.
    pub stderr_is_tty: bool,
    /// Whether standard input is a terminal; a hook's never is.
    pub stdin_is_tty: bool,
    /// Width of the terminal, if standard output is one.
    pub columns: Option<usize>,
}

impl Console<'_> {
    /// Writes to standard output, control characters escaped; a closed pipe is not an error.
    pub fn print(&mut self, text: &str) {
        let _closed = self.try_print(text);
    }

    /// Writes to standard output as [`Console::print`] does; returns whether a reader is left.
    pub fn try_print(&mut self, text: &str) -> bool {
        let text = for_terminal(text);
        self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()).is_ok()
    }

    /// Writes lines for a user to standard output, wrapped to the width of the terminal.
    pub fn print_lines(&mut self, text: &str) {
        let text = wrap_lines(text, self.screen());
        self.print(&text);
    }

    /// Clears a terminal that shows colors, before a view is drawn again. Other output stays as it is.
    pub fn clear_screen(&mut self) {
        if self.color() {
            drop(self.stdout.write_all(b"\x1b[H\x1b[2J"));
        }
    }

    /// The whole terminal, for a screen that draws itself and escapes what it shows.
    pub fn full_screen(&mut self) -> &mut dyn Write {
        &mut *self.stdout
    }

    /// Reports stored documents whose content is unknown. Returns the exit code of a command that lists their entries.
    pub fn report_unread(&mut self, problems: impl IntoIterator<Item = DocumentError>) -> u8 {
        let mut code = EXIT_OK;
        for problem in problems {
            self.eprint(&problem.to_string());
            code = EXIT_BROKEN;
        }
        code
    }

    /// Writes a line to standard error, control characters escaped.
    pub fn eprint(&mut self, text: &str) {
        self.eprint_as_is(&format!("policyd: {text}\n"));
    }

    /// Writes lines to standard error without the name of the program.
    pub fn eprint_as_is(&mut self, text: &str) {
        drop(self.stderr.write_all(for_terminal(text).as_bytes()));
    }

    /// Reports changes that a power loss can undo, each by its reason.
    pub fn warn_if_not_durable(&mut self, reasons: &[String]) {
        for why in reasons {
            self.eprint(&format!("saved, but a loss of power may undo it: {why}"));
        }
    }

    /// Returns whether standard input begins with a JSON object, as from a client that runs hooks. Waits at most
    /// `INPUT_WAIT`, since a writer may keep the pipe open without writing.
    pub fn stdin_is_json(&mut self, world: &dyn World) -> bool {
        if self.stdin_is_tty || !world.input_comes(INPUT_WAIT) {
            return false;
        }
        let mut begins = [0; 256];
        let length = self.stdin.read(&mut begins).unwrap_or(0);
        let begins = begins.get(..length).unwrap_or_default();
        let begins = begins.strip_prefix("\u{feff}".as_bytes()).unwrap_or(begins);
        begins.trim_ascii_start().starts_with(b"{")
    }

    /// The streams of a protocol that only programs read. Nothing is escaped.
    pub fn protocol(&mut self) -> (&mut dyn Read, &mut dyn Write) {
        (self.stdin, self.stdout)
    }

    /// Whether output is colored and links are shown: a terminal, or what `--color` says.
    pub const fn color(&self) -> bool {
        self.stdout_is_tty
    }

    /// Width and colors of the output.
    pub const fn screen(&self) -> Screen {
        Screen { columns: self.columns, color: self.color() }
    }
}

/// A stream, and why what was written to it did not arrive.
pub struct WatchedStream<'a> {
    stream: &'a mut dyn Write,
    pub lost: Option<std::io::Error>,
    /// The last byte that was written.
    last: u8,
}

impl<'a> WatchedStream<'a> {
    /// Watches a stream.
    pub fn new(stream: &'a mut dyn Write) -> Self {
        Self { stream, lost: None, last: b'\n' }
    }

    /// Ends the line that was written last, so that the prompt of a shell begins on a new line.
    pub fn end_line(&mut self) {
        if self.last != b'\n' {
            let _closed = self.write_all(b"\n").and_then(|()| self.flush());
        }
    }

    /// Records an output error. A closed pipe is not an error: its reader has read enough.
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

impl Write for WatchedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let outcome = self.stream.write(bytes);
        let written = outcome.as_ref().ok().and_then(|it| bytes.get(..*it));
        self.last = written.and_then(<[u8]>::last).copied().unwrap_or(self.last);
        self.noted(outcome)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let outcome = self.stream.flush();
        self.noted(outcome)
    }
}
