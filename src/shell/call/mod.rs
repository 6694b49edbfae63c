//! One tool call before it runs: the programs that a command line starts, with the values of their words, and
//! the files that the tool accesses.
//!
//! Contains: the choice of the analysis by tool. `tool_call` and `invocation` are its results, `scanner` reads a command
//! line.
//! Does not contain: the decision whether a call is allowed (guards).

mod analysis_context;
mod awk;
mod branches;
mod code;
mod code_flow;
mod code_names;
mod code_requests;
mod code_syntax;
mod code_text;
mod code_tokens;
mod code_values;
mod compose;
mod container_mounts;
mod containers;
mod disk;
mod effect_set;
mod effects;
mod endless;
mod file_access;
mod files;
mod find;
mod function_table;
mod git_alias;
mod heredoc;
mod hidden;
mod hosts;
mod invocation;
mod paths;
mod powershell;
mod program_database;
mod programs;
mod recipes;
mod requests;
mod scanner;
mod scope;
mod scripts;
pub mod shape;
mod shell_output;
mod shell_state;
mod shell_text;
mod simple_command;
mod sql;
mod statements;
pub mod text_changes;
mod tool_call;
mod tool_effects;
mod trees;
mod words;
mod wrappers;
mod written_files;

use serde_json::Value as Json;

pub use analysis_context::AnalysisContext;
pub use container_mounts::ContainerMounts;
pub use disk::{CallDisk, NoDisk, ScriptFile};
pub use effect_set::CallEffects;
pub use effects::{CallEffect, EffectKind, EffectPlace};
pub use file_access::{Access, FileAccess, PatchFile, TreeWrite};
pub use files::{folder_of, is_nowhere};
pub use invocation::{Invocation, StandardInput};
pub use paths::{CallEnvironment, LinkTarget, PathMatchers, ResolvedPath, normal};
pub use program_database::{
    CodeCall, DryRun, FileEffect, Interpreter, OperandSelector, ProgramDatabase, ShellValue,
};
pub use requests::ServiceKnowledge;
pub use scripts::is_code_path;
pub use shell_text::ShellText;
pub use sql::DatabaseTarget;
pub use tool_call::{Call, Script};

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
            if !call.is_understood() && !call.beyond {
                call.suspected = context.knowledge.named_effects(&command);
            }
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
