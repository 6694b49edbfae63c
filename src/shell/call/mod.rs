//! One tool call before it runs: the programs that a command line starts, with the values of their words, and
//! the files that the tool accesses.
//!
//! Contains: [`Call`] and [`Invocation`], and the choice of the analysis by tool.
//! Does not contain: the decision whether a call is allowed (guards).

mod branches;
mod code;
mod code_flow;
mod code_text;
mod code_tokens;
mod containers;
mod disk;
mod effects;
mod endless;
mod files;
mod heredoc;
mod hidden;
mod paths;
mod powershell;
mod programs;
mod recipes;
mod scope;
mod scripts;
pub mod shape;
mod statements;
pub mod text_changes;
mod trees;
mod words;
mod wrappers;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value as Json;

pub use containers::ContainerMounts;
pub use disk::{CallDisk, NoDisk};
pub use effects::{CallEffect, CallEffects, EffectKind, EffectPlace};
pub use files::{
    Access, CodeCall, FileAccess, FileEffect, Interpreter, OperandSelector, PatchFile,
    ProgramDatabase, ShellValue, folder_of, is_nowhere,
};
pub use paths::{CallEnvironment, LinkTarget, PathMatchers, ResolvedPath, normal};
pub use scripts::Script;
pub use trees::TreeWrite;
pub use words::ShellText;

use crate::vocabulary::ShellVocabulary;

/// A tool call before it runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Command line. Empty if the tool runs none.
    pub command: String,
    /// Programs that the call starts, in order, without wrappers and shells.
    pub programs: Vec<Invocation>,
    /// Wrappers of the programs, by name. A wrapper is plain if it changes neither what a program does nor its rights.
    pub wrappers: BTreeMap<String, bool>,
    /// Variables that the call sets for its programs, by name.
    pub variables: BTreeMap<String, ShellText>,
    /// Names of all variables that the call assigns, also those of the shell alone.
    pub assigned: BTreeSet<String>,
    /// Files that the call accesses.
    pub files: Vec<FileAccess>,
    /// Directory trees that the call writes. Which files they contain is not part of the call.
    pub trees: Vec<TreeWrite>,
    /// Files and directories of this machine that the containers of the call see.
    pub mounts: Vec<ResolvedPath>,
    /// Patch files that a program applies. Their content is not part of the call.
    pub patches: Vec<PatchFile>,
    /// Files that the call runs. What they do is not part of the other fields.
    pub scripts: Vec<Script>,
    /// Text that the call writes into files, one entry for each text.
    pub written: Vec<String>,
    /// Texts in the input of a tool that the vocabulary does not list and that does not only read.
    pub strings: Vec<String>,
    /// URL that the tool fetches. Can be empty.
    pub address: String,
    /// Prompt of the user. Empty for other events.
    pub prompt: String,
    /// Whether a function calls itself endlessly, or a loop starts jobs endlessly.
    pub endless: bool,
    /// Reasons why parts of the command line were not understood, each once.
    pub unread: Vec<String>,
    /// Whether a part was not analyzed because it exceeds a limit: too long, too deep, or too many
    /// programs.
    pub beyond: bool,
}

/// One program that a command line starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invocation {
    /// Base name. Empty if it is unknown.
    pub name: String,
    /// The program as written.
    pub called: ShellText,
    /// Arguments, without the program.
    pub args: Vec<ShellText>,
    /// Working directory. `None` if it is unknown.
    pub folder: Option<String>,
    /// Files to which its output is redirected.
    pub writes: Vec<ShellText>,
    /// Those of `writes` that keep their content: `>>`.
    pub appends: Vec<ShellText>,
    /// Files from which its input is redirected.
    pub reads: Vec<ShellText>,
    /// Its standard input.
    pub input: StandardInput,
    /// Indexes of the programs whose output it receives: by a pipe, as an argument, or as a file.
    pub fed_by: Vec<usize>,
    /// Code that it runs. Empty without code or if it is unknown.
    pub code: String,
    /// Whether it runs unknown code.
    pub runs_unknown: bool,
    /// Whether it is only supposed to run, because an argument of another program has its name.
    pub guessed: bool,
    /// Whether the vocabulary says which of its operands are files. Other operands are texts then.
    pub described: bool,
    /// Whether a loop runs it for each item of a list that the line does not name.
    pub repeated: bool,
    /// Removed wrappers, outermost first: `sudo`, `xargs`.
    pub wrappers: Vec<String>,
    /// Targets of the symbolic links that the line created before, by absolute path.
    pub links: BTreeMap<String, String>,
    /// The mounts of the container in which it runs.
    pub container: Option<Rc<ContainerMounts>>,
}

impl Invocation {
    /// Resolves an operand of the program through the links that the line created. If `deleted`,
    /// the result is the link itself and not its target.
    #[must_use]
    pub fn place(
        &self,
        operand: &ShellText,
        deleted: bool,
        around: &CallEnvironment,
    ) -> ResolvedPath {
        let place = around.place(operand, self.folder.as_deref());
        let through = ["/", "/."].iter().any(|it| operand.text.ends_with(it));
        let absolute = place.absolute.and_then(|it| match it.rsplit_once('/') {
            Some((folder, last)) if deleted && !through => {
                let folder = paths::follow_links(folder.to_owned(), &self.links)?;
                Some(crate::path::in_folder(&folder, last))
            }
            _ => paths::follow_links(it, &self.links),
        });
        let absolute = absolute.and_then(|it| match &self.container {
            Some(mounts) => mounts.host(&it),
            None => Some(it),
        });
        ResolvedPath { absolute, itself: deleted, ..place }
    }
}

/// The standard input of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandardInput {
    /// Whether the input comes from a pipe, a here-document or a here-string.
    pub piped: bool,
    /// Content of the input. `None` if it is unknown.
    pub text: Option<String>,
    /// Whether `text` contains unknown values as written in the source.
    pub as_written: bool,
    /// Whether the input is a file.
    pub is_file: bool,
    /// Indexes of the programs that write the input.
    pub from: Vec<usize>,
    /// The files that the input names: first an unknown path below their common directory, then the
    /// names that were searched for.
    pub files: Vec<ShellText>,
}

impl StandardInput {
    /// Returns the content of a file after this was appended to what the line wrote into it before. What the file
    /// contained before the line is unknown, and does not count.
    fn behind(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let both = before.text.as_ref().zip(self.text.as_ref());
        let text = both.map(|(one, other)| format!("{one}{other}"));
        let from = before.from.iter().chain(&self.from).copied().collect();
        Self { text, from, as_written: self.as_written || before.as_written, ..self }
    }
}

/// Everything that the analysis of a call needs besides the call.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisContext<'a> {
    /// Which tools are shells and editors, and which programs are wrappers.
    pub lens: &'a dyn ShellVocabulary,
    /// Facts about programs.
    pub knowledge: &'a ProgramDatabase,
    /// Where the call happens.
    pub around: &'a CallEnvironment,
    /// What the disk knows.
    pub disk: &'a dyn CallDisk,
}

impl Call {
    /// Analyzes a call of a tool.
    #[must_use]
    pub fn read(tool: &str, input: &Json, context: AnalysisContext<'_>) -> Self {
        let mut call = Self { tool: tool.to_owned(), ..Self::default() };
        if context.lens.is_shell_tool(tool) {
            call.command = command_of(input);
            if is_no_command(input) {
                call.over("its command is not a text");
            }
            let command = call.command.clone();
            statements::scan_line(&mut call, &powershell::command(tool, &command), context);
            files::add(&mut call, input, context);
        } else if context.lens.is_edit_tool(tool)
            || context.knowledge.read_tools.iter().any(|it| it == tool)
        {
            files::add(&mut call, input, context);
        } else {
            shape::add(&mut call, input, context);
        }
        call.address = input.get("url").and_then(Json::as_str).unwrap_or_default().to_owned();
        call
    }

    /// Returns whether the whole command line was understood.
    #[must_use]
    pub const fn is_understood(&self) -> bool {
        self.unread.is_empty()
    }

    /// Records a reason why a part was not understood.
    pub(super) fn mark_not_understood(&mut self, why: &str) {
        if !self.unread.iter().any(|it| it == why) {
            self.unread.push(why.to_owned());
        }
    }

    /// Records that a part was not analyzed because it exceeds a limit.
    pub fn over(&mut self, why: &str) {
        self.beyond = true;
        self.mark_not_understood(why);
    }

    /// Returns the indexes of all programs whose output reaches a program, directly or through
    /// other programs. Sorted.
    #[must_use]
    pub fn upstream(&self, program: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut open = vec![program];
        while let Some(next) = open.pop() {
            let fed = self.programs.get(next).map(|it| it.fed_by.as_slice()).unwrap_or_default();
            for from in fed {
                if !found.contains(from) && *from != program {
                    found.push(*from);
                    open.push(*from);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// Returns whether a shell tool was given something else than a text or a list of words.
fn is_no_command(input: &Json) -> bool {
    let found = ["command", "cmd", "script"].iter().find_map(|key| input.get(*key));
    found.is_some_and(|it| match it {
        Json::String(_) | Json::Null => false,
        Json::Array(words) => !words.iter().all(Json::is_string),
        Json::Bool(_) | Json::Number(_) | Json::Object(_) => true,
    })
}

/// Returns the command line of a shell tool. The input is a text or a list of words.
fn command_of(input: &Json) -> String {
    let found = ["command", "cmd", "script"].iter().find_map(|key| input.get(*key));
    match found {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(words)) => {
            let words: Vec<String> =
                words.iter().filter_map(Json::as_str).map(super::shell::quote).collect();
            words.join(" ")
        }
        _ => input.as_str().unwrap_or_default().to_owned(),
    }
}
