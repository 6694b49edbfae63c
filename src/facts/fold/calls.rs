//! Tool calls: counts them, stores them until their result arrives, and passes them to their
//! subject.

use std::collections::BTreeMap;

use super::super::compiled::CompiledMatchers;
use super::super::record::decode_input;
use super::super::record::lenient::Either;
use super::super::record::wire::Input;
use super::super::{BackgroundRun, CommandOutcome, Facts, LatestCall, PendingTool, Tools};
use super::{cut, masked_front, push_bounded};
use policyd_base::limits::{
    INPUT_FIELD_BYTES_MAX, LATEST_CALLS_MAX, NAME_TEXT_MAX, PENDING_TOOLS_MAX, TOOL_NAMES_MAX,
};
use policyd_shell::call::shape;
use policyd_shell::vocabulary::ShellVocabulary;

/// Codex's tool that polls a command that runs in a session.
pub(super) const POLL: &str = "write_stdin";

impl Facts {
    pub(super) fn call(
        &mut self,
        id: &str,
        name: &str,
        input: &Either<'_, Input<'_>>,
        lens: &CompiledMatchers,
    ) {
        let name = cut(name, NAME_TEXT_MAX);
        self.reopen(id);
        self.tools.count(name, self.seq);
        let empty = Input::default();
        let decoded;
        let (input, text) = match input {
            Either::One(input) => (input.as_ref(), ""),
            // Copilot and Codex write the input as JSON inside a string.
            Either::Text(text) => {
                decoded = decode_input(text).unwrap_or_default();
                (&decoded, text.as_ref())
            }
            Either::Many(_) | Either::None => (&empty, ""),
        };
        let edited = if lens.is_edit_tool(name) || writes_files(name, input, lens) {
            self.edit_call(name, input, text, lens)
        } else if lens.is_shell_tool(name) {
            self.command_call(name, input, lens)
        } else {
            self.todo_call(name, input);
            if name == "Skill" || name == "skill" {
                self.skill(&input.skill);
            }
            Vec::new()
        };
        self.keep_latest(name, input, lens);
        let subject = if name == "TaskCreate" { &*input.subject } else { "" };
        let session = if name == POLL { &*input.session_id } else { "" };
        let pending = PendingTool {
            id: cut(id, NAME_TEXT_MAX).to_owned(),
            name: name.to_owned(),
            seq: self.seq,
            subject: masked_front(subject, NAME_TEXT_MAX),
            edited,
            session: cut(session, NAME_TEXT_MAX).to_owned(),
            reads: self.read_by(input),
        };
        push_bounded(&mut self.pending, pending, PENDING_TOOLS_MAX);
    }
}

impl Facts {
    /// Returns the position of the command in the background whose output a call reads, or 0. The call names the task, or the
    /// file with its output.
    fn read_by(&self, input: &Input<'_>) -> u64 {
        if self.background_runs.is_empty() {
            return 0;
        }
        let command = input.command.text();
        let reads = |it: &&BackgroundRun| {
            [&*input.task_id, &*input.session_id].contains(&it.task.as_str())
                || [&*input.file_path, command].iter().any(|text| text.contains(&it.task))
        };
        self.background_runs.iter().rev().find(reads).map_or(0, |it| it.seq)
    }

    /// Keeps a call as the newest one of its tool, if the lens names the tool, and of the type of the subagent that it starts.
    fn keep_latest(&mut self, name: &str, input: &Input<'_>, lens: &CompiledMatchers) {
        let is_kept = lens.lens().kept_calls.contains(name);
        let starts_agent = lens.lens().agent_tools.iter().any(|it| it == name);
        let agent = if starts_agent { cut(&input.subagent_type, NAME_TEXT_MAX) } else { "" };
        if !is_kept && agent.is_empty() {
            return;
        }
        let fields = input.kept_fields();
        let fields = fields.map(|(name, text)| (name, masked_front(text, INPUT_FIELD_BYTES_MAX)));
        let call = LatestCall {
            seq: self.seq,
            outcome: CommandOutcome::Pending,
            input: fields.map(|(name, text)| (name.to_owned(), text)).collect(),
        };
        let keep = |all: &mut BTreeMap<String, LatestCall>, name: &str, call: LatestCall| {
            if all.contains_key(name) || all.len() < LATEST_CALLS_MAX {
                all.insert(name.to_owned(), call);
            }
        };
        if !agent.is_empty() {
            keep(&mut self.agents, agent, call.clone());
        }
        if is_kept {
            keep(&mut self.tools.latest, name, call);
        }
    }

    /// Returns the files that a tool call would edit, as the fold records them. `input` is the JSON
    /// of the tool input.
    #[must_use]
    pub fn edited_paths(tool: &str, input: &str, lens: &CompiledMatchers) -> Vec<String> {
        let Some(decoded) = decode_input(input) else { return Vec::new() };
        if lens.is_shell_tool(tool) {
            return super::commands::edited_paths(&decoded, lens);
        }
        if !lens.is_edit_tool(tool) && !writes_files(tool, &decoded, lens) {
            return Vec::new();
        }
        // The content is not searched: only the paths count here.
        let edits = Self::default().edit_call(tool, &decoded, "", &CompiledMatchers::default());
        edits.into_iter().map(|it| it.path).collect()
    }
}

/// Returns whether a tool that the vocabulary does not list writes files, by its name and input.
fn writes_files(name: &str, input: &Input<'_>, lens: &CompiledMatchers) -> bool {
    let names_file = !input.file_path.is_empty() || !input.path.is_empty();
    let has_edits = input.edits.elements().next().is_some();
    let has_content = has_edits
        || [&input.content, &input.new_string, &input.input].iter().any(|it| !it.is_empty());
    names_file
        && !lens.is_shell_tool(name)
        && shape::writes_files(name, has_content, lens.tool_words())
}

impl Tools {
    fn count(&mut self, name: &str, seq: u64) {
        self.total += 1;
        name.clone_into(&mut self.last_name);
        self.last_seq = seq;
        let known = self.by_name.contains_key(name) || self.by_name.len() < TOOL_NAMES_MAX;
        let key = if known { name } else { "other" };
        match self.by_name.get_mut(key) {
            Some(count) => *count += 1,
            None => {
                self.by_name.insert(key.to_owned(), 1);
            }
        }
    }
}
