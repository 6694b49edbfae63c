//! Results of tool calls: how a call ended, and what that changes.

use std::borrow::Cow;

use super::super::Facts;
use super::super::command::Outcome;
use super::super::compiled::CompiledLens;
use super::super::record::ToolResult;
use super::commands::Ending;
use super::cut;
use crate::limits::NAME_TEXT_MAX;

/// Beginnings of results that say a call was refused, from before clients marked it.
const REFUSALS: [&str; 6] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user for tool use]",
    "Claude requested permissions",
    "Permission to use ",
    "PreToolUse:",
];

/// Lines of an error that tell it apart from others.
const ERROR_LINES: usize = 2;

impl Facts {
    pub(super) fn result(&mut self, result: &ToolResult<'_>, lens: &CompiledLens) {
        let code = result.exit_code.or_else(|| leading_code(&result.text.first_line()));
        let outcome = outcome(result, code);
        match outcome {
            Outcome::Denied => self.tools.denied += 1,
            Outcome::Failed => {
                self.tools.failed += 1;
                self.failed_with(&result.text.text());
            }
            Outcome::Pending | Outcome::Succeeded | Outcome::Background => {}
        }
        let id = cut(&result.id, NAME_TEXT_MAX);
        let Some(index) = self.pending.iter().rposition(|tool| tool.id == id) else { return };
        let call = self.pending.remove(index);
        if lens.is_shell_tool(&call.name) {
            let ending = Ending { outcome, exit_code: code, output: &output(result) };
            self.command_ended(call.seq, &ending, lens);
        }
        // A command that failed may well have written before it did; a refused one did not.
        let undone = match outcome {
            Outcome::Denied => true,
            Outcome::Failed => !lens.is_shell_tool(&call.name),
            Outcome::Pending | Outcome::Succeeded | Outcome::Background => false,
        };
        if undone {
            for undo in call.edited.into_iter().rev() {
                self.retract(undo, call.seq);
            }
        } else if call.name == "TaskCreate" && outcome == Outcome::Succeeded {
            self.task_created(&call.subject, &result.task_id, &result.text.text());
        }
    }
}

impl Facts {
    /// Counts an error that comes again and again. Its beginning tells it apart: the exit code and
    /// the first line of words.
    fn failed_with(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        let begins = lines.take(ERROR_LINES).collect::<Vec<_>>().join("\n");
        let begins = cut(&begins, NAME_TEXT_MAX);
        if begins == self.tools.last_error {
            self.tools.same_errors += 1;
        } else {
            begins.clone_into(&mut self.tools.last_error);
            self.tools.same_errors = 1;
        }
    }
}

fn outcome(result: &ToolResult<'_>, code: Option<i32>) -> Outcome {
    let refused = || {
        let text = result.text.first_line();
        REFUSALS.iter().any(|start| text.starts_with(start))
    };
    let marked = !result.denial.is_empty() && result.denial != "interrupted";
    if marked || (result.error && refused()) {
        Outcome::Denied
    } else if result.error || result.interrupted || !result.denial.is_empty() {
        Outcome::Failed
    } else if result.background {
        Outcome::Background
    } else if code.is_some_and(|code| code != 0) {
        Outcome::Failed
    } else {
        Outcome::Succeeded
    }
}

/// What the command printed, without the line that names its exit code.
fn output<'r>(result: &'r ToolResult<'_>) -> Cow<'r, str> {
    let (stdout, stderr) = (result.stdout.text(), result.stderr.text());
    match (stdout.is_empty(), stderr.is_empty()) {
        (true, true) => without_code(result.text.text()),
        (false, true) => stdout,
        (true, false) => stderr,
        (false, false) => format!("{stdout}\n{stderr}").into(),
    }
}

fn without_code(text: Cow<'_, str>) -> Cow<'_, str> {
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let skipped = leading_code(line).map(|_| text.len() - rest.len());
    match (skipped, text) {
        (None, text) => text,
        (Some(skipped), Cow::Borrowed(text)) => text.get(skipped..).unwrap_or_default().into(),
        (Some(skipped), Cow::Owned(mut text)) => {
            text.drain(..skipped);
            text.into()
        }
    }
}

/// `Exit code 101`, which is a line of its own before the output.
fn leading_code(line: &str) -> Option<i32> {
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    line.strip_prefix("Exit code ")?.trim().parse().ok()
}
