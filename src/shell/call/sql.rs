//! What the statements of a database client do, and which database it is connected to.
//!
//! Contains: the kinds of statements in arguments and on the standard input of a client (`database_clients` of the vocabulary),
//! and what its options and operands say about the database.
//! Does not contain: statements in code of other languages (`code`), whether a text for a tool is SQL (`shape`).

use super::hosts::is_this_machine;
use super::invocation::Invocation;
use super::paths::CallEnvironment;
use super::requests::RequestKnowledge;
use crate::tool_vocabulary::DatabaseClient;

/// Words in the names of databases that tests use.
const TEST_NAMES: [&str; 3] = ["test", "tests", "testing"];
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
    pub fn statement_effects(&self, known: RequestKnowledge<'_>) -> Vec<&'static str> {
        let Some(client) = self.database_client(known) else { return Vec::new() };
        let objects = &known.words.sql_objects;
        let texts = self.statements().map(|it| effects_of_text(it, client.rolls_back, objects));
        let mut found: Vec<StatementEffect> = texts.flatten().collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(StatementEffect::as_str).collect()
    }

    /// Returns which database a client is connected to.
    #[must_use]
    pub fn database_target(
        &self,
        known: RequestKnowledge<'_>,
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

    fn database_client<'a>(&self, known: RequestKnowledge<'a>) -> Option<&'a DatabaseClient> {
        let mut rows = known.databases.named(&self.name);
        rows.find(|row| row.programs.iter().any(|it| self.is(it, known.values)))
    }

    /// Returns the texts that can be statements.
    fn statements(&self) -> impl Iterator<Item = &str> {
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
    /// Whether an address is this machine.
    is_addressed_here: bool,
    /// Whether an option or an address names a host.
    has_host: bool,
    is_remote: bool,
}

impl<'a> Connection<'a> {
    fn of(
        program: &'a Invocation,
        client: &'a DatabaseClient,
        known: RequestKnowledge<'_>,
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
        names.extend(operands.get(skipped).map(|it| it.text.clone()));
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
        let words: Vec<Vec<String>> = self.program.statements().map(words_of).collect();
        let has = |wanted: &[&str]| {
            let is_one = |it: &[String]| it.iter().map(String::as_str).eq(wanted.iter().copied());
            words.iter().any(|it| it.windows(wanted.len()).any(is_one))
        };
        if !self.client.remote_options.is_empty() && !self.is_remote {
            return true;
        }
        if self.client.file {
            let is_temporary = |it: &String| {
                TEMPORARY.iter().any(|start| it.starts_with(start)) || has_name(it, &TEST_NAMES)
            };
            let file = self.names.first().filter(|it| !it.contains(".."));
            return file.is_some_and(is_temporary) && !has(&["attach"]);
        }
        // A statement can name another database than the connection does.
        let drops_other = ["database", "user", "role"].iter().any(|it| has(&["drop", it]));
        let leaves = has(&["use"]) || self.program.statements().any(|it| it.contains("\\c"));
        let is_named = self.names.iter().any(|it| has_name(it, &TEST_NAMES));
        is_named && !drops_other && !leaves || self.drops_test_databases(&words)
    }

    /// Returns whether all that is dropped are databases of tests.
    fn drops_test_databases(&self, words: &[Vec<String>]) -> bool {
        let mut dropped = words.iter().flat_map(|words| {
            let starts = words.windows(2).enumerate().filter(|(_, it)| *it == ["drop", "database"]);
            starts.map(|(at, _)| {
                let mut rest = words.get(at + 2..).unwrap_or_default().iter();
                rest.find(|it| !matches!(it.as_str(), "if" | "exists"))
            })
        });
        let drops = words.iter().flatten().filter(|it| *it == "drop").count();
        let is_test = |it: Option<&String>| it.is_some_and(|it| has_name(it, &TEST_NAMES));
        drops == 1 && dropped.next().is_some_and(is_test)
    }

    /// Returns whether the database is on this machine or belongs to one developer.
    fn is_own(&self, around: &CallEnvironment) -> bool {
        let line = self.program.args.iter().map(|it| it.text.as_str());
        let has_word = |names: &[&str]| line.clone().any(|it| has_name(it, names));
        let wrapped =
            |by: &[&str]| self.program.wrappers.iter().any(|it| by.contains(&it.as_str()));
        if has_word(&SHARED_NAMES) || wrapped(&ELSEWHERE) {
            return false;
        }
        if self.client.file {
            let inside = |it: &String| {
                let project = format!("{}/", around.project);
                !it.contains("..") && (!it.starts_with(['/', '~']) || it.starts_with(&project))
            };
            return self.names.first().is_none_or(inside);
        }
        let is_here = |it: &String| it.starts_with('/') || is_this_machine(it);
        wrapped(&CONTAINERS)
            || (self.client.local && !self.has_host)
            || self.is_addressed_here
            || (!self.hosts.is_empty() && self.hosts.iter().all(is_here))
            || (!self.has_host && has_word(&OWN_NAMES))
    }
}

/// Returns whether one of the words of a name is listed. Numbers at their ends do not count: `test_2`, `dev1`.
fn has_name(name: &str, listed: &[&str]) -> bool {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts
        .map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit()))
        .any(|it| listed.iter().any(|name| name.eq_ignore_ascii_case(it)))
}

/// Splits a text into words in lower case, and signs. Quotes and comments are left out.
fn words_of(text: &str) -> Vec<String> {
    let (mut found, mut word) = (Vec::new(), String::new());
    let lines = text.lines().map(|it| it.split_once("--").map_or(it, |it| it.0));
    for c in lines.flat_map(|it| it.chars().chain([' '])) {
        if c.is_alphanumeric() || "_.$:@{".contains(c) {
            word.extend(c.to_lowercase());
            continue;
        }
        found.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty()));
        if "=;()".contains(c) {
            found.push(c.to_string());
        }
    }
    found.extend(Some(word).filter(|it| !it.is_empty()));
    found
}

/// Returns the effects of the statements in a text. If `rolls_back`, a transaction that is rolled back has none.
fn effects_of_text(text: &str, rolls_back: bool, objects: &[String]) -> Vec<StatementEffect> {
    let words = words_of(text);
    let mut statements: Vec<&[String]> = words.split(|it| it == ";").collect();
    if rolls_back {
        remove_undone(&mut statements);
    }
    statements.into_iter().flat_map(|it| effects_of_statement(it, objects)).collect()
}

/// Removes the first transaction, if it is rolled back.
fn remove_undone(statements: &mut Vec<&[String]>) {
    let begins = |it: &&[String]| match it {
        [first, ..] if first == "begin" => true,
        [first, second, ..] => first == "start" && second == "transaction",
        _ => false,
    };
    let is_one =
        |it: &[String], words: [&str; 2]| it.first().is_some_and(|it| words.contains(&it.as_str()));
    let Some(start) = statements.iter().position(begins) else { return };
    // `rollback to s` ends no transaction.
    let undoes = |it: &[String]| is_one(it, ["rollback", "abort"]) && it.len() < 3;
    let ends = |it: &&[String]| undoes(it) || is_one(it, ["commit", "end"]);
    let end = statements.iter().skip(start).position(ends).map(|it| it + start);
    if let Some(end) = end.filter(|it| statements.get(*it).is_some_and(|it| undoes(it))) {
        statements.drain(start..=end);
    }
}

fn effects_of_statement(words: &[String], objects: &[String]) -> Vec<StatementEffect> {
    let has = |word: &str| words.iter().any(|it| it == word);
    let pair = |one: &str, two: &str| words.windows(2).any(|it| it == [one, two]);
    let is_dropped =
        |it: &[String]| matches!(it, [drop, what] if drop == "drop" && objects.contains(what));
    let drops = words.windows(2).any(is_dropped)
        || (pair("alter", "table") && has("drop"))
        || words.iter().any(|it| it.ends_with(".drop") || it.ends_with("dropdatabase"));
    // Without a condition, or with one that is always true.
    let after = |start: usize| {
        let rest = words.get(start..).unwrap_or_default();
        let mut parts = rest.splitn(2, |it| it == "where").skip(1);
        parts.next().is_none_or(|it| match it {
            [one, sign, two, ..] if sign == "=" => one == two,
            [one, ..] => one == "true",
            [] => true,
        })
    };
    let unbounded = |verb: &[&str]| {
        let mut starts = words.windows(verb.len()).enumerate();
        starts.any(|(at, it)| it.iter().map(String::as_str).eq(verb.iter().copied()) && after(at))
    };
    let is_truncated =
        |it: &[String]| matches!(it, [verb, what] if verb == "truncate" && what != "(");
    let all = |it: &[String]| matches!(it, [call, open, braces, ..] if call.ends_with(".deletemany") && open == "(" && braces == "{");
    let empties = words.windows(2).any(is_truncated)
        || words.iter().any(|it| matches!(it.as_str(), "flushall" | "flushdb"))
        || unbounded(&["delete", "from"])
        || (unbounded(&["detach", "delete"])
            && after(0)
            && !words.iter().any(|it| it.contains('{')))
        || words.windows(4).any(|it| all(it) && it.last().is_some_and(|it| it == ")"));
    let sets = words.first().is_some_and(|it| it == "update") && has("set") && after(0);
    let grants = (words.first().is_some_and(|it| it == "grant") && has("to"))
        || ((pair("alter", "role")
            || pair("alter", "user")
            || pair("create", "role")
            || pair("create", "user"))
            && ["superuser", "createrole", "bypassrls"].iter().any(|it| has(it)));
    let found = [
        (drops, StatementEffect::Drops),
        (empties, StatementEffect::Empties),
        (sets, StatementEffect::ChangesAll),
        (grants, StatementEffect::Grants),
    ];
    found.into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(text: &str) -> String {
        let objects = ["table", "database", "column", "user"].map(str::to_owned);
        let found = effects_of_text(text, true, &objects);
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
            ("-- drop table a\nselect 1", ""),
        ] {
            assert_eq!(effects(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_name_is_compared_by_words() {
        assert!(has_name("shop_test_2", &TEST_NAMES) && has_name("db/test.sqlite3", &TEST_NAMES));
        assert!(!has_name("latest", &TEST_NAMES) && !has_name("contest", &TEST_NAMES));
    }
}
