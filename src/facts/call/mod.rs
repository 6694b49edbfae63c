//! One tool call before it runs: the programs a command line would start, with the values that its
//! words would have, and the files that any tool would touch.
//! Lives here: what the shell and the tools would do. May not live here: whether that is allowed.

mod code;
mod endless;
mod files;
mod heredoc;
mod paths;
mod powershell;
mod programs;
mod scope;
mod shape;
mod statements;
mod words;
mod wrappers;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::compiled::CompiledLens;
use super::event::Event;
pub use files::{
    CodeCall, FileEffect, FileUse, Interpreter, Knowledge, PatchFile, ShellValue, Use, Which,
};
pub use paths::{Place, PlaceGlobs, Real, Surroundings, normal};
pub use words::Text;

/// A tool call that is about to happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// The command line, empty where the tool runs none.
    pub command: String,
    /// Programs that it would start, in order, wrappers and shells unwrapped.
    pub programs: Vec<Invocation>,
    /// Variables that it sets for programs, by name.
    pub variables: BTreeMap<String, Text>,
    /// Files that it would touch.
    pub files: Vec<FileUse>,
    /// Files whose patches it would apply, which are not known from the call.
    pub patches: Vec<PatchFile>,
    /// Text that it would write into files, one for each.
    pub written: Vec<String>,
    /// The address that it would fetch, where the tool is one that does.
    pub address: String,
    /// What a human said, where the event is that.
    pub prompt: String,
    /// Whether a function of it calls itself without end, or a loop starts jobs without end.
    pub endless: bool,
    /// What could not be understood, one line each.
    pub unread: Vec<String>,
    /// Whether a part of it was not looked at: it is too long, too deep, or starts too much.
    pub beyond: bool,
}

/// One program that a command line would start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invocation {
    /// Base name, empty where it cannot be known.
    pub name: String,
    /// The program as it would be called.
    pub called: Text,
    /// Its arguments.
    pub args: Vec<Text>,
    /// The folder it would run in; nothing where that cannot be known.
    pub folder: Option<String>,
    /// Files that it is redirected to.
    pub writes: Vec<Text>,
    /// Files that it is redirected from.
    pub reads: Vec<Text>,
    /// What it would read from its standard input.
    pub input: Input,
    /// Programs whose output it is given: by a pipe, as an argument, or as a file.
    pub fed_by: Vec<usize>,
    /// The code it is given to run, empty where there is none or it cannot be known.
    pub code: String,
    /// Whether it runs code that cannot be known.
    pub runs_unknown: bool,
    /// Wrappers that were taken off: `sudo`, `xargs`.
    pub wrappers: Vec<String>,
    /// Where symbolic links lead that the line made before, by where they lie.
    pub links: BTreeMap<String, String>,
}

impl Invocation {
    /// The place of one of its operands, the links followed that the line made. Where the operand is
    /// deleted, that is the link itself and not what it leads to.
    #[must_use]
    pub fn place(&self, operand: &Text, deleted: bool, around: &Surroundings) -> Place {
        let place = around.place(operand, self.folder.as_deref());
        let through = ["/", "/."].iter().any(|it| operand.text.ends_with(it));
        let absolute = place.absolute.map(|it| match it.rsplit_once('/') {
            Some((folder, last)) if deleted && !through => {
                let folder = paths::followed(folder.to_owned(), &self.links);
                crate::path::in_folder(&folder, last)
            }
            _ => paths::followed(it, &self.links),
        });
        Place { absolute, itself: deleted, ..place }
    }
}

/// What a program would read from its standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    /// Whether something is piped into it.
    pub piped: bool,
    /// That text, where it is known.
    pub text: Option<String>,
    /// Whether parts stand in the text as they were written, since they cannot be known.
    pub as_written: bool,
    /// Whether a known file is what it reads.
    pub is_file: bool,
    /// Programs that wrote it.
    pub from: Vec<usize>,
    /// The files that it names: something below the folder that all lie in, then what was looked for there.
    pub files: Vec<Text>,
}

/// What reading a call needs besides the call.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// How wrappers and tools are recognised.
    pub lens: &'a CompiledLens,
    /// What is known of programs.
    pub knowledge: &'a Knowledge,
    /// Where it happens.
    pub around: &'a Surroundings,
    /// How long it may take.
    pub patience: Patience<'a>,
}

/// Whether a bound of time is reached; asked again and again while a call is read.
#[derive(Clone, Copy)]
pub struct Patience<'a>(pub &'a dyn Fn() -> bool);

impl Patience<'_> {
    /// Without a bound of time.
    pub const ENDLESS: Self = Self(&|| false);
}

impl std::fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Patience")
    }
}

impl Call {
    /// Reads a call of a tool.
    #[must_use]
    pub fn read(tool: &str, input: &Json, reading: Reading<'_>) -> Self {
        let mut call = Self { tool: tool.to_owned(), ..Self::default() };
        if reading.lens.is_shell_tool(tool) {
            call.command = command_of(input);
            let command = call.command.clone();
            statements::scan(&mut call, &powershell::command(tool, &command), reading);
            files::add(&mut call, input, reading);
        } else if reading.lens.is_edit_tool(tool)
            || reading.knowledge.read_tools.iter().any(|it| it == tool)
        {
            files::add(&mut call, input, reading);
        } else {
            shape::add(&mut call, input, reading);
        }
        call.address = input.get("url").and_then(Json::as_str).unwrap_or_default().to_owned();
        call
    }

    /// What an event tells of a call; at one without a tool there is nothing in it.
    #[must_use]
    pub fn of(event: &Event, reading: Reading<'_>) -> Self {
        let tool = event.tool_name.as_deref();
        let call = tool.map(|it| Self::read(it, &event.tool_input, reading)).unwrap_or_default();
        Self { prompt: event.prompt.clone().unwrap_or_default(), ..call }
    }

    /// Whether all of its command line was understood.
    #[must_use]
    pub const fn is_understood(&self) -> bool {
        self.unread.is_empty()
    }

    /// Whether it may touch a file or set a variable, or was not understood.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !(self.files.is_empty() && self.variables.is_empty() && self.is_understood())
            || self.endless
            || self.beyond
    }

    /// Notes that something in it could not be understood.
    pub(super) fn not_read(&mut self, why: &str) {
        if !self.unread.iter().any(|it| it == why) {
            self.unread.push(why.to_owned());
        }
    }

    /// Notes that a part of it is not looked at, since it goes over a bound.
    pub fn over(&mut self, why: &str) {
        self.beyond = true;
        self.not_read(why);
    }

    /// Positions of all programs whose output reaches this one, through any number of others.
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

/// The command line of a shell tool: a text, or a list of words.
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
