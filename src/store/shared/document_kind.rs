//! The kinds of documents in the shared store, by their names on the server.

/// Kind of the document of a circuit breaker.
pub(super) const BREAKER: &str = "breaker";
/// Kind of the document of a task.
pub(super) const TASK: &str = "task";
/// Kind of the document of an escalation.
pub(super) const ESCALATION: &str = "escalation";
/// Kind of the document of a request to let a blocked call pass.
pub(super) const APPROVAL: &str = "approval";
/// Kind of the document of a supervised run.
pub(super) const RUN: &str = "run";
/// Kind of the document of a signal.
pub(super) const SIGNAL: &str = "signal";
/// All kinds.
pub(super) const KINDS: [&str; 6] = [BREAKER, TASK, ESCALATION, APPROVAL, RUN, SIGNAL];
