//! What a pack knows about programs and tools.

use std::borrow::Cow;

use policyd_yaml::rows::{RowNames, Rows};
use serde::{Deserialize, Serialize};

use crate::tool_vocabulary::DatabaseClient;
use crate::tool_vocabulary::{ToolEffect, ToolWords};

/// The wrappers, options and tools that a pack names.
pub trait ShellVocabulary: std::fmt::Debug {
    /// Returns the programs that run another program given in their arguments.
    fn wrappers(&self) -> &Rows<Wrapper>;

    /// Returns the options that take their value from the next argument, by program.
    fn value_options(&self) -> &Rows<ValueOptions>;

    /// Returns whether a program runs tasks of the project in its working directory: `make`.
    fn is_task_runner(&self, program: &str) -> bool;

    /// Returns whether calls of this tool edit files.
    fn is_edit_tool(&self, name: &str) -> bool;

    /// Returns whether calls of this tool run a shell command.
    fn is_shell_tool(&self, name: &str) -> bool;

    /// Returns the words in the names and inputs of tools that no list names.
    fn tool_words(&self) -> &ToolWords;

    /// Returns what such tools do to something that is not a local file.
    fn tool_effects(&self) -> &[ToolEffect];

    /// Returns the programs that run statements of a database.
    fn database_clients(&self) -> &Rows<DatabaseClient>;
}

/// A program that runs another program: `sudo`, `timeout 60`, `uv run`, `bash -c`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrapper {
    /// Words of the wrapper itself: `uv run`.
    pub command: String,
    /// Options that take a value from the next argument.
    pub value_options: Vec<String>,
    /// Number of the wrapper's own arguments before the wrapped program (1 for `timeout 60 cmd`).
    pub skip: usize,
    /// Option whose value is shell text (`-c` of `bash`). Empty if it wraps plain words.
    pub shell_option: String,
    /// Option that makes the wrapper only check its input (`-n` of `bash`) without running it.
    pub check_option: String,
    /// Options whose value is the working directory of the wrapped program: `-C` of `env`.
    pub folder_options: Vec<String>,
    /// Whether the wrapper itself also counts as a program, because it has effects of its own:
    /// `ssh`.
    pub kept: bool,
    /// Options with which it changes neither what the wrapped program does nor its rights. `None`: it may always change
    /// that.
    pub plain_options: Option<Vec<String>>,
    /// Whether it can get the program from a registry and run it at once: `npx`.
    pub gets_packages: bool,
}

impl Wrapper {
    /// Returns whether words start with this wrapper, and none of their options changes what the wrapped program does.
    #[must_use]
    pub fn is_plain(&self, words: &[&str]) -> bool {
        let Some(plain) = &self.plain_options else { return false };
        let own: Vec<&str> = self.command.split_whitespace().collect();
        let is_listed = |word: &str| {
            let (option, _) = word.split_once('=').unwrap_or((word, ""));
            let glued =
                |it: &String| it.len() == 2 && !it.ends_with('-') && word.starts_with(it.as_str());
            word == "--" || plain.iter().any(|it| it == option || glued(it))
        };
        let rest = words.get(own.len()..).unwrap_or_default();
        words.starts_with(&own) && rest.iter().all(|it| !it.starts_with('-') || is_listed(it))
    }
}

/// Options of a program that take a value from the next argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueOptions {
    pub program: String,
    /// Options such as `-C`.
    pub options: Vec<String>,
}

impl RowNames for Wrapper {
    fn names(&self) -> Vec<Cow<'_, str>> {
        vec![first_word(&self.command)]
    }
}

impl RowNames for ValueOptions {
    fn names(&self) -> Vec<Cow<'_, str>> {
        vec![first_word(&self.program)]
    }
}

fn first_word(text: &str) -> Cow<'_, str> {
    text.split_whitespace().next().unwrap_or_default().into()
}
