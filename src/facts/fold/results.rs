//! Results of tool calls: how a call ended, and the facts that change with it.

use policyd_shell::vocabulary::ShellVocabulary;
use std::borrow::Cow;

use super::super::command::{CommandOutcome, CommandVerdict};
use super::super::compiled::CompiledMatchers;
use super::super::record::ToolResult;
use super::super::{BackgroundRun, Facts, PendingTool, SubagentReport};
use super::calls::POLL;
use super::commands::CallEnd;
use super::{cut, masked_front, push_bounded};
use policyd_base::limits::{
    ENDED_CALLS_KEPT_MAX, NAME_TEXT_MAX, PENDING_TOOLS_MAX, SUBAGENTS_KEPT_MAX,
};
use policyd_yaml::checksum::checksum;

/// Number of lines that identify an error.
const ERROR_LINES: usize = 2;

impl Facts {
    /// Records a result. The end of a call counts once, however often the client records it. A
    /// command that still runs has not ended.
    pub(super) fn result(&mut self, result: &ToolResult<'_>, lens: &CompiledMatchers) {
        // Names every field, so that a new one does not compile before the fold handles it.
        let ToolResult {
            id,
            text,
            task_id,
            running,
            exit_code,
            stdout: _, // `output`
            stderr: _,
            error: _, // `outcome`
            denial: _,
            interrupted: _,
            background: _,
            background_task,
            agent: _, // `reported`
        } = result;
        // Some reports of the end name the task only.
        let started = self.background_runs.iter().find(|it| it.task == **background_task);
        let call = started.filter(|_| id.is_empty()).map(|it| it.call.clone());
        let id = call.as_deref().unwrap_or_else(|| cut(id, NAME_TEXT_MAX));
        if !running.is_empty() {
            return self.runs_on(id, cut(running, NAME_TEXT_MAX));
        }
        self.reported(result);
        if self.has_ended(id) {
            return;
        }
        let code = exit_code.or_else(|| leading_code(&text.first_line()));
        let outcome = outcome(result, code);
        let call = self.awaited(id, code);
        // Polling a command that ended before repeats its result.
        if call.as_ref().is_none_or(|it| it.name != POLL) {
            self.count_outcome(outcome, result);
        }
        let Some(call) = call else { return };
        let latest = self.tools.latest.values_mut().chain(self.agents.values_mut());
        latest.filter(|it| it.seq == call.seq).for_each(|it| it.outcome = outcome);
        if outcome == CommandOutcome::Background {
            push_bounded(&mut self.background, call.clone(), PENDING_TOOLS_MAX);
            self.add_background_run(cut(background_task, NAME_TEXT_MAX), &call);
        } else {
            self.end_call(&call.id);
        }
        if lens.is_shell_tool(&call.name) {
            let ending = CallEnd { outcome, exit_code: code, output: &output(result) };
            self.command_ended(call.seq, &ending, lens);
        }
        if call.reads > 0 {
            self.background_read(call.reads, &text.text(), lens);
        }
        // A failed command can have written files; a denied command has not.
        let undone = match outcome {
            CommandOutcome::Denied => true,
            CommandOutcome::Failed => !lens.is_shell_tool(&call.name),
            CommandOutcome::Pending | CommandOutcome::Succeeded | CommandOutcome::Background => {
                false
            }
        };
        if undone {
            for undo in call.edited.into_iter().rev() {
                self.retract(undo, call.seq);
            }
        } else if call.name == "TaskCreate" && outcome == CommandOutcome::Succeeded {
            self.task_created(&call.subject, task_id, &text.text());
        }
    }
}

impl Facts {
    fn count_outcome(&mut self, outcome: CommandOutcome, result: &ToolResult<'_>) {
        match outcome {
            CommandOutcome::Denied => self.tools.denied += 1,
            CommandOutcome::Failed => {
                self.tools.failed += 1;
                self.failed_with(&result.text.text());
            }
            CommandOutcome::Pending | CommandOutcome::Succeeded | CommandOutcome::Background => {}
        }
    }

    /// Returns whether a call with this id was recorded.
    pub fn knows_call(&self, id: &str) -> bool {
        let id = cut(id, NAME_TEXT_MAX);
        let awaited = self.pending.iter().chain(&self.background);
        self.has_ended(id) || awaited.into_iter().any(|it| it.id == id)
    }

    /// Returns whether a call with this id has a result. Known only for the last calls.
    #[must_use]
    pub fn has_ended(&self, id: &str) -> bool {
        !id.is_empty() && self.ended.contains(&call_hash(id))
    }

    /// Removes an id from the ended calls, because a new call can use it again.
    pub(super) fn reopen(&mut self, id: &str) {
        let hash = call_hash(cut(id, NAME_TEXT_MAX));
        self.ended.retain(|it| *it != hash);
    }

    fn end_call(&mut self, id: &str) {
        if !id.is_empty() {
            push_bounded(&mut self.ended, call_hash(id), ENDED_CALLS_KEPT_MAX);
        }
    }

    /// Removes and returns the pending call that a result ends. The output of `write_stdin` ends
    /// the command of its session if it contains an exit code.
    fn awaited(&mut self, id: &str, code: Option<i32>) -> Option<PendingTool> {
        let Some(index) = self.pending.iter().rposition(|tool| tool.id == id) else {
            let index = self.background.iter().rposition(|tool| tool.id == id)?;
            return Some(self.background.remove(index));
        };
        let call = self.pending.remove(index);
        if call.name != POLL || code.is_none() {
            return Some(call);
        }
        let of_session = |it: &PendingTool| it.name != POLL && it.session == call.session;
        let Some(index) = self.pending.iter().rposition(of_session) else { return Some(call) };
        self.end_call(id);
        Some(self.pending.remove(index))
    }

    /// Records a command that did not end within the wait time of its call.
    fn runs_on(&mut self, id: &str, session: &str) {
        let Some(index) = self.pending.iter().rposition(|tool| tool.id == id) else { return };
        let polled = self.pending.get(index).is_some_and(|it| it.name == POLL);
        if polled {
            // Polling a running command ends; the command does not.
            let call = self.pending.remove(index);
            self.end_call(&call.id);
        } else if let Some(call) = self.pending.get_mut(index) {
            session.clone_into(&mut call.session);
        }
    }

    /// Records a command that was started in the background.
    fn add_background_run(&mut self, task: &str, call: &PendingTool) {
        if task.len() < TASK_BYTES_MIN {
            return;
        }
        let run = BackgroundRun { task: task.to_owned(), call: call.id.clone(), seq: call.seq };
        push_bounded(&mut self.background_runs, run, PENDING_TOOLS_MAX);
    }

    /// Records the output of a command in the background that a call read, and its end, if the client says it.
    fn background_read(&mut self, seq: u64, text: &str, lens: &CompiledMatchers) {
        let recent = self.commands.recent.iter();
        let Some(command) = recent.rev().find(|it| it.seq == seq) else { return };
        if matches!(command.verdict, CommandVerdict::Passed | CommandVerdict::Failed) {
            return;
        }
        let code = tagged(text, "exit_code").and_then(|it| it.parse().ok());
        let (outcome, exit_code) = match code {
            Some(0) => (CommandOutcome::Succeeded, code),
            Some(_) => (CommandOutcome::Failed, code),
            None => (command.outcome, command.exit_code),
        };
        if code.is_some() {
            // The client can report the end later, too.
            let started = self.background_runs.iter().find(|it| it.seq == seq);
            let id = started.map(|it| it.call.clone()).unwrap_or_default();
            self.background.retain(|it| it.id != id);
            self.end_call(&id);
        }
        let output = without_line_numbers(text);
        self.command_ended(seq, &CallEnd { outcome, exit_code, output: &output }, lens);
    }

    /// Records the position at which a subagent reported. Its work precedes the report.
    fn reported(&mut self, result: &ToolResult<'_>) {
        if result.agent.is_empty() {
            return;
        }
        let agent = cut(&result.agent, NAME_TEXT_MAX);
        self.subagents.retain(|it| it.agent != agent);
        let report = SubagentReport { agent: agent.to_owned(), seq: self.seq };
        push_bounded(&mut self.subagents, report, SUBAGENTS_KEPT_MAX);
    }

    /// Counts repeated errors. The beginning identifies an error: the exit code and the first line
    /// of text.
    fn failed_with(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        let begins = lines.take(ERROR_LINES).collect::<Vec<_>>().join("\n");
        let begins = masked_front(&begins, NAME_TEXT_MAX);
        if begins == self.tools.last_error {
            self.tools.same_errors += 1;
        } else {
            self.tools.last_error = begins;
            self.tools.same_errors = 1;
        }
    }
}

/// Bytes of an id of a task, at least. A shorter text can be a part of other words.
const TASK_BYTES_MIN: usize = 4;

/// Returns the content of a tag.
fn tagged<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

/// Returns a text without the numbers that a tool puts in front of the lines of a file.
fn without_line_numbers(text: &str) -> Cow<'_, str> {
    let lines: Option<Vec<&str>> = text.lines().map(numbered).collect();
    lines.map_or(Cow::Borrowed(text), |it| Cow::Owned(it.join("\n")))
}

/// Returns a line behind its number.
fn numbered(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start().split_once(['\t', '\u{2192}'])?;
    number.bytes().all(|b| b.is_ascii_digit()).then_some(rest)
}

/// Returns a compact hash of a call id.
fn call_hash(id: &str) -> u64 {
    u64::from_le_bytes(checksum(&[id.as_bytes()]))
}

fn outcome(result: &ToolResult<'_>, code: Option<i32>) -> CommandOutcome {
    if result.is_denied() {
        CommandOutcome::Denied
    } else if result.error || result.interrupted || !result.denial.is_empty() {
        CommandOutcome::Failed
    } else if result.background {
        CommandOutcome::Background
    } else if code.is_some_and(|code| code != 0) {
        CommandOutcome::Failed
    } else {
        CommandOutcome::Succeeded
    }
}

/// Returns the output of a command without the line that contains its exit code.
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

/// Parses `Exit code 101`, a separate line before the output.
fn leading_code(line: &str) -> Option<i32> {
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    line.strip_prefix("Exit code ")?.trim().parse().ok()
}
