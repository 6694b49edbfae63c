//! What is known of programs, as data out of `vocabulary.yaml`: which run code they are given, which
//! read and write files, and which calls in code start programs.

use serde::{Deserialize, Serialize};

use crate::facts::pattern::CommandPattern;

/// What is known of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// Programs that run code.
    pub interpreters: Vec<Interpreter>,
    /// What programs do with the files they are given.
    pub effects: Vec<FileEffect>,
    /// Calls in code that start programs or touch files.
    pub calls: Vec<CodeCall>,
    /// Options and operands that are shell text.
    pub shell_values: Vec<ShellValue>,
    /// Tools that read files.
    pub read_tools: Vec<String>,
}

/// A program that runs code which is not shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// Its name, `*` for any letters: `python*`.
    pub program: String,
    /// Options whose value is code: `-c`.
    pub code: Vec<String>,
    /// Options after which what follows is not code: `-m`.
    pub other: Vec<String>,
    /// Whether its first argument is code: `awk`.
    pub first: bool,
}

/// Which of the files that a program is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// The first one.
    First,
    /// The last one.
    Last,
    /// All but the first one.
    AfterFirst,
    /// All but the last one.
    BeforeLast,
}

impl Which {
    /// Those of operands whose target is told by an option.
    pub(super) const fn without_target(self) -> Self {
        match self {
            Self::BeforeLast => Self::All,
            Self::Last => Self::None,
            Self::None | Self::All | Self::First | Self::AfterFirst => self,
        }
    }

    /// How they are written.
    pub const NAMES: &[&str] = &["all", "first", "last", "after_first", "before_last"];

    /// Those of this name.
    #[must_use]
    pub fn find(name: &str) -> Self {
        match name {
            "all" => Self::All,
            "first" => Self::First,
            "last" => Self::Last,
            "after_first" => Self::AfterFirst,
            "before_last" => Self::BeforeLast,
            _ => Self::None,
        }
    }

    /// Whether one at this position of so many is meant.
    #[must_use]
    pub const fn takes(self, at: usize, count: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::First => at == 0,
            Self::Last => at.saturating_add(1) == count,
            Self::AfterFirst => at > 0,
            Self::BeforeLast => at.saturating_add(1) < count,
        }
    }
}

/// What some programs do with the files they are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    /// Programs that do it.
    pub programs: Vec<CommandPattern>,
    /// Those that are left out.
    pub except: Vec<CommandPattern>,
    /// Arguments that they read.
    pub read: Which,
    /// Arguments that they write.
    pub write: Which,
    /// Arguments that they delete.
    pub delete: Which,
    /// Arguments whose last step is the name of a file that they write where they stand: of an
    /// address what is fetched from it.
    pub saves: Which,
    /// Options whose value is a file that they read.
    pub read_options: Vec<String>,
    /// Options whose value is a file that they write.
    pub write_options: Vec<String>,
    /// Options whose value is a folder that they write files into.
    pub folder_options: Vec<String>,
}

/// A call in code that starts a program or touches a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCall {
    /// Its name, as it stands before the parenthesis: `os.system`.
    pub call: String,
    /// The words that it is like, its arguments after them; none, where its argument is shell text
    /// or a list of words.
    pub like: Vec<String>,
    /// Programs whose code it is looked for in; all, where there are none.
    pub only: Vec<String>,
}

/// Options and operands of some programs that are shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellValue {
    /// Programs that take it.
    pub programs: Vec<CommandPattern>,
    /// Options whose value it is; where there are none, the operands are it.
    pub options: Vec<String>,
    /// What stands before it: `!` in `vim -c '!ls'`. Where there is something, a value without it is
    /// no shell text.
    pub after: Vec<String>,
}
