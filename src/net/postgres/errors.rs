//! Errors of PostgreSQL as those of the server: what happened to the change, and whether it can succeed later.

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use policyd_world::server::ServerError;

/// Function of PostgreSQL that reports an error which SQL code raised.
const RAISED: &str = "exec_stmt_raise";

/// Returns the message of an error with its causes.
pub(super) fn cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// Classifies an error before the client commits.
pub(super) fn server_error(error: &Error) -> ServerError {
    error.as_db_error().map_or_else(|| ServerError::Lost(cause(error)), database_error)
}

/// Classifies an error of a commit. Only an error that ends the transaction, and not the connection, says that nothing was
/// committed.
pub(super) fn commit_error(error: &Error) -> ServerError {
    match error.as_db_error() {
        Some(it) if is_rollback(it) => database_error(it),
        Some(it) => ServerError::CommitUnknown(it.message().to_owned()),
        None => ServerError::CommitUnknown(cause(error)),
    }
}

/// Returns whether the server ended the transaction without a change.
fn is_rollback(error: &DbError) -> bool {
    let unknown =
        [SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN, SqlState::TRANSACTION_RESOLUTION_UNKNOWN];
    error.parsed_severity() == Some(Severity::Error) && !unknown.contains(error.code())
}

/// Classifies an error that the server reported.
fn database_error(error: &DbError) -> ServerError {
    let (code, text) = (error.code(), error.message().to_owned());
    let class = code.code().get(..2).unwrap_or_default();
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    let read_only = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::DISK_FULL];
    if missing.contains(code) {
        ServerError::NoSchema
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        // A check of a document raises it; a missing grant does not.
        match error.routine() {
            Some(RAISED) => ServerError::NotPermitted(text),
            _ => ServerError::NoAccess(text),
        }
    } else if read_only.contains(code) || *code == SqlState::CONFIGURATION_LIMIT_EXCEEDED {
        ServerError::ReadOnly(text)
    } else if class == "53" {
        ServerError::Overloaded(text)
    } else if class == "28" || class == "3D" {
        ServerError::SignIn(text)
    } else if matches!(class, "08" | "57" | "40" | "55" | "58" | "25") {
        // Lock timeouts, serialization failures, and ended transactions, or a shutdown.
        match error.parsed_severity() {
            Some(Severity::Error) => ServerError::RolledBack(text),
            _ => ServerError::Lost(text),
        }
    } else {
        ServerError::Rejected(text)
    }
}
