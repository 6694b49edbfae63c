//! Why a command failed: the kind decides the exit code, the error is what the user reads.

use std::fmt::Display;

use anyhow::Error;

use super::{Console, EXIT_BROKEN, EXIT_USAGE};

/// What kind of failure ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The command line or its input is wrong.
    Usage,
    /// A file could not be used, or the state of the project does not permit the command.
    Failed,
}

/// A failed command.
#[derive(Debug)]
pub(super) struct CliError {
    kind: Kind,
    error: Error,
}

impl CliError {
    /// A mistake in the command line or in its input.
    pub(super) fn usage(message: impl Display) -> Self {
        Self { kind: Kind::Usage, error: Error::msg(message.to_string()) }
    }

    /// Something that the command could not do.
    pub(super) fn failed(error: impl Into<Error>) -> Self {
        Self { kind: Kind::Failed, error: error.into() }
    }

    /// Something that the command could not do, in words.
    pub(super) fn failed_as(message: impl Display) -> Self {
        Self::failed(Error::msg(message.to_string()))
    }

    /// Names what the error is about, such as the path of a file.
    pub(super) fn about(self, context: impl Display) -> Self {
        Self { kind: self.kind, error: self.error.context(context.to_string()) }
    }

    /// The exit code.
    pub(super) const fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Usage => EXIT_USAGE,
            Kind::Failed => EXIT_BROKEN,
        }
    }

    /// Prints the error, and returns the exit code.
    pub(super) fn report(&self, console: &mut Console<'_>) -> u8 {
        console.complain(&self.to_string());
        self.exit_code()
    }
}

impl Display for CliError {
    /// The error with everything that it is about: `settings.json: permission denied`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::WorldError;

    #[test]
    fn an_error_names_what_it_is_about_and_keeps_its_kind() {
        let error = CliError::failed(WorldError::Missing).about("a.json");
        assert_eq!(error.to_string(), format!("a.json: {}", WorldError::Missing));
        assert_eq!(error.exit_code(), EXIT_BROKEN);
        assert_eq!(CliError::usage("no goal").about("run").exit_code(), EXIT_USAGE);
    }
}
