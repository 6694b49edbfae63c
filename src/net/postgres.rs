//! The server of shared documents on PostgreSQL. Contains: the connection, the transactions, and the schema.
//! Does not contain: what a document means.

use std::future::Future;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::statements::{FUNCTIONS, FUNCTIONS_SCHEMA, Statements, TABLES};
use policyd_base::limits::{SHARED_PAGE_BYTES, SHARED_PAGE_ROWS};
use policyd_world::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentServer, DocumentStep, LogEntry,
    NewContent, ServerAddress, ServerChanges, ServerError, ServerStatus,
};
use policyd_yaml::time::Timestamp;

mod statements;

/// Migrations, oldest first: each with the oldest schema version that a client must know to work with it.
const MIGRATIONS: [(i32, &str); 4] = [
    (1, include_str!("postgres/1.sql")),
    (1, include_str!("postgres/2.sql")),
    (1, include_str!("postgres/3.sql")),
    // Earlier clients read and change tables, which accounts must not do from here on.
    (FUNCTIONS_SCHEMA, include_str!("postgres/4.sql")),
];
/// Version of the schema that this program knows.
const OWN_SCHEMA: i32 = 4;
/// Oldest schema that this program works with.
const SCHEMA_MIN: i32 = 1;
/// Function of PostgreSQL that reports an error which SQL code raised.
const RAISED: &str = "exec_stmt_raise";
/// Key of the lock that serializes migrations.
const MIGRATION_LOCK: i64 = 7_020_639_213;
/// Begins a transaction with its limits: a process that dies or stops within it holds its lock for at most that
/// long. They belong to the transaction, because a pooler can give the connection to another client after it.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'; \
    SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL search_path = pg_catalog;";
/// A connection to PostgreSQL.
pub(super) struct PostgresServer {
    runtime: Runtime,
    client: Client,
    announcements: UnboundedReceiver<()>,
    group: String,
    limit: Duration,
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

/// Connects within a time limit.
pub(crate) fn connect(
    address: &ServerAddress,
    limit: Duration,
) -> Result<Box<dyn DocumentServer>, ServerError> {
    let config = config(address)?;
    let encrypted = config.get_ssl_mode() != SslMode::Disable;
    let tls = MakeRustlsConnect::new(tls(address, encrypted)?);
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| ServerError::Unreachable(error.to_string()))?;
    let announced = address.group.clone();
    let connecting = async {
        let (client, mut connection) = config.connect(tls).await?;
        let (announce, announcements) = unbounded_channel();
        // The task ends with the runtime, or if the connection is lost: the client reports that.
        tokio::spawn(async move {
            while let Some(Ok(message)) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(it) = message
                    && it.payload() == announced
                {
                    // Without a receiver, the process does not wait for changes.
                    let _no_receiver = announce.send(());
                }
            }
        });
        Ok((client, announcements))
    };
    let connected = runtime.block_on(within(limit, connecting));
    let (client, announcements) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            // A name server that does not answer keeps a thread of the runtime waiting.
            runtime.shutdown_background();
            return Err(not_connected(error));
        }
    };
    let group = address.group.clone();
    let (listens, schema) = (false, None);
    Ok(Box::new(PostgresServer {
        runtime,
        client,
        announcements,
        group,
        limit,
        encrypted,
        listens,
        schema,
    }))
}

/// Parses the URL. A connection to another machine is encrypted unless the URL says `sslmode=disable`; one to
/// this machine is only encrypted if the URL says so. Certificates are always verified.
fn config(address: &ServerAddress) -> Result<Config, ServerError> {
    let mut config: Config =
        address.url.parse().map_err(|error: Error| ServerError::Address(cause(&error)))?;
    if let Some(password) = &address.password {
        config.password(password);
    }
    config.application_name("policyd");
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    if !address.url.contains("sslmode=") {
        let local = config.get_hosts().iter().all(is_local);
        config.ssl_mode(if local { SslMode::Disable } else { SslMode::Require });
    } else if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(SslMode::Require);
    }
    Ok(config)
}

/// Builds the settings of TLS. Without encryption, no certificates are read.
fn tls(address: &ServerAddress, encrypted: bool) -> Result<rustls::ClientConfig, ServerError> {
    let mut roots = rustls::RootCertStore::empty();
    match &address.authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added =
                    certificate.map_err(|error| ServerError::Address(error.to_string())).and_then(
                        |it| roots.add(it).map_err(|it| ServerError::Address(it.to_string())),
                    );
                added?;
            }
        }
        None if encrypted => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
        None => {}
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ServerError::Address(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Awaits the answer of the server within a time limit.
async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, ServerError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(server_error(&error)),
        Err(_) => Err(ServerError::TimedOut(limit)),
    }
}

/// Without a connection, nothing was changed.
fn not_connected(error: ServerError) -> ServerError {
    if let ServerError::TimedOut(limit) = error {
        return ServerError::Unreachable(format!("no connection within {} ms", limit.as_millis()));
    }
    if let ServerError::Lost(why) = error { ServerError::Unreachable(why) } else { error }
}

/// The message of an error with its causes.
fn cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// The group is unknown, as far as this account can see.
fn no_group(group: &str) -> ServerError {
    ServerError::NoAccess(format!(
        "the group `{group}` does not exist, or this account must not use it; \
         `policyd store init` creates it"
    ))
}

fn server_error(error: &Error) -> ServerError {
    error.as_db_error().map_or_else(|| ServerError::Lost(cause(error)), database_error)
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
    } else if read_only.contains(code) || class == "53" {
        ServerError::ReadOnly(text)
    } else if class == "28" || class == "3D" {
        ServerError::SignIn(text)
    } else if matches!(class, "08" | "57" | "40" | "55" | "58" | "25") {
        // Shutdown, lock timeouts, serialization failures, and ended transactions.
        ServerError::Lost(text)
    } else {
        ServerError::Rejected(text)
    }
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
        self.runtime.block_on(within(self.limit, work(&self.client)))
    }

    /// Ends the transaction after an error.
    fn roll_back(&self, error: &ServerError) {
        // A server that did not answer in time is not waited for again. It rolls back by itself.
        if !matches!(error, ServerError::TimedOut(_)) {
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
        self.run(async |client| {
            let text = match &content {
                NewContent::Unchanged => return client.batch_execute("COMMIT").await,
                NewContent::Text(text) => Some(text.as_str()),
                NewContent::Removed => None,
            };
            let parameters = [
                (group as _, Type::TEXT),
                (&kind as _, Type::TEXT),
                (&name as _, Type::TEXT),
                (&text as _, Type::TEXT),
            ];
            client.query_typed(statements.save, &parameters).await?;
            client.batch_execute("COMMIT").await
        })?;
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

    fn read_changes(&mut self, since: i64) -> Result<ServerChanges, ServerError> {
        let statements = self.statements()?;
        let schema = self.schema.unwrap_or_default();
        let group = &self.group;
        let (rows, state) = self.transact(async |client| {
            // The version is read first: a document that changes in between is listed again next time.
            let state = client.query_typed(statements.group, &[(group, Type::TEXT)]).await?;
            let parameters = [
                (group as _, Type::TEXT),
                (&since as _, Type::INT8),
                (&SHARED_PAGE_ROWS as _, Type::INT4),
                (&SHARED_PAGE_BYTES as _, Type::INT4),
            ];
            Ok((client.query_typed(statements.changes, &parameters).await?, state))
        })?;
        let state = state.first();
        let version = state.and_then(|it| it.try_get::<_, i64>(0).ok());
        let version = version.ok_or_else(|| no_group(group))?;
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
        let last = documents.last().map_or(version, |it| it.version);
        let has_more = last < version;
        let version = version.min(last);
        Ok(ServerChanges { documents, version, has_more, schema, now: time(state, 1) })
    }

    /// Returns the statements for the schema of the server.
    fn statements(&mut self) -> Result<&'static Statements, ServerError> {
        let schema = match self.schema {
            Some(known) => known,
            None => self.check_schema()?,
        };
        Ok(if schema >= FUNCTIONS_SCHEMA { &FUNCTIONS } else { &TABLES })
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
        match self.transact(async |client| client.query_typed(query, &[]).await) {
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
            (extract(epoch FROM clock_timestamp()) * 1000)::int8";
        let rows = self.transact(async |client| client.query_typed(query, &[]).await)?;
        let row = rows.first();
        let text =
            |at: usize| row.and_then(|it| it.try_get::<_, String>(at).ok()).unwrap_or_default();
        let mut status = ServerStatus {
            program: format!("PostgreSQL {}", text(0)),
            schema,
            role: text(1),
            encrypted: self.encrypted,
            now: time(row, 2),
            ..ServerStatus::default()
        };
        if schema.is_some() {
            let statements = self.statements()?;
            let group = &self.group;
            let (counts, rows) = self.transact(async |client| {
                let group = [(group as _, Type::TEXT)];
                let counts = client.query_typed(statements.count, &group).await?;
                Ok((counts, client.query_typed(statements.group, &group).await?))
            })?;
            let count = |row: &Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
            status.documents = counts.iter().filter_map(count).collect();
            status.version = rows.first().and_then(|it| it.try_get(0).ok());
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
            self.run(async |client| client.batch_execute("LISTEN policyd").await)?;
            self.listens = true;
        }
        if self.client.is_closed() {
            return Err(ServerError::Lost("the server closed the connection".to_owned()));
        }
        let announcements = &mut self.announcements;
        let waited = self
            .runtime
            .block_on(async { tokio::time::timeout(wait_max, announcements.recv()).await });
        match waited {
            Ok(Some(())) => Ok(true),
            Ok(None) => Err(ServerError::Lost("the server closed the connection".to_owned())),
            Err(_) => Ok(false),
        }
    }
}
