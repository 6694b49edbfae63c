//! Why a page was not made, or a change not done.

use crate::webhook::SignatureError;
use policyd_index::IndexError;

/// Why a page was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("The page does not exist.")]
    NoPage,
    /// The project is not listed.
    #[error("The project {0} is not listed. `policyd status --all` shows the listed projects.")]
    NoProject(String),
    /// The record of a decision does not exist any more.
    #[error("The log does not contain the decision {0} anymore. Old logs are removed.")]
    NoDecision(String),
    #[error("The run does not exist.")]
    NoRun,
    #[error("The index of decisions cannot be read: {0}")]
    Index(#[from] IndexError),
    /// A change was not made.
    #[error("{0}")]
    Refused(String),
    /// A webhook reply is rejected.
    #[error("The reply is rejected: {0}.")]
    Signature(SignatureError),
}
