//! Results of tool calls: how a call ended, and what that changes.

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

impl Facts {
    pub(super) fn result(&mut self, result: &ToolResult<'_>, lens: &CompiledLens) {
        let (code, output) = code_and_output(result);
        let outcome = outcome(result, code);
        match outcome {
            Outcome::Denied => self.tools.denied += 1,
            Outcome::Failed => self.tools.failed += 1,
            Outcome::Pending | Outcome::Succeeded | Outcome::Background => {}
        }
        let id = cut(&result.id, NAME_TEXT_MAX);
        let Some(index) = self.pending.iter().rposition(|tool| tool.id == id) else { return };
        let call = self.pending.remove(index);
        if lens.is_shell_tool(&call.name) {
            let ending = Ending { outcome, exit_code: code, output: &output };
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
            self.task_created(&call.subject, &result.task_id, &result.text);
        }
    }
}

fn outcome(result: &ToolResult<'_>, code: Option<i32>) -> Outcome {
    let refused = || REFUSALS.iter().any(|start| result.text.starts_with(start));
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

/// The exit code where one is named, and the output without the line that names it.
fn code_and_output<'r>(result: &'r ToolResult<'_>) -> (Option<i32>, std::borrow::Cow<'r, str>) {
    let (code, rest) = leading_code(&result.text);
    let code = result.exit_code.or(code);
    let output = match (result.stdout.is_empty(), result.stderr.is_empty()) {
        (true, true) => rest.into(),
        (false, true) => result.stdout.as_ref().into(),
        (true, false) => result.stderr.as_ref().into(),
        (false, false) => format!("{}\n{}", result.stdout, result.stderr).into(),
    };
    (code, output)
}

/// `Exit code 101` on the first line.
fn leading_code(text: &str) -> (Option<i32>, &str) {
    let text_after = text.strip_prefix("Error: ").unwrap_or(text);
    let (line, rest) = text_after.split_once('\n').unwrap_or((text_after, ""));
    match line.strip_prefix("Exit code ").and_then(|code| code.trim().parse().ok()) {
        Some(code) => (Some(code), rest),
        None => (None, text),
    }
}
