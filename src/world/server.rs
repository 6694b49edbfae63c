//! A server of shared documents: what the World can do with it, and its errors. Does not contain: what a
//! document means, and when it is read or written.
//!
//! A document is a JSON text with a kind and a name. All documents of one group have one sequence of
//! versions: a reader that knows version 7 has seen every change up to 7.

use std::time::Duration;

use policyd_yaml::time::Timestamp;

/// Where the server is, and how this process signs in.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// `postgres://user@host:port/database`, with the parameters of libpq.
    pub url: String,
    /// Password; it overrides one of the URL.
    pub password: Option<String>,
    /// Certificates of authorities in PEM. `None`: those that the machine trusts.
    pub authorities: Option<Vec<u8>>,
    /// Group whose documents are shared.
    pub group: String,
}

/// Identifies a document within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentName<'n> {
    pub kind: &'n str,
    pub name: &'n str,
}

/// A change of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentChange<'c> {
    /// Id of the operation. The server applies each id once.
    pub operation: &'c str,
    pub document: DocumentName<'c>,
}

/// New content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewContent {
    /// The document stays as it is.
    Unchanged,
    /// The text replaces the document.
    Text(String),
    /// The document is removed.
    Removed,
}

/// Result of an operation on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeResult {
    /// The transaction is committed.
    Committed,
    /// The server applied an operation with this id before.
    AppliedBefore,
}

/// A document that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedDocument {
    pub kind: String,
    pub name: String,
    /// Version of the group at the change.
    pub version: i64,
    /// Text. `None` if the document was removed, or if it is too large.
    pub text: Option<String>,
    /// Whether the document exceeds the limit of one document, so that it was not read.
    pub is_large: bool,
}

/// Where a group is, and whether its history is the one that a client saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerState {
    /// Version of the schema.
    pub schema: i32,
    /// Version of the group.
    pub version: i64,
    /// Identifies the history of the server: another one after a failover or a restore. Empty: the schema has none.
    pub epoch: String,
    /// Mark of the change that made the version that was asked about. `None`: unknown.
    pub mark: Option<String>,
    /// Time of the server.
    pub now: Timestamp,
}

/// Changes since a version: as many as fit into one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChanges {
    /// Changed documents, in the order of their versions.
    pub documents: Vec<ChangedDocument>,
    /// Version up to which the list is complete.
    pub version: i64,
    /// Mark of the change that made this version. `None`: unknown.
    pub mark: Option<String>,
    /// Whether more changes follow after that version.
    pub has_more: bool,
    /// Version of the schema.
    pub schema: i32,
    /// Time of the server.
    pub now: Timestamp,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Id, unique on all hosts.
    pub id: String,
    /// One JSON value.
    pub text: String,
}

/// What a server says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// Name and version of the server program.
    pub program: String,
    /// Version of the schema. `None` if the schema does not exist.
    pub schema: Option<i32>,
    /// Role of this process.
    pub role: String,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// Number of documents by kind.
    pub documents: Vec<(String, i64)>,
    /// Version of the group. `None` if the group does not exist, or if the account must not use it.
    pub version: Option<i64>,
    /// Whether it accepts no writes: a standby, or a read-only database.
    pub read_only: bool,
    /// Time of the server.
    pub now: Timestamp,
}

/// Why the server did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The URL or a certificate is invalid.
    #[error("the address is invalid: {0}")]
    Address(String),
    /// No connection. Nothing was changed.
    #[error("not reachable: {0}")]
    Unreachable(String),
    /// The server did not answer in time, and nothing was committed.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection was lost, and nothing was committed.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The server ended the transaction without a change: a lock timeout, a conflict, or its shutdown.
    #[error("the server changed nothing: {0}")]
    RolledBack(String),
    /// The server received the commit, and its answer did not come. It is unknown whether the change was committed.
    #[error("no answer to the commit: {0}")]
    CommitUnknown(String),
    /// User name, password, or certificate.
    #[error("sign-in failed: {0}")]
    SignIn(String),
    /// The schema does not exist.
    #[error("the database has no tables of policyd")]
    NoSchema,
    /// A newer policyd changed the schema in a way that this one does not understand.
    #[error("the schema needs policyd with schema version {needed} or later; this one has {own}")]
    SchemaTooNew { needed: i32, own: i32 },
    /// The schema lacks something that this program needs.
    #[error("the schema has version {found}; this policyd needs {own}")]
    SchemaTooOld { found: i32, own: i32 },
    /// The account of this process must not make this change.
    #[error("not permitted: {0}")]
    NotPermitted(String),
    /// The account lacks access to the group or its tables. An administrator can give it.
    #[error("no access: {0}")]
    NoAccess(String),
    /// The server accepts no writes now: a standby, a full disk, or a read-only database.
    #[error("the server accepts no writes: {0}")]
    ReadOnly(String),
    /// The server has no connection or memory left.
    #[error("the server is overloaded: {0}")]
    Overloaded(String),
    /// The server rejects this operation, and would reject it again.
    #[error("rejected: {0}")]
    Rejected(String),
    /// This World has no servers.
    #[error("a dry run does not connect to servers")]
    DryRun,
}

impl ServerError {
    /// Returns whether the server may have committed the change.
    #[must_use]
    pub const fn is_commit_unknown(&self) -> bool {
        matches!(self, Self::CommitUnknown(_))
    }

    /// Returns whether the same operation can succeed later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::TimedOut(_)
            | Self::Lost(_)
            | Self::RolledBack(_)
            | Self::CommitUnknown(_)
            | Self::SignIn(_)
            | Self::NoSchema
            | Self::SchemaTooNew { .. }
            | Self::SchemaTooOld { .. }
            | Self::NoAccess(_)
            | Self::ReadOnly(_)
            | Self::Overloaded(_)
            | Self::Address(_)
            | Self::DryRun => true,
            Self::NotPermitted(_) | Self::Rejected(_) => false,
        }
    }
}

/// Returns the new content of a document from its text and the time of the server.
pub type DocumentStep<'s> = dyn FnMut(Option<&str>, Timestamp) -> NewContent + 's;

/// A connection to a server. All calls together end within the time limit of the connection, which begins with it.
pub trait DocumentServer {
    /// Begins a new time limit for the further calls together.
    fn limit(&mut self, limit: Duration);
    /// Returns where the group is, and the mark of a version.
    ///
    /// # Errors
    /// Any [`ServerError`]; [`ServerError::SchemaTooNew`] if this program must neither read nor write.
    fn state(&mut self, version: i64) -> Result<ServerState, ServerError>;
    /// Changes one document in one transaction. `step` is not called if the operation was applied before.
    ///
    /// # Errors
    /// Any [`ServerError`]. After [`ServerError::CommitUnknown`] alone, the change may be committed.
    fn change(
        &mut self,
        change: DocumentChange<'_>,
        step: &mut DocumentStep<'_>,
    ) -> Result<ChangeResult, ServerError>;
    /// Returns the documents that changed after a version, as many as fit into one answer.
    ///
    /// # Errors
    /// Any [`ServerError`].
    fn changes(&mut self, since: i64) -> Result<ServerChanges, ServerError>;
    /// Returns information about the server.
    ///
    /// # Errors
    /// Any [`ServerError`].
    fn status(&mut self) -> Result<ServerStatus, ServerError>;
    /// Creates the tables and roles, or updates them. Returns the version before and after.
    ///
    /// # Errors
    /// Any [`ServerError`].
    fn migrate(&mut self) -> Result<(i32, i32), ServerError>;
    /// Appends entries to the log of decisions. An entry that the server has is not repeated.
    ///
    /// # Errors
    /// Any [`ServerError`].
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), ServerError>;
    /// Waits for a change of the group. Returns whether one was announced.
    ///
    /// # Errors
    /// Any [`ServerError`].
    fn wait(&mut self, wait_max: Duration) -> Result<bool, ServerError>;
}
