//! Facts about programs, as `vocabulary.yaml` states them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::invocation::Invocation;
use super::shell_text::ShellText;
use crate::pattern::CommandPattern;
use crate::vocabulary::ValueOptions;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::rows::{NameIndex, RowNames, Rows};

/// Facts about programs, from `vocabulary.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramDatabase {
    /// Programs that run code of other languages.
    pub interpreters: Lazy<Rows<Interpreter>>,
    /// Effects of programs on the files in their arguments.
    pub effects: Lazy<Rows<FileEffect>>,
    /// Calls in code that start programs or access files.
    pub calls: Lazy<Vec<CodeCall>>,
    /// Options and operands that are shell text.
    pub shell_values: Lazy<Rows<ShellValue>>,
    /// Tools that read files.
    pub read_tools: Vec<String>,
    /// Programs whose arguments are names or prose, and not commands.
    pub prose_programs: Vec<String>,
    /// Programs that only print what they would do, or how they are used.
    pub dry_runs: Lazy<Rows<DryRun>>,
    /// Names of the programs that the vocabulary and the guards list.
    pub listed: Lazy<NameIndex>,
}

/// Programs that only print what they would do, or how they are used, if one of these options is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// The programs, with their subcommands.
    pub programs: Vec<CommandPattern>,
    /// The options: `--dry-run`.
    pub options: Vec<String>,
    /// Whether an option counts only as the last argument, and not behind another option, whose value it can be.
    pub at_end: bool,
}

/// A program that runs code of another language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// Name; `*` matches any letters: `python*`.
    pub program: String,
    /// Options whose value is code: `-c`.
    pub code: Vec<String>,
    /// Options that are followed by something else than code: `-m`.
    pub other: Vec<String>,
    /// Whether the first argument is code: `awk`.
    pub first: bool,
}

/// Selects operands of a program by position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperandSelector {
    /// No operand.
    #[default]
    None,
    /// All operands.
    All,
    /// The first operand.
    First,
    /// The last operand.
    Last,
    /// All operands but the first.
    AfterFirst,
    /// All operands but the last.
    BeforeLast,
}

impl OperandSelector {
    /// Returns the selection for a program whose target is given by an option (`mv -t directory`).
    pub(super) const fn without_target(self) -> Self {
        match self {
            Self::BeforeLast => Self::All,
            Self::Last => Self::None,
            Self::None | Self::All | Self::First | Self::AfterFirst => self,
        }
    }

    /// Names in `vocabulary.yaml`.
    pub const NAMES: &[&str] = &["all", "first", "last", "after_first", "before_last"];

    /// Returns the selector with this name, `None` if it is unknown.
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

    /// Returns whether the operand at index `at` of `count` is selected.
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

/// Effect of programs on the files in their arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    /// Programs with this effect.
    pub programs: Vec<CommandPattern>,
    /// Exceptions to `programs`.
    pub except: Vec<CommandPattern>,
    /// Operands that are read.
    pub read: OperandSelector,
    /// Operands that are written.
    pub write: OperandSelector,
    /// Operands that are deleted.
    pub delete: OperandSelector,
    /// Operands that get another path.
    pub moves: OperandSelector,
    /// Those of `programs` that delete a directory with everything below it.
    pub recursive: Vec<CommandPattern>,
    /// Operands whose last path segment is the name of a written file in the working directory: a
    /// downloaded URL.
    pub saves: OperandSelector,
    /// Options whose value is a file that is read.
    pub read_options: Vec<String>,
    /// Options whose value is a file of statements that the program runs, as it runs those of its standard input.
    pub run_options: Vec<String>,
    /// Options whose value is a file that is written.
    pub write_options: Vec<String>,
    /// Options whose value is a directory into which files are written.
    pub folder_options: Vec<String>,
    /// Operands that are directories written with everything below them. If they are the targets of
    /// copies, the directory is the one with the name of the source.
    pub trees: OperandSelector,
    /// Options whose value is such a directory.
    pub tree_options: Vec<String>,
    /// Beginnings of the operands that name files: `OPEN:`. If empty, the whole operand is the name.
    pub marks: Vec<String>,
    /// Options without which the first operand is a text, such as the script of `sed`. `None`: it is always a file.
    pub text_unless: Option<Vec<String>>,
    /// Whether operands can name files of another machine or system: `host:/path`.
    pub remote: bool,
    /// Whether what they write comes from another machine, so that code in it is unknown.
    pub fetches: bool,
    /// Whether the first operand is an address, and the second one a directory that is filled from there. Without a second
    /// operand, it has the name of the last step of the address, without `.git`.
    pub clones: bool,
    /// Options whose value is a text, or names a file that is read behind `@`: `-d` of `curl`.
    pub marked_options: Vec<String>,
    /// Further options whose value is sent: `--data-raw` of `curl`.
    pub sent_options: Vec<String>,
    /// Operands that are directories whose files the program prints. Without such an operand, it is the working directory.
    pub lists: OperandSelector,
    /// Whether the program writes any files below the value of one of `tree_options`, or below its
    /// working directory.
    pub unpacks: bool,
}

impl FileEffect {
    /// Returns the file that an operand names. `None` if it names none. Settings can follow behind a comma.
    pub(super) fn marked(&self, operand: &ShellText) -> Option<ShellText> {
        if self.marks.is_empty() {
            return Some(operand.clone());
        }
        let is_mark = |it: &&String| {
            operand.text.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it))
        };
        let file = operand.tail(self.marks.iter().find(is_mark)?.len());
        let end = file.text.find(',').unwrap_or(file.text.len());
        let text = file.text.get(..end)?.to_owned();
        Some(ShellText { known_to: file.known_to.min(text.len()), text, ..file })
    }

    /// Returns the operands that can be files.
    pub(super) fn file_operands<'a>(
        &self,
        program: &'a Invocation,
        own_words: usize,
        values: &Rows<ValueOptions>,
    ) -> Vec<&'a ShellText> {
        let operands = program.operands(values);
        let mut operands = operands.into_iter().skip(own_words).peekable();
        if let Some(options) = &self.text_unless
            && !options.iter().any(|it| program.has(it, values))
        {
            // What is unknown can be an option, or several words.
            let is_empty = |it: &ShellText| it.all().is_some_and(str::is_empty);
            while operands.next_if(|it| is_empty(it)).is_some() {}
            operands.next_if(|it| it.all().is_some());
        }
        operands.collect()
    }

    /// Returns whether the row says which operands are files.
    pub(super) fn selects_operands(&self) -> bool {
        [self.read, self.write, self.delete, self.moves]
            .iter()
            .any(|it| *it != OperandSelector::None)
    }
}

/// A call in code that starts a program or accesses a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCall {
    /// Name before the parenthesis: `os.system`.
    pub call: String,
    /// Words of the equivalent command; the arguments of the call follow them. If empty, the
    /// argument is shell text or a list of words.
    pub like: Vec<String>,
    /// Programs whose code may contain the call. If empty, all programs.
    pub only: Vec<String>,
    /// Whether the argument is code of the same language: `eval`.
    pub code: bool,
}

/// Options or operands of some programs that are shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellValue {
    /// Programs with these options.
    pub programs: Vec<CommandPattern>,
    /// Options whose value is shell text. If empty, the operands are shell text.
    pub options: Vec<String>,
    /// Required prefixes of the shell text: `!` in `vim -c '!ls'`. If empty, no prefix is required.
    pub after: Vec<String>,
}

impl RowNames for Interpreter {
    fn names(&self) -> Vec<Cow<'_, str>> {
        vec![self.program.as_str().into()]
    }
}

impl RowNames for FileEffect {
    fn names(&self) -> Vec<Cow<'_, str>> {
        self.programs.iter().map(|it| it.program().into()).collect()
    }
}

impl RowNames for DryRun {
    fn names(&self) -> Vec<Cow<'_, str>> {
        self.programs.iter().map(|it| it.program().into()).collect()
    }
}

impl RowNames for ShellValue {
    fn names(&self) -> Vec<Cow<'_, str>> {
        self.programs.iter().map(|it| it.program().into()).collect()
    }
}
