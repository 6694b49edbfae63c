//! Calls of the program in this process, as a person, a script or a client makes them.

use std::io::Write;

use policyd::cli::{self, Console};
use policyd::world::World;

/// What a call said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Which streams are a terminal: neither, as for a script or a client, if not said otherwise.
#[derive(Clone, Copy, Default)]
pub(crate) struct Terminal {
    /// Standard input.
    pub(crate) typed: bool,
    /// Standard output.
    pub(crate) shown: bool,
}

impl Terminal {
    /// A person types the command; the output is read by the test.
    pub(crate) const TYPED: Self = Self { typed: true, shown: false };
}

/// Calls the program as a script or a client does.
pub(crate) fn call(world: &dyn World, words: &[&str], stdin: &[u8]) -> Said {
    call_at(world, Terminal::default(), words, stdin)
}

/// Calls the program at a terminal.
pub(crate) fn call_at(world: &dyn World, at: Terminal, words: &[&str], stdin: &[u8]) -> Said {
    let mut out = Vec::new();
    let (code, err) = call_into(world, at, words, stdin, &mut out);
    Said { code, out: String::from_utf8(out).unwrap(), err }
}

/// Calls the program with another reader of its standard output: the exit code and standard error.
pub(crate) fn call_into(
    world: &dyn World,
    at: Terminal,
    words: &[&str],
    mut stdin: &[u8],
    stdout: &mut dyn Write,
) -> (u8, String) {
    let mut stderr = Vec::new();
    let mut console = Console {
        stdin: &mut stdin,
        stdout,
        stderr: &mut stderr,
        stdout_is_tty: at.shown,
        stderr_is_tty: false,
        stdin_is_tty: at.typed,
        columns: None,
    };
    let words: Vec<_> = ["policyd"].iter().chain(words).map(Into::into).collect();
    let code = cli::run(world, &mut console, &words);
    (code, String::from_utf8(stderr).unwrap())
}
