//! What the statements of a database client do, and which database it is connected to.
//!
//! Contains: the kinds of statements in arguments and on the standard input of a client (`database_clients` of the vocabulary),
//! and what its options and operands say about the database.
//! Does not contain: statements in code of other languages (`code`), whether a text for a tool is SQL (`shape`).

use super::hosts::is_this_machine;
use super::invocation::Invocation;
use super::paths::CallEnvironment;
use super::requests::ServiceKnowledge;
use crate::tool_vocabulary::DatabaseClient;

/// Words in the names of databases that tests use.
const TEST_NAMES: [&str; 3] = ["test", "tests", "testing"];
/// Endings of files that are databases.
const FILE_ENDINGS: [&str; 4] = ["db", "sqlite", "sqlite3", "duckdb"];
/// Words in the names of databases that one developer uses.
const OWN_NAMES: [&str; 7] = ["dev", "devel", "development", "local", "sandbox", "scratch", "demo"];
/// Words in the names of databases that others use.
const SHARED_NAMES: [&str; 4] = ["prod", "production", "live", "staging"];
/// Programs that start a client on another machine.
const ELSEWHERE: [&str; 3] = ["ssh", "kubectl", "oc"];
/// Programs that start a client in a container of this machine.
const CONTAINERS: [&str; 4] = ["docker", "docker-compose", "podman", "nerdctl"];
/// Beginnings of paths of temporary files, and names of databases in memory.
const TEMPORARY: [&str; 6] =
    [":memory:", "file::memory:", "/tmp/", "/private/tmp/", "/var/tmp/", "/dev/shm/"];

/// What a statement does. The order is that of the effects of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StatementEffect {
    /// An object is dropped: a table, a column, a user.
    Drops,
    /// All rows of a table, or all keys, are deleted.
    Empties,
    /// All rows of a table are changed.
    ChangesAll,
    /// Someone gets more rights.
    Grants,
}

/// The database that a client is connected to, as far as its line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseTarget {
    /// A database of tests, in memory, or in a temporary file.
    Test,
    /// A database of this machine or of one developer.
    Own,
    /// Any other one.
    Unknown,
}

impl DatabaseTarget {
    /// Returns the name in facts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Own => "own",
            Self::Unknown => "unknown",
        }
    }
}

impl StatementEffect {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Drops => "drops",
            Self::Empties => "empties",
            Self::ChangesAll => "changes_all",
            Self::Grants => "grants",
        }
    }
}

impl Invocation {
    /// Returns what the statements of a database client do, each effect once: `drops`. Empty for another program.
    #[must_use]
    pub fn statement_effects(&self, known: ServiceKnowledge<'_>) -> Vec<&'static str> {
        let Some(client) = self.database_client(known) else { return Vec::new() };
        let objects = &known.words.sql_objects;
        let texts = self.texts().map(|it| effects_of_text(it, client.rolls_back, objects));
        let mut found: Vec<StatementEffect> = texts.flatten().collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(StatementEffect::as_str).collect()
    }

    /// Returns which database a client is connected to.
    #[must_use]
    pub fn database_target(
        &self,
        known: ServiceKnowledge<'_>,
        around: &CallEnvironment,
    ) -> DatabaseTarget {
        let Some(client) = self.database_client(known) else { return DatabaseTarget::Unknown };
        let connection = Connection::of(self, client, known);
        match (connection.is_test(), connection.is_own(around)) {
            (true, _) => DatabaseTarget::Test,
            (false, true) => DatabaseTarget::Own,
            (false, false) => DatabaseTarget::Unknown,
        }
    }

    fn database_client<'a>(&self, known: ServiceKnowledge<'a>) -> Option<&'a DatabaseClient> {
        let mut rows = known.databases.named(&self.name);
        rows.find(|row| row.programs.iter().any(|it| self.is(it, known.values)))
    }

    /// Returns the texts that can contain statements.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.args.iter().map(|it| it.text.as_str()).chain(self.input.text.as_deref())
    }
}

/// What the line of a client says about its database.
struct Connection<'a> {
    program: &'a Invocation,
    client: &'a DatabaseClient,
    /// Hosts in options.
    hosts: Vec<String>,
    /// Names of databases in options, and the first operand.
    names: Vec<String>,
    /// Whether all addresses are those of this machine.
    is_addressed_here: bool,
    /// Whether an option or an address names a host.
    has_host: bool,
    is_remote: bool,
}

impl<'a> Connection<'a> {
    fn of(
        program: &'a Invocation,
        client: &'a DatabaseClient,
        known: ServiceKnowledge<'_>,
    ) -> Self {
        let values = |options: &[String]| -> Vec<String> {
            let found = options.iter().flat_map(|it| program.values(it));
            found.map(|it| it.text).collect()
        };
        let hosts = values(&client.host_options);
        let mut names = values(&client.database_options);
        let named = client.programs.iter().find(|it| program.is(it, known.values));
        let skipped = named.map_or(0, |it| it.operands(&program.name, known.values));
        let operands = program.operands(known.values);
        // A statement is not a name.
        let operand = operands.get(skipped).filter(|it| !it.text.contains(char::is_whitespace));
        names.extend(operand.map(|it| it.text.clone()));
        let has_address = program.args.iter().any(|it| it.text.contains("://"));
        Self {
            program,
            client,
            has_host: has_address || !hosts.is_empty(),
            is_addressed_here: has_address && program.is_on_this_machine(known.values),
            is_remote: client.remote_options.iter().any(|it| program.has(it, known.values)),
            hosts,
            names,
        }
    }

    /// Returns whether the database is one of tests, in memory, or in a temporary file.
    fn is_test(&self) -> bool {
        if !self.client.remote_options.is_empty() && !self.is_remote {
            return true;
        }
        let texts: Vec<Vec<String>> = self.program.texts().map(words_of).collect();
        let mut words = texts.iter().flatten().map(String::as_str);
        if self.client.file {
            let file = self.names.first().filter(|it| !it.contains(".."));
            return file.is_some_and(|it| is_test_file(it)) && !words.any(|it| it == "attach");
        }
        // A statement can name another database than the connection does.
        let leaves = |text: &Vec<String>| {
            text.iter().any(|it| it == "use" || it == "connect")
                || ["database", "user", "role"].iter().any(|it| has_pair(text, "drop", it))
        };
        let leaves = texts.iter().any(leaves) || self.program.texts().any(|it| it.contains("\\c"));
        let is_named = self.names.iter().any(|it| has_name(database_of(it), &TEST_NAMES));
        (is_named && !leaves) || drops_test_database(&texts)
    }

    /// Returns whether the database is on this machine or belongs to one developer.
    fn is_own(&self, around: &CallEnvironment) -> bool {
        let is_shared = |it: &str| {
            let mut parts = it.split(|c: char| !c.is_ascii_alphabetic());
            parts.any(|it| is_listed(it, &SHARED_NAMES))
        };
        let wrapped =
            |by: &[&str]| self.program.wrappers.iter().any(|it| by.contains(&it.as_str()));
        if self.program.args.iter().any(|it| is_shared(&it.text)) || wrapped(&ELSEWHERE) {
            return false;
        }
        if self.client.file {
            let project = format!("{}/", around.project);
            let is_inside = |it: &String| {
                !it.contains("..") && (!it.starts_with(['/', '~']) || it.starts_with(&project))
            };
            return self.names.first().is_none_or(is_inside);
        }
        let is_here = |it: &String| it.starts_with('/') || is_this_machine(it);
        wrapped(&CONTAINERS)
            || (self.client.local && !self.has_host)
            || self.is_addressed_here
            || (!self.hosts.is_empty() && self.hosts.iter().all(is_here))
            || (!self.has_host && self.names.iter().any(|it| ends_with_name(it, &OWN_NAMES)))
    }
}

/// Returns whether a file is a database of tests, in memory, or temporary.
fn is_test_file(path: &str) -> bool {
    let stem = path.rsplit_once('.').filter(|it| FILE_ENDINGS.contains(&it.1));
    TEMPORARY.iter().any(|start| path.starts_with(start))
        || stem.is_some_and(|it| ends_with_name(it.0, &["test"]))
}

/// Returns whether the only text that drops something only drops a database of tests.
fn drops_test_database(texts: &[Vec<String>]) -> bool {
    let mut drops = texts.iter().filter(|it| it.iter().any(|word| word == "drop"));
    let (Some(words), None) = (drops.next(), drops.next()) else { return false };
    let mut rest = words.iter().map(String::as_str).peekable();
    let starts = [rest.next(), rest.next()] == [Some("drop"), Some("database")];
    while rest.next_if(|it| matches!(*it, "if" | "exists")).is_some() {}
    let is_test = rest.next().is_some_and(|it| {
        let mut parts = it.split('_').filter(|it| !it.bytes().all(|c| c.is_ascii_digit()));
        parts.next() == Some("test") || parts.next_back() == Some("test")
    });
    starts && is_test && rest.all(|it| matches!(it, "with" | "(" | "force" | ")" | ";"))
}

/// Returns the name of the database in an address. Any other name is returned as it is.
fn database_of(name: &str) -> &str {
    let Some((_, rest)) = name.split_once("://") else { return name };
    let path = rest.split('?').next().unwrap_or_default();
    path.split_once('/').map_or("", |it| it.1)
}

/// Returns the words of a name without numbers at their ends: `test_2`, `dev1`.
fn name_words(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    let parts = name.split(['_', '.', '/', '-']);
    let words = parts.map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit()));
    words.filter(|it| !it.is_empty())
}

fn has_name(name: &str, listed: &[&str]) -> bool {
    name_words(name).any(|it| is_listed(it, listed))
}

fn ends_with_name(name: &str, listed: &[&str]) -> bool {
    name_words(name).next_back().is_some_and(|it| is_listed(it, listed))
}

fn is_listed(word: &str, listed: &[&str]) -> bool {
    listed.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// Splits a text into words in lower case, and signs. Quotes are left out.
fn words_of(text: &str) -> Vec<String> {
    let (mut found, mut word) = (Vec::new(), String::new());
    for c in text.chars() {
        if c.is_alphanumeric() || "_.$:@".contains(c) {
            word.extend(c.to_lowercase());
            continue;
        }
        found.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty()));
        if "=;(){}".contains(c) {
            found.push(c.to_string());
        }
    }
    found.extend(Some(word).filter(|it| !it.is_empty()));
    found
}

/// Returns a text without the comments of SQL.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let is_comment = |behind: &str| behind.is_empty() || behind.starts_with(' ');
        let mut marks = line.match_indices("--").map(|it| it.0);
        let start = marks.find(|it| line.get(it + 2..).is_some_and(is_comment));
        start.and_then(|it| line.get(..it)).unwrap_or(line)
    });
    lines.collect::<Vec<&str>>().join("\n")
}

fn has_pair(words: &[String], first: &str, second: &str) -> bool {
    words.windows(2).any(|it| it == [first, second])
}

/// Returns the effects of the statements in a text, which can contain an effect twice. If `rolls_back`, a transaction that is
/// rolled back has none.
///
/// What looks like a comment can be a value, or code of another language. So the text is read with its comments, and also
/// without them, because a condition in a comment does not count.
fn effects_of_text(text: &str, rolls_back: bool, objects: &[String]) -> Vec<StatementEffect> {
    let bare = text.contains("--").then(|| words_of(&without_comments(text)));
    let readings = std::iter::once(words_of(text)).chain(bare);
    let effects = readings.flat_map(|words| {
        let mut statements: Vec<&[String]> = words.split(|it| it == ";").collect();
        if rolls_back {
            remove_undone(&mut statements);
        }
        statements.into_iter().flat_map(|it| effects_of_statement(it, objects)).collect::<Vec<_>>()
    });
    effects.collect()
}

/// Removes the first transaction, if it is rolled back.
fn remove_undone(statements: &mut Vec<&[String]>) {
    fn first<'a>(statement: &&'a [String]) -> &'a str {
        statement.first().map_or("", String::as_str)
    }
    let begins = |it: &&[String]| first(it) == "begin" || has_pair(it, "start", "transaction");
    // `rollback to s` ends no transaction.
    let undoes = |it: &&[String]| matches!(first(it), "rollback" | "abort") && it.len() < 3;
    let ends = |it: &&[String]| undoes(it) || matches!(first(it), "commit" | "end");
    let Some(start) = statements.iter().position(begins) else { return };
    let end = statements.iter().skip(start).position(ends).map(|it| it + start);
    if let Some(end) = end.filter(|it| statements.get(*it).is_some_and(undoes)) {
        statements.drain(start..=end);
    }
}

fn effects_of_statement(words: &[String], objects: &[String]) -> Vec<StatementEffect> {
    let found = [
        (drops(words, objects), StatementEffect::Drops),
        (empties(words), StatementEffect::Empties),
        (changes_all(words), StatementEffect::ChangesAll),
        (grants(words), StatementEffect::Grants),
    ];
    found.into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

fn drops(words: &[String], objects: &[String]) -> bool {
    let is_dropped =
        |it: &[String]| matches!(it, [verb, what] if verb == "drop" && objects.contains(what));
    words.windows(2).any(is_dropped)
        || (has_pair(words, "alter", "table") && words.iter().any(|it| it == "drop"))
        || words.iter().any(|it| it.ends_with(".drop") || it.ends_with("dropdatabase"))
}

fn empties(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|it| it == word);
    let is_truncated =
        |it: &[String]| matches!(it, [verb, what] if verb == "truncate" && what != "(");
    let is_all = |it: &[String]| {
        it.first().is_some_and(|it| it.ends_with(".deletemany"))
            && it.get(1..).is_some_and(|it| it == ["(", "{", "}"])
    };
    let deletes = |pair: [&str; 2]| {
        let mut starts = words.windows(2).enumerate().filter(|(_, it)| *it == pair);
        starts.any(|(at, _)| is_unbounded(words.get(at..).unwrap_or_default()))
    };
    words.windows(2).any(is_truncated)
        || words.windows(4).any(is_all)
        || has("flushall")
        || has("flushdb")
        || deletes(["delete", "from"])
        // The condition of a graph is before what it deletes.
        || (deletes(["detach", "delete"]) && is_unbounded(words) && !has("{"))
}

fn changes_all(words: &[String]) -> bool {
    // Behind the `update` of an upsert is `set`.
    let is_update = |it: &&[String]| {
        it.first().is_some_and(|it| it == "update")
            && it.iter().skip(2).take(3).any(|it| it == "set")
    };
    let mut tails = (0..words.len()).filter_map(|at| words.get(at..));
    tails.any(|it| is_update(&it) && is_unbounded(it))
}

fn grants(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|it| it == word);
    let is_account = || {
        let verbs = ["alter", "create"].iter();
        verbs
            .flat_map(|verb| [(verb, "role"), (verb, "user")])
            .any(|it| has_pair(words, it.0, it.1))
    };
    (words.first().is_some_and(|it| it == "grant") && has("to"))
        || (["superuser", "createrole", "bypassrls"].iter().any(|it| has(it)) && is_account())
}

/// Returns whether words have no condition, or one that is always true.
fn is_unbounded(words: &[String]) -> bool {
    let condition = words.iter().position(|it| it == "where").and_then(|it| words.get(it + 1..));
    condition.is_none_or(|it| match it {
        [one, sign, two, ..] if sign == "=" => one == two,
        [one, ..] => one == "true",
        [] => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(text: &str) -> String {
        let objects = ["table", "database", "column", "user"].map(str::to_owned);
        let mut found = effects_of_text(text, true, &objects);
        found.dedup();
        found.into_iter().map(StatementEffect::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn statements_have_effects() {
        for (text, wanted) in [
            ("select * from a where drop_it", ""),
            ("DROP TABLE IF EXISTS a", "drops"),
            ("alter table a add b int; alter table a\n drop column b", "drops"),
            ("delete from a", "empties"),
            ("delete from a where id = 3", ""),
            ("delete from a where 1=1", "empties"),
            ("with b as (delete from a returning *) select 1 where true", "empties"),
            ("truncate a", "empties"),
            ("select truncate(a, 1) from b", ""),
            ("db.a.deleteMany({})", "empties"),
            ("db.a.deleteMany({a: 1})", ""),
            ("db.a.drop()", "drops"),
            ("FLUSHALL", "empties"),
            ("match (n) detach delete n", "empties"),
            ("match (n {id: 1}) detach delete n", ""),
            ("update a set b = 1", "changes_all"),
            ("update a set b = 1 where c = 2", ""),
            ("insert into a values (1) on conflict do update set b = 1", ""),
            ("grant all privileges on all tables in schema public to b", "grants"),
            ("alter role b with superuser", "grants"),
            ("begin; drop table a; rollback;", ""),
            ("begin; drop table a; commit; rollback", "drops"),
            ("begin; savepoint s; drop table a; rollback to s; commit", "drops"),
            ("-- drop the old rows\nselect 1", ""),
            ("delete from a -- where it is old", "empties"),
            ("delete from a -- all of them\n where b = 1", ""),
            ("select '-- '; drop table a", "drops"),
            ("while (n-- > 0) db.a.drop()", "drops"),
            ("--eval=db.dropDatabase()", "drops"),
            ("update a set b = '--' where c = 1", ""),
            ("db.a.deleteMany({}, {w: 1})", "empties"),
            ("begin; update a set b = 1; commit", "changes_all"),
            ("with c as (select 1) update a set b = 1", "changes_all"),
        ] {
            assert_eq!(effects(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_name_is_compared_by_words() {
        for name in ["shop_test_2", "test", "test-db", "postgres://u:p@host/shop_test?x=1"] {
            assert!(has_name(database_of(name), &TEST_NAMES), "{name}");
        }
        for name in [
            "latest",
            "contest",
            "postgres://test@host/shop",
            "postgres://test-db.a/shop",
            "user=test",
        ] {
            assert!(!has_name(database_of(name), &TEST_NAMES), "{name}");
        }
        assert!(is_test_file("data/shop_test.db") && is_test_file(":memory:"));
        assert!(!is_test_file("test/shop.db") && !is_test_file("test_results.db"));
        assert!(ends_with_name("shop_dev2", &OWN_NAMES) && !ends_with_name("dev_shop", &OWN_NAMES));
    }

    #[test]
    fn only_a_database_of_tests_is_dropped() {
        let drops = |text: &str| drops_test_database(&[words_of(text)]);
        assert!(drops("drop database if exists shop_test_3 with (force);"));
        assert!(!drops("drop database shop_test; truncate users") && !drops("drop database shop"));
        assert!(!drops("drop database latest"));
    }
}
