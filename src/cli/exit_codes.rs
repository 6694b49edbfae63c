//! Exit codes of the program and their meanings, as `clap` prints them below the help.

use policyd_eval::exit::{EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE};

/// What an exit code means. `eval` in hook format always exits with 0.
pub const EXIT_CODES: [(u8, &str); 11] = [
    (EXIT_OK, "clean, or released"),
    (EXIT_FOUND, "findings, failed, rejected, or blocked"),
    (EXIT_USAGE, "usage error"),
    (EXIT_BROKEN, "internal or I/O error"),
    (10, "stuck"),
    (11, "out of turns, time, or money"),
    (12, "out of restarts"),
    (13, "breaker open, or no progress"),
    (14, "human decision required"),
    (15, "could not start the command"),
    (130, "interrupted"),
];

/// Formats the exit codes for the help text.
pub(super) fn exit_codes() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("{code} {meaning}"));
    format!("Exit codes: {}.\n`eval` in hook format always exits with 0.", codes.join("; "))
}
