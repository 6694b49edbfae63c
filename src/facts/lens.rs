//! The lens: the commands, files and texts that a pack wants the fold to detect, as plain data from
//! `vocabulary.yaml`.

use std::collections::BTreeSet;

pub use policyd_shell::vocabulary::{ValueOptions, Wrapper};
use policyd_yaml::rows::Rows;
use serde::{Deserialize, Serialize};

use policyd_yaml::deferred::Lazy;

pub use policyd_shell::tool_vocabulary::{DatabaseClient, HttpClient, ToolEffect, ToolWords};

/// Configuration of the fold. The policy loader creates it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatcherConfig {
    /// Programs that run another program given in their arguments.
    pub wrappers: Lazy<Rows<Wrapper>>,
    /// Options that take their value from the next argument, by program.
    pub value_options: Lazy<Rows<ValueOptions>>,
    /// Command classes, such as `test`.
    pub commands: Lazy<Vec<CommandKind>>,
    /// File classes, such as `code`.
    pub files: Lazy<Vec<FileKindRow>>,
    /// Globs of paths that rules name together: `@key_files`.
    pub paths: Lazy<Vec<PathList>>,
    /// Patterns that are searched in edited text.
    pub contents: Lazy<Vec<ContentPattern>>,
    /// Globs of files that show that a project has tests, each with a regex that their text must
    /// match.
    pub test_signs: Lazy<Vec<TestSign>>,
    /// Names of files that describe a package: `package.json`.
    pub package_files: Vec<String>,
    /// Tools that edit files.
    pub edit_tools: Vec<String>,
    /// Tools that start a subagent.
    pub agent_tools: Vec<String>,
    /// Tools of which the newest call is kept.
    pub kept_calls: BTreeSet<String>,
    /// Tools that run a shell command.
    pub shell_tools: Vec<String>,
    /// Words in the names and inputs of tools that no list names.
    pub tool_words: Lazy<ToolWords>,
    /// What such tools do to something that is not a local file.
    pub tool_effects: Lazy<Vec<ToolEffect>>,
    /// Programs that send HTTP requests.
    pub http_clients: Lazy<Rows<HttpClient>>,
    /// Programs that run statements of a database.
    pub database_clients: Rows<DatabaseClient>,
    /// Programs whose operands are names of tasks, such as `make`.
    pub task_runners: Vec<String>,
    /// Programs whose first operand is a script, such as `python`.
    pub script_runners: Vec<String>,
    /// Environment variables that do not change which files and programs a program uses.
    pub plain_variables: Lazy<Vec<String>>,
    /// Globs of programs that a project installs for itself.
    pub tool_folders: Lazy<Vec<String>>,
    /// Beginnings of the reasons with which the pack blocks a stop.
    pub block_headers: Vec<String>,
}

/// A command class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandKind {
    /// Name in expressions: `commands.kind("test")`.
    pub name: String,
    /// Command patterns: `cargo test`, `python -m pytest`, `npm run test*`.
    pub programs: Vec<String>,
    /// Command patterns of commands that `programs` matches and that do not belong to the class:
    /// `cargo test --no-run`.
    pub except: Vec<String>,
    /// Names of classes whose commands do not belong to this class: `dry_run`.
    pub except_kinds: Vec<String>,
    /// Names of classes whose successful commands repair what a command of this class reported, if one of their patterns
    /// matches both: `black` after `black --check`.
    pub repaired_by: Vec<String>,
    /// Words in the names of tasks and scripts of this class: `test`, `spec`.
    pub tasks: Vec<String>,
    /// Words in the names of tasks and scripts that do not belong to the class: `lint`.
    pub except_tasks: Vec<String>,
    /// Whether commands of the class are never evidence for another class, whatever they print:
    /// `git log`.
    pub no_evidence: bool,
    /// Whether a command belongs to the class if its output matches `passed` or `failed`.
    pub by_output: bool,
    /// Regexes of output lines that mean that the command could not run, which is neither success
    /// nor failure.
    pub unable: Vec<String>,
    /// Regexes of output lines that name one failure each: the name of a failed test.
    pub failures: Vec<String>,
    /// Regexes of output lines that mean failure, whatever the exit status.
    pub failed: Vec<String>,
    /// Regexes of output lines that mean failure if the exit status is hidden. They can match more
    /// lines, because a passing run that prints `2 errors` has a visible status.
    pub failed_if_hidden: Vec<String>,
    /// Regexes of output lines that mean that nothing ran, which is neither success nor failure.
    pub empty: Vec<String>,
    /// Regexes of output lines that mean success if the exit status is hidden.
    pub passed: Vec<String>,
    /// Regexes of output lines that mean success unless a line means that nothing ran. Some runners
    /// end an empty run with `OK`, too.
    pub passed_unless_empty: Vec<String>,
}

/// A file class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileKindRow {
    /// Name in expressions: `files.kind("code")`.
    pub name: String,
    /// Path globs: `*.rs`, `**/tests/**`, `Makefile`.
    pub globs: Vec<String>,
    /// Path globs of files that `globs` matches and that do not belong to the class.
    pub except: Vec<String>,
    /// Whether generated and vendored files do not belong to the class.
    pub except_generated: bool,
    /// Whether a project with a file of the class has tests.
    pub shows_tests: bool,
}

/// Globs of paths with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathList {
    /// Name in lists of globs, there after `@`.
    pub name: String,
    /// Path globs. A glob behind `!` excludes paths that the others match. Calls need few of the lists.
    pub globs: Lazy<Vec<String>>,
}

/// A sign in files of a project that it has tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestSign {
    /// Glob of the files.
    pub files: String,
    /// Regex that their text must match.
    pub regex: String,
}

/// A pattern that is searched in edited text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPattern {
    /// Name in expressions: `files.findings("stub")`.
    pub name: String,
    /// Regexes that are matched with each line of new text.
    pub regexes: Vec<String>,
    /// File classes to which the pattern applies. Empty: all files.
    pub files: Vec<String>,
    /// File classes to which the pattern does not apply.
    pub except_files: Vec<String>,
    /// Regexes that suppress the pattern if they match anywhere in the same new text
    /// (`generated by`).
    pub unless: Vec<String>,
    /// Regexes of lines that suppress the pattern in the line and in the block that it begins
    /// (`@abstractmethod`).
    pub unless_inside: Vec<String>,
}
