//! Reports errors of the application to the user, with their exit codes.

use policyd_workspace::error::AppError;

use crate::Console;
use crate::exit::{EXIT_BROKEN, EXIT_USAGE};

/// The exit code of a command that failed.
pub fn exit_code(error: &AppError) -> u8 {
    if error.is_usage() { EXIT_USAGE } else { EXIT_BROKEN }
}

/// Prints an error and returns the exit code.
pub fn report(console: &mut Console<'_>, error: &AppError) -> u8 {
    console.eprint(&error.to_string());
    exit_code(error)
}
