//! Why an operation failed: whether its input is wrong, and what the user reads.

use std::fmt::{self, Display, Formatter};

use anyhow::Error;

/// What kind of failure ended an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppErrorKind {
    /// The command line or its input is wrong.
    Usage,
    /// A file could not be used, or the state of the project does not permit the operation.
    Failed,
}

/// A failed operation.
#[derive(Debug)]
pub struct AppError {
    kind: AppErrorKind,
    error: Error,
}

impl AppError {
    /// A mistake in the command line or in its input.
    pub fn usage(message: impl Display) -> Self {
        Self { kind: AppErrorKind::Usage, error: Error::msg(message.to_string()) }
    }

    /// An operation that failed because of another error.
    pub fn failed(error: impl Into<Error>) -> Self {
        Self { kind: AppErrorKind::Failed, error: error.into() }
    }

    /// An operation that failed, described by a message.
    pub fn failed_as(message: impl Display) -> Self {
        Self::failed(Error::msg(message.to_string()))
    }

    /// Names what the error is about, such as the path of a file.
    pub fn about(self, context: impl Display) -> Self {
        Self { kind: self.kind, error: self.error.context(context.to_string()) }
    }

    /// Whether the command line or its input is wrong.
    pub fn is_usage(&self) -> bool {
        self.kind == AppErrorKind::Usage
    }
}

impl Display for AppError {
    /// The error with everything that it is about: `settings.json: permission denied`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::WorldError;

    #[test]
    fn an_error_names_what_it_is_about_and_keeps_its_kind() {
        let error = AppError::failed(WorldError::NotFound).about("a.json");
        assert_eq!(error.to_string(), format!("a.json: {}", WorldError::NotFound));
        assert!(!error.is_usage());
        assert!(AppError::usage("no goal").about("run").is_usage());
    }
}
