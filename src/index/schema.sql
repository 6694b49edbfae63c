-- Texts that many rows share: rules, events, tools, and sessions.
CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
-- A log with its rotated files. `project` is the main checkout.
CREATE TABLE log (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, project TEXT NOT NULL);
CREATE INDEX log_project ON log (project);
-- A file of a log, recognized by its first line, because a rotation renames it. `taken` is the length of the lines that
-- are rows, in bytes, `tail` the checksum of the last bytes of them, and `activity` what they tell about the project.
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    log INTEGER NOT NULL,
    first_line TEXT NOT NULL,
    taken INTEGER NOT NULL,
    tail TEXT NOT NULL,
    activity TEXT NOT NULL,
    UNIQUE (log, first_line)
);
-- A decision: the line of `file` that begins at byte `start`.
CREATE TABLE decision (
    file INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    at INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    entry TEXT NOT NULL,
    session INTEGER NOT NULL,
    event INTEGER NOT NULL,
    tool INTEGER NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (file, start)
) WITHOUT ROWID;
CREATE INDEX decision_time ON decision (at, mark);
-- What happens beside decisions is rare. `RARE` in `query.rs` repeats the condition.
CREATE INDEX decision_rare ON decision (at) WHERE mark >= 22;
-- The result of a rule in a decision.
CREATE TABLE firing (
    file INTEGER NOT NULL,
    start INTEGER NOT NULL,
    rule INTEGER NOT NULL,
    result INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (file, start, rule)
) WITHOUT ROWID;
CREATE INDEX firing_rule ON firing (rule, at, result);
