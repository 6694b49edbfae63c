//! The statements of a client, for servers with functions and for those of earlier schema versions.

/// First schema version with functions. Accounts of agents and of humans have no access to its tables.
pub(super) const FUNCTIONS_SCHEMA: i32 = 4;
/// First schema version that tells whether the server lost changes.
const EPOCH_SCHEMA: i32 = 5;

/// Returns the statements for a schema.
pub(super) const fn statements(schema: i32) -> &'static Statements {
    match schema {
        ..FUNCTIONS_SCHEMA => &TABLES,
        FUNCTIONS_SCHEMA..EPOCH_SCHEMA => &FUNCTIONS,
        EPOCH_SCHEMA.. => &EPOCHS,
    }
}

/// Statements of one kind of schema. Both kinds have the same parameters and columns.
pub(super) struct Statements {
    /// Locks the group, if `begin` does not. Parameter: group.
    pub(super) lock: Option<&'static str>,
    /// Records an operation and reads a document. Parameters: group, operation, kind, name.
    pub(super) begin: &'static str,
    /// Saves a document, and notifies. Parameters: group, kind, name, body.
    pub(super) save: &'static str,
    /// Reads changed documents, each with the mark of its version. Parameters: group, version, rows, bytes.
    pub(super) changes: &'static str,
    /// Reads the version of the group, the time, the epoch, and the mark of a version. Parameters: group, version.
    pub(super) state: &'static str,
    /// Counts documents by kind. Parameter: group.
    pub(super) count: &'static str,
    /// Appends decisions. Parameters: group, ids, entries.
    pub(super) append: &'static str,
}

/// From schema version 5 on.
const EPOCHS: Statements = Statements {
    changes: "SELECT kind, name, version, body, is_large, mark FROM policyd.read_page($1, $2, $3, $4)",
    state: "SELECT version, now_ms, epoch, mark FROM policyd.read_state($1, $2)",
    ..FUNCTIONS
};

/// Schema version 4.
const FUNCTIONS: Statements = Statements {
    lock: None,
    begin: "SELECT has_group, is_applied, body, now_ms FROM policyd.begin_change($1, $2, $3, $4)",
    save: "SELECT policyd.save_document($1, $2, $3, $4)::text",
    changes: "SELECT kind, name, version, body, is_large, NULL::text FROM policyd.read_changes($1, $2, $3, $4)",
    state: "SELECT version, now_ms, '', NULL::text FROM policyd.read_group($1) WHERE $2::bigint IS NOT NULL",
    count: "SELECT kind, documents FROM policyd.count_documents($1)",
    append: "SELECT policyd.append_decisions($1, $2, $3)::text",
};

/// Up to schema version 3.
const TABLES: Statements = Statements {
    lock: Some("SELECT version FROM policyd.project_group WHERE name = $1 FOR UPDATE"),
    begin: "WITH added AS (INSERT INTO policyd.applied (grp, id) \
        SELECT name, $2 FROM policyd.project_group WHERE name = $1 ON CONFLICT DO NOTHING RETURNING true) \
        SELECT EXISTS (SELECT FROM policyd.project_group WHERE name = $1), NOT EXISTS (SELECT FROM added), \
        (SELECT body::text FROM policyd.document WHERE grp = $1 AND kind = $3 AND name = $4), \
        (extract(epoch FROM clock_timestamp()) * 1000)::int8",
    // Not `ON CONFLICT DO UPDATE`: that calls the triggers for a new document first, and these reject what an agent may do
    // to a known one. The row of the group is locked, so no other client inserts the document in between.
    save: "WITH next AS (UPDATE policyd.project_group SET version = version + 1 WHERE name = $1 RETURNING version), \
        updated AS (UPDATE policyd.document AS it SET version = next.version, body = $4::text::json, \
        updated_at = clock_timestamp() FROM next WHERE it.grp = $1 AND it.kind = $2 AND it.name = $3 RETURNING true), \
        inserted AS (INSERT INTO policyd.document (grp, kind, name, version, body) \
        SELECT $1, $2, $3, next.version, $4::text::json FROM next WHERE NOT EXISTS (SELECT FROM updated)) \
        SELECT pg_notify('policyd', $1)::text",
    // A page has as many documents as fit if each has 64 KiB: the earlier schemas do not limit their size.
    changes: "SELECT kind, name, version, CASE WHEN octet_length(body::text) <= 1048576 THEN body::text END, \
        coalesce(octet_length(body::text) > 1048576, false), NULL::text FROM policyd.document \
        WHERE grp = $1 AND version > $2 ORDER BY version LIMIT least($3, $4 / 65536)",
    state: "SELECT (SELECT version FROM policyd.project_group WHERE name = $1), \
        (extract(epoch FROM clock_timestamp()) * 1000)::int8, '', NULL::text WHERE $2::bigint IS NOT NULL",
    count: "SELECT kind, count(*) FROM policyd.document WHERE grp = $1 AND body IS NOT NULL \
        GROUP BY kind ORDER BY kind",
    append: "INSERT INTO policyd.decision (grp, id, entry) \
        SELECT $1, new.id, new.entry::json FROM unnest($2::text[], $3::text[]) AS new (id, entry) \
        ON CONFLICT DO NOTHING",
};
