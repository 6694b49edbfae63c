//! The server of shared documents on PostgreSQL. Contains: the connection, the transactions, and the schema.
//! Does not contain: what a document means.

use std::future::Future;
use std::time::Duration;

use futures_util::future::join3;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

pub(crate) use self::connection::connect;
use self::errors::{commit_error, server_error};
use self::statements::{FUNCTIONS_SCHEMA, Statements, statements};
use policyd_base::limits::{SHARED_PAGE_BYTES, SHARED_PAGE_ROWS};
use policyd_world::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentServer, DocumentStep, LogEntry,
    NewContent, ServerChanges, ServerError, ServerState, ServerStatus,
};
use policyd_yaml::time::Timestamp;

mod connection;
mod errors;
mod statements;

/// Migrations, oldest first: each with the oldest schema version that a client must know to work with it.
const MIGRATIONS: [(i32, &str); 5] = [
    (1, include_str!("postgres/1.sql")),
    (1, include_str!("postgres/2.sql")),
    (1, include_str!("postgres/3.sql")),
    // Earlier clients read and change tables, which accounts must not do from here on.
    (FUNCTIONS_SCHEMA, include_str!("postgres/4.sql")),
    (FUNCTIONS_SCHEMA, include_str!("postgres/5.sql")),
];
/// Version of the schema that this program knows.
const OWN_SCHEMA: i32 = 5;
/// Oldest schema that this program works with.
const SCHEMA_MIN: i32 = 1;
/// Key of the lock that serializes migrations.
const MIGRATION_LOCK: i64 = 7_020_639_213;
/// Begins a transaction with its limits: a process that dies or stops within it holds its lock for at most that
/// long. They belong to the transaction, because a pooler can give the connection to another client after it.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'; \
    SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL search_path = pg_catalog;";

/// Parameters of a statement, with their types.
type Parameters<'p> = [(&'p (dyn ToSql + Sync), Type)];

/// A connection to PostgreSQL.
struct PostgresServer {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    client: Client,
    announcements: UnboundedReceiver<()>,
    group: String,
    limit: Duration,
    /// End of the time limit.
    end: Instant,
    encrypted: bool,
    listens: bool,
    /// Version of the schema, after it was read. Another process can migrate the schema.
    schema: Option<i32>,
}

/// A change that waits for its new content, with the group locked.
struct BegunChange {
    has_group: bool,
    is_applied: bool,
    known: Option<String>,
    now: Timestamp,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // A name server that does not answer keeps a thread of the runtime waiting.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The group is unknown, as far as this account can see.
fn no_group(group: &str) -> ServerError {
    ServerError::NoAccess(format!(
        "the group `{group}` does not exist, or this account must not use it; \
         `policyd store init` creates it"
    ))
}

impl PostgresServer {
    /// Runs queries in one transaction within the limit.
    fn transact<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, ServerError> {
        let done = self.run(async |client| {
            client.batch_execute(BEGIN).await?;
            let done = work(client).await?;
            client.batch_execute("COMMIT").await?;
            Ok(done)
        });
        if let Err(error) = &done {
            self.roll_back(error);
        }
        done
    }

    /// Runs queries within the limit.
    fn run<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, ServerError> {
        // The timer needs the runtime, so it begins within it.
        let done = self.block_on(async { timeout_at(self.end, work(&self.client)).await })?;
        let done = done.map_err(|_| ServerError::TimedOut(self.limit))?;
        done.map_err(|error| server_error(&error))
    }

    fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, ServerError> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| ServerError::Lost("closed".to_owned()))?;
        Ok(runtime.block_on(work))
    }

    /// Runs a query in a separate transaction, in one round trip.
    fn read(&self, query: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, ServerError> {
        self.run(async |client| {
            let work = client.query_typed(query, parameters);
            let (begin, end) = (client.batch_execute(BEGIN), client.batch_execute("COMMIT"));
            let (begun, rows, ended) = join3(begin, work, end).await;
            begun?;
            let rows = rows?;
            ended.map(|()| rows)
        })
    }

    /// Commits in a separate round trip: only if its answer does not come, it is unknown whether the change was made.
    fn commit(&self) -> Result<(), ServerError> {
        if Instant::now() >= self.end {
            return Err(ServerError::TimedOut(self.limit));
        }
        let commit = async { timeout_at(self.end, self.client.batch_execute("COMMIT")).await };
        match self.block_on(commit)? {
            Ok(done) => done.map_err(|error| commit_error(&error)),
            Err(_) => {
                let waited = self.limit.as_millis();
                Err(ServerError::CommitUnknown(format!("none within {waited} ms")))
            }
        }
    }

    /// Ends the transaction after an error.
    fn roll_back(&self, error: &ServerError) {
        // A server that did not answer in time is not waited for again. It rolls back by itself.
        if !matches!(error, ServerError::TimedOut(_) | ServerError::CommitUnknown(_)) {
            self.end_unchanged();
        }
    }

    /// Ends the transaction without a change.
    fn end_unchanged(&self) {
        drop(self.run(async |client| client.batch_execute("ROLLBACK").await));
    }

    fn change_open(
        &mut self,
        change: DocumentChange<'_>,
        step: &mut DocumentStep<'_>,
    ) -> Result<ChangeResult, ServerError> {
        let statements = self.statements()?;
        let begun = self.begin(change, statements)?;
        if !begun.has_group {
            return Err(no_group(&self.group));
        }
        if begun.is_applied {
            self.end_unchanged();
            return Ok(ChangeResult::AppliedBefore);
        }
        let content = step(begun.known.as_deref(), begun.now);
        let (group, document) = (&self.group, change.document);
        let (kind, name) = (document.kind, document.name);
        let text = match &content {
            NewContent::Unchanged => {
                self.commit()?;
                return Ok(ChangeResult::Committed);
            }
            NewContent::Text(text) => Some(text.as_str()),
            NewContent::Removed => None,
        };
        self.run(async |client| {
            let parameters = [
                (group as _, Type::TEXT),
                (&kind as _, Type::TEXT),
                (&name as _, Type::TEXT),
                (&text as _, Type::TEXT),
            ];
            client.query_typed(statements.save, &parameters).await.map(drop)
        })?;
        self.commit()?;
        Ok(ChangeResult::Committed)
    }

    /// Begins a transaction that locks the group and records the operation.
    fn begin(
        &self,
        change: DocumentChange<'_>,
        statements: &Statements,
    ) -> Result<BegunChange, ServerError> {
        let (group, document) = (&self.group, change.document);
        let (kind, name, operation) = (document.kind, document.name, change.operation);
        let rows = self.run(async |client| {
            client.batch_execute(BEGIN).await?;
            if let Some(lock) = statements.lock {
                client.query_typed(lock, &[(group, Type::TEXT)]).await?;
            }
            let parameters = [
                (group as _, Type::TEXT),
                (&operation as _, Type::TEXT),
                (&kind as _, Type::TEXT),
                (&name as _, Type::TEXT),
            ];
            client.query_typed(statements.begin, &parameters).await
        })?;
        let row = rows.first();
        let flag = |at: usize| row.and_then(|it| it.try_get(at).ok()).unwrap_or(false);
        let known = row.and_then(|it| it.try_get(2).ok());
        Ok(BegunChange { has_group: flag(0), is_applied: flag(1), known, now: time(row, 3) })
    }

    /// Reads where the group is, and the mark of a version.
    fn read_state(&mut self, version: i64) -> Result<ServerState, ServerError> {
        let statements = self.statements()?;
        let parameters = [(&self.group as _, Type::TEXT), (&version as _, Type::INT8)];
        let rows = self.read(statements.state, &parameters)?;
        let row = rows.first();
        let found = row.and_then(|it| it.try_get::<_, i64>(0).ok());
        Ok(ServerState {
            schema: self.schema.unwrap_or_default(),
            version: found.ok_or_else(|| no_group(&self.group))?,
            epoch: row.and_then(|it| it.try_get(2).ok()).unwrap_or_default(),
            mark: row.and_then(|it| it.try_get(3).ok()).flatten(),
            now: time(row, 1),
        })
    }

    fn read_changes(&mut self, since: i64) -> Result<ServerChanges, ServerError> {
        // The version is read first: the documents are never older than it.
        let state = self.read_state(since)?;
        let statements = self.statements()?;
        let parameters = [
            (&self.group as _, Type::TEXT),
            (&since as _, Type::INT8),
            (&SHARED_PAGE_ROWS as _, Type::INT4),
            (&SHARED_PAGE_BYTES as _, Type::INT4),
        ];
        let rows = self.read(statements.changes, &parameters)?;
        let document = |row: &Row| -> Result<ChangedDocument, Error> {
            Ok(ChangedDocument {
                kind: row.try_get(0)?,
                name: row.try_get(1)?,
                version: row.try_get(2)?,
                text: row.try_get(3)?,
                is_large: row.try_get(4)?,
            })
        };
        let documents: Result<Vec<_>, Error> = rows.iter().map(document).collect();
        let documents = documents.map_err(|error| server_error(&error))?;
        let last = rows.last().and_then(|it| it.try_get(5).ok()).flatten();
        let (version, mark) = match documents.last() {
            Some(it) => (it.version, last),
            None => (state.version, state.mark.filter(|_| state.version == since)),
        };
        let has_more = version < state.version;
        let (schema, now) = (state.schema, state.now);
        Ok(ServerChanges { documents, version, mark, has_more, schema, now })
    }

    /// Returns the statements for the schema of the server.
    fn statements(&mut self) -> Result<&'static Statements, ServerError> {
        let schema = match self.schema {
            Some(known) => known,
            None => self.check_schema()?,
        };
        Ok(statements(schema))
    }

    /// Checks that this program and the schema understand each other. Returns the version of the schema.
    fn check_schema(&mut self) -> Result<i32, ServerError> {
        self.schema = None;
        let (found, needed) = self.read_schema()?.ok_or(ServerError::NoSchema)?;
        if needed > OWN_SCHEMA {
            return Err(ServerError::SchemaTooNew { needed, own: OWN_SCHEMA });
        }
        if found < SCHEMA_MIN {
            return Err(ServerError::SchemaTooOld { found, own: SCHEMA_MIN });
        }
        self.schema = Some(found);
        Ok(found)
    }

    /// Returns the version of the schema, and the oldest version that a client must know.
    fn read_schema(&self) -> Result<Option<(i32, i32)>, ServerError> {
        let query = "SELECT max(version), max(client_min) FROM policyd.migration";
        match self.read(query, &[]) {
            Ok(rows) => {
                let number = |at: usize| rows.first()?.try_get::<_, i32>(at).ok();
                Ok(number(0).zip(number(1)))
            }
            Err(ServerError::NoSchema) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads a time in milliseconds.
fn time(row: Option<&Row>, at: usize) -> Timestamp {
    Timestamp::from_millis(row.and_then(|it| it.try_get(at).ok()).unwrap_or_default())
}

impl DocumentServer for PostgresServer {
    fn limit(&mut self, limit: Duration) {
        self.limit = limit;
        self.end = connection::end_of(limit);
    }

    fn state(&mut self, version: i64) -> Result<ServerState, ServerError> {
        let state = self.read_state(version);
        if state.is_err() {
            self.schema = None;
        }
        state
    }

    fn change(
        &mut self,
        change: DocumentChange<'_>,
        step: &mut DocumentStep<'_>,
    ) -> Result<ChangeResult, ServerError> {
        let changed = self.change_open(change, step);
        if let Err(error) = &changed {
            self.roll_back(error);
            // The schema can be another one since it was read.
            self.schema = None;
        }
        changed
    }

    fn changes(&mut self, since: i64) -> Result<ServerChanges, ServerError> {
        let changes = self.read_changes(since);
        if changes.is_err() {
            self.schema = None;
        }
        changes
    }

    fn status(&mut self) -> Result<ServerStatus, ServerError> {
        let schema = match self.check_schema() {
            Ok(version) => Some(version),
            Err(ServerError::NoSchema) => None,
            Err(error) => return Err(error),
        };
        let query = "SELECT current_setting('server_version'), session_user::text, \
            (extract(epoch FROM clock_timestamp()) * 1000)::int8, \
            current_setting('transaction_read_only') = 'on'";
        let rows = self.read(query, &[])?;
        let row = rows.first();
        let text =
            |at: usize| row.and_then(|it| it.try_get::<_, String>(at).ok()).unwrap_or_default();
        let mut status = ServerStatus {
            program: format!("PostgreSQL {}", text(0)),
            schema,
            role: text(1),
            encrypted: self.encrypted,
            now: time(row, 2),
            read_only: row.and_then(|it| it.try_get(3).ok()).unwrap_or_default(),
            ..ServerStatus::default()
        };
        if schema.is_some() {
            let statements = self.statements()?;
            let counts = self.read(statements.count, &[(&self.group as _, Type::TEXT)])?;
            let count = |row: &Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
            status.documents = counts.iter().filter_map(count).collect();
            status.version = match self.read_state(0) {
                Ok(state) => Some(state.version),
                Err(ServerError::NoAccess(_)) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(status)
    }

    fn migrate(&mut self) -> Result<(i32, i32), ServerError> {
        let before = match self.check_schema() {
            Ok(version) => version,
            Err(ServerError::NoSchema) => 0,
            Err(ServerError::SchemaTooOld { found, .. }) => found,
            Err(error) => return Err(error),
        };
        let group = &self.group;
        let version = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
        self.transact(async |client| {
            // Another client can migrate at the same time. The lock ends with the transaction.
            let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
            client.batch_execute(&lock).await?;
            let exists = "SELECT to_regclass('policyd.migration') IS NOT NULL";
            let exists = client.query_typed(exists, &[]).await?;
            let exists = exists.first().is_some_and(|it| it.try_get(0).unwrap_or_default());
            let known = "SELECT max(version) FROM policyd.migration";
            let rows = if exists { client.query_typed(known, &[]).await? } else { Vec::new() };
            let known: i32 = rows.first().and_then(|it| it.try_get(0).ok()).unwrap_or_default();
            for (version, (client_min, text)) in (1_i32..).zip(MIGRATIONS) {
                if version > known {
                    client.batch_execute(text).await?;
                    let record = format!(
                        "INSERT INTO policyd.migration (version, client_min) VALUES ({version}, {client_min})"
                    );
                    client.batch_execute(&record).await?;
                }
            }
            let query =
                "INSERT INTO policyd.project_group (name) VALUES ($1) ON CONFLICT DO NOTHING";
            client.query_typed(query, &[(group, Type::TEXT)]).await.map(drop)
        })?;
        Ok((before, before.max(version)))
    }

    fn append(&mut self, entries: &[LogEntry]) -> Result<(), ServerError> {
        let ids: Vec<&str> = entries.iter().map(|it| it.id.as_str()).collect();
        let texts: Vec<&str> = entries.iter().map(|it| it.text.as_str()).collect();
        let statements = self.statements()?;
        let group = &self.group;
        self.transact(async |client| {
            let parameters = [
                (group as _, Type::TEXT),
                (&ids as _, Type::TEXT_ARRAY),
                (&texts as _, Type::TEXT_ARRAY),
            ];
            client.query_typed(statements.append, &parameters).await.map(drop)
        })
    }

    fn wait(&mut self, wait_max: Duration) -> Result<bool, ServerError> {
        if !self.listens {
            self.limit(wait_max);
            self.run(async |client| client.batch_execute("LISTEN policyd").await)?;
            self.listens = true;
        }
        if self.client.is_closed() {
            return Err(ServerError::Lost("the server closed the connection".to_owned()));
        }
        let runtime = self.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| ServerError::Lost("closed".to_owned()))?;
        let announcements = &mut self.announcements;
        match runtime.block_on(async { timeout(wait_max, announcements.recv()).await }) {
            Ok(Some(())) => Ok(true),
            Ok(None) => Err(ServerError::Lost("the server closed the connection".to_owned())),
            Err(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_yaml::checksum::fingerprint;

    /// A database keeps what an earlier migration made: a change of the schema is a further migration.
    #[test]
    fn published_migrations_do_not_change() {
        let known = [
            0x2a0d_6173_683c_bcbd,
            0x76bf_9a32_a2aa_24df,
            0x5ff2_0cfe_6ba2_9a71,
            0xf412_0cbc_9a7c_722c,
            0x37a6_dc23_ea38_d584,
        ];
        assert_eq!(MIGRATIONS.map(|(_, text)| fingerprint(&[text])), known);
        assert_eq!(usize::try_from(OWN_SCHEMA), Ok(MIGRATIONS.len()));
        assert!(MIGRATIONS.is_sorted_by_key(|(client_min, _)| *client_min));
    }
}
