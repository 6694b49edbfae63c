//! The lens: which commands, files and texts a pack wants noticed, as plain data.
//! Lives here: lists that come out of `vocabulary.yaml`, and matching against them.

use serde::{Deserialize, Serialize};

use crate::deferred::Deferred;

/// What the fold looks for. It is made by the policy loader and known to the fold only as data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lens {
    /// Programs that run another program given in their arguments.
    pub wrappers: Deferred<Vec<Wrapper>>,
    /// Options that take their value from the next argument, per program.
    pub value_options: Deferred<Vec<ValueOptions>>,
    /// Named kinds of commands, such as `test`.
    pub commands: Deferred<Vec<CommandKind>>,
    /// Named kinds of files, such as `code`.
    pub files: Deferred<Vec<FileKindRow>>,
    /// Named patterns looked for in edited text.
    pub contents: Deferred<Vec<ContentPattern>>,
    /// Names of tools that edit files, with the input keys of path and text.
    pub edit_tools: Vec<String>,
    /// Names of tools that run a shell command.
    pub shell_tools: Vec<String>,
}

/// A program that runs another one: `sudo`, `timeout 60`, `uv run`, `bash -c`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrapper {
    /// The words it starts with: `uv run`.
    pub command: String,
    /// Its options that take a value from the next argument.
    pub value_options: Vec<String>,
    /// Arguments of its own before the wrapped program (1 for `timeout 60 cmd`).
    pub skip: usize,
    /// The option whose value is shell text (`-c` of `bash`); empty when it wraps plain words.
    pub shell_option: String,
    /// The option with which it only reads what it is given (`-n` of `bash`), and runs nothing.
    pub check_option: String,
    /// Its options whose value is the folder that the program runs in: `-C` of `env`.
    pub folder_options: Vec<String>,
    /// Whether it does something of its own, so that it is looked at as a program, too: `ssh`.
    pub kept: bool,
}

/// Options of a program that take a value from the next argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueOptions {
    /// Program name.
    pub program: String,
    /// Options such as `-C`.
    pub options: Vec<String>,
}

/// A named kind of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandKind {
    /// Name used in expressions: `commands.kind("test")`.
    pub name: String,
    /// Command patterns: `cargo test`, `python -m pytest`, `npm run test*`.
    pub programs: Vec<String>,
    /// Command patterns that are not of this kind although they match above: `cargo test --no-run`.
    pub except: Vec<String>,
    /// Regexes of output lines that mean failure, whatever the exit status.
    pub failed: Vec<String>,
    /// Regexes of output lines that mean failure where the exit status cannot tell. They may be
    /// wider: a passing run that prints `2 errors` is not doubted.
    pub failed_if_hidden: Vec<String>,
    /// Regexes of output lines that say that nothing ran, which is neither.
    pub empty: Vec<String>,
    /// Regexes of output lines that mean success, where the exit status cannot tell.
    pub passed: Vec<String>,
    /// Regexes of output lines that mean success unless a line says that nothing ran: `OK` ends an
    /// empty run of some runners as well.
    pub passed_unless_empty: Vec<String>,
}

/// A named kind of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileKindRow {
    /// Name used in expressions: `files.kind("code")`.
    pub name: String,
    /// Path globs: `*.rs`, `**/tests/**`, `Makefile`.
    pub globs: Vec<String>,
    /// Path globs that are not of this kind although they match above.
    pub except: Vec<String>,
}

/// A named pattern looked for in edited text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPattern {
    /// Name used in expressions: `files.findings("stub")`.
    pub name: String,
    /// Regexes tried on each line of new text.
    pub regexes: Vec<String>,
    /// File kinds it is looked for in; empty means all files.
    pub files: Vec<String>,
    /// File kinds it is not looked for in.
    pub except_files: Vec<String>,
    /// Regexes that, found anywhere in the same new text, excuse it (`@abstractmethod`).
    pub unless: Vec<String>,
}
