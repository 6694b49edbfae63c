//! Facts: the content of a session's transcript, bounded in size and independent of the client.
//!
//! Contains: the values. Does not contain: the fold that computes them (`fold`), the analysis of command lines
//! (the crate `policyd-shell`), rules, files and clocks.
//!
//! ```
//! use policyd_facts::event::EventKind;
//!
//! let stop = EventKind::find("stop").unwrap();
//! assert!(stop.is_stop() && !stop.is_before_call());
//! ```

pub mod call_subject;
pub mod command;
pub mod compiled;
pub mod complete;
pub mod cursor;
pub mod event;
pub mod fold;
pub mod lens;
pub mod lines;
pub mod merge;
pub mod meters;
pub mod record;
mod task_names;
mod text_block;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

pub use command::{CommandOutcome, CommandVerdict, ShellCommand};
use meters::Meters;
pub use policyd_expr::lazy;
pub use policyd_shell::program::Program;
pub use policyd_shell::{call, covers, glob, pattern, shell};

/// All facts of one transcript: of the main chain, or of a subagent's own file. `limits` bounds
/// every collection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Whether the facts belong to a subagent. In its own transcript every record is a side chain.
    pub sidechain: bool,
    /// Number of ingested lines, plus one for each further tool call in a line. Every `seq` is a
    /// value of this counter, and each tool call has its own.
    pub seq: u64,
    /// Lines that were not JSON, too long or of an unknown shape.
    pub lines_skipped: u64,
    /// Messages without a session id in a transcript whose client writes one. Another program wrote
    /// them.
    pub lines_foreign: u64,
    /// Whether a message contained its session id.
    pub session_named: bool,
    /// Prompts of the user.
    pub prompts: Prompts,
    /// Messages of the agent.
    pub messages: Messages,
    /// Tool calls of any type.
    pub tools: Tools,
    pub commands: Commands,
    /// Edited files, the most recently edited last.
    pub files: Vec<EditedFile>,
    /// Position of the last edit of a file whose edits changed nothing together, or 0. Known at a
    /// stop only.
    pub undone_seq: u64,
    /// Matches of content patterns in edited text that have not been removed since.
    pub findings: Vec<Finding>,
    pub todos: Todos,
    pub tokens: Tokens,
    /// Bytes of prompts and messages since the last compaction.
    pub history_bytes: u64,
    /// Compactions of the context.
    pub compactions: Marks,
    /// Last known git branch. Empty if unknown.
    pub branch: String,
    /// Branch of the last record that contained one. Records repeat it, so only a change overrides
    /// a branch that a command printed since.
    pub branch_recorded: String,
    /// Last known working directory. Empty if unknown.
    pub folder: String,
    /// Last known permission mode. Empty if unknown.
    pub permission_mode: String,
    /// Skills that were invoked, each with the position of the last time.
    pub skills: BTreeMap<String, u64>,
    /// Skills that the user named without loading them.
    pub skills_asked: BTreeSet<String>,
    /// Tool calls without a result, oldest first.
    pub pending: Vec<PendingTool>,
    /// Tool calls that continue in the background, oldest first.
    pub background: Vec<PendingTool>,
    /// Commands that were started in the background, oldest first. Later calls read their output.
    pub background_runs: Vec<BackgroundRun>,
    /// Hashes of the ids of the last tool calls that ended, oldest first.
    pub ended: Vec<u64>,
    /// Reports of subagents, oldest first.
    pub subagents: Vec<SubagentReport>,
    /// The newest call that started a subagent, by the type of the subagent.
    pub agents: BTreeMap<String, LatestCall>,
    /// Position of the last turn that ended without a stop, because a user interrupted it or the
    /// API failed, or 0.
    pub cut_off_seq: u64,
    /// Blocks of policyd since the last prompt of the user.
    pub feedback: Feedback,
    /// Position of the last stop that the client recorded, or 0.
    pub stop_seq: u64,
    /// Payload time of the last stop hook that the client recorded, in milliseconds,
    /// or 0.
    pub stop_sent_at: u64,
}

/// Stops that policyd blocked, as the transcript shows them: the reasons that the client passed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Number of blocks.
    pub blocks: u32,
    /// Number of tool calls of the session at the last block.
    pub tools: u64,
}

/// A subagent whose result the agent received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SubagentReport {
    /// Id of the subagent.
    pub agent: String,
    /// Position of the newest report.
    pub seq: u64,
}

/// The newest tool call of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatestCall {
    /// Position of the call.
    pub seq: u64,
    /// How it ended.
    pub outcome: CommandOutcome,
    /// The fields [`record::wire::KEPT_FIELDS`] of its input, each cut at `INPUT_FIELD_BYTES_MAX`.
    pub input: BTreeMap<String, String>,
}

/// Count of occurrences, and position of the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    pub count: u64,
    /// Position of the last occurrence, or 0.
    pub last_seq: u64,
}

/// Prompts of the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompts {
    pub count: u64,
    /// Number of prompts before the last compaction.
    pub before_compaction: u64,
    /// The first prompts.
    pub first: Vec<Prompt>,
    /// The last prompts that are not among the first.
    pub last: Vec<Prompt>,
    /// `promptId` of the newest prompt that the user did not write, such as a task notification.
    pub injected_id: String,
}

/// One prompt of the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    pub seq: u64,
    /// `promptId`, otherwise the record's `uuid`.
    pub id: String,
    /// Text, cut at `MESSAGE_TEXT_MAX`.
    pub text: String,
}

/// Messages of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// Number of text blocks.
    pub count: u64,
    /// The last messages, newest last.
    pub last: Vec<Message>,
}

/// One text block of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub seq: u64,
    /// The end of the text, at most `MESSAGE_TEXT_MAX` bytes.
    pub text: String,
}

/// Counters of tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    pub total: u64,
    /// Calls by tool name.
    pub by_name: BTreeMap<String, u64>,
    /// Results that were errors.
    pub failed: u64,
    /// Beginning of the last error since the last compaction.
    pub last_error: String,
    /// Number of consecutive errors with this beginning, whatever succeeded between them.
    pub same_errors: u64,
    /// Calls that a user, a rule or a hook denied.
    pub denied: u64,
    /// Calls that hooks saw and the transcript does not show. Known at a stop only.
    pub unseen: u64,
    /// The newest call of each tool that the lens names.
    pub latest: BTreeMap<String, LatestCall>,
    /// Name of the newest call.
    pub last_name: String,
    /// Position of the newest call.
    pub last_seq: u64,
}

/// A tool call without a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PendingTool {
    /// Id of the tool call.
    pub id: String,
    pub name: String,
    /// Position of the call.
    pub seq: u64,
    /// Subject of a `TaskCreate`, whose result will contain the id; otherwise empty.
    pub subject: String,
    /// State to restore if the call did not edit.
    pub edited: Vec<EditUndo>,
    /// Session of a running command, or the session that the call polls; otherwise empty.
    pub session: String,
    /// Position of the command in the background whose output the call reads, or 0.
    pub reads: u64,
}

/// A command that was started in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRun {
    /// Id of the client, which is also in the name of the file with the output.
    pub task: String,
    /// Id of the call that started it.
    pub call: String,
    /// Position of that call.
    pub seq: u64,
}

/// State of a file before an edit without a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EditUndo {
    pub path: String,
    /// The file's facts before the edit, if it was edited before.
    pub before: Option<EditedFile>,
    /// Findings that the edit removed.
    pub removed: Vec<Finding>,
    /// Whether the edit created or replaced the whole file.
    pub whole: bool,
}

/// Shell commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    pub total: u64,
    /// The last commands, newest last.
    pub recent: Vec<Rc<ShellCommand>>,
    /// Counters by command class.
    pub by_kind: BTreeMap<String, Rc<KindFacts>>,
}

/// Counters of all commands of one class, including commands that were removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KindFacts {
    /// Number of commands.
    pub count: u64,
    /// Number of commands with a `failed` verdict.
    pub failed: u64,
    /// Position of the last command that passed, or 0.
    pub last_passed_seq: u64,
    /// Position of the last command that failed, or 0.
    pub last_failed_seq: u64,
    /// Position of the last command that was denied, or 0.
    pub last_denied_seq: u64,
    /// Command line of the last command that passed.
    pub last_passed_text: String,
    /// Failures of the last command that failed: names of tests, or its last line.
    pub failures: Vec<String>,
    /// Failures of commands before the first edit.
    pub failures_before: BTreeSet<String>,
    /// The newest command.
    pub last: Rc<ShellCommand>,
}

/// One edited file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EditedFile {
    /// Path as the tool received it.
    pub path: String,
    /// Number of edits.
    pub edits: u64,
    /// Number of writes that created or replaced the whole file.
    pub written: u64,
    /// Position of the first edit.
    pub first_seq: u64,
    /// Position of the last edit.
    pub last_seq: u64,
    /// Tool of the last edit.
    pub tool: String,
    /// File classes that the path matches.
    pub kinds: BTreeSet<String>,
    /// Positions of the last edits, oldest first.
    pub edited_at: Vec<u64>,
    /// Changes that no later edit reverted: hashes of the removed and of the added text, oldest
    /// first. Empty: all edits together changed nothing.
    pub open_changes: Vec<(u64, u64)>,
}

/// A match of a content pattern in an edited file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the pattern in the lens.
    pub pattern: String,
    pub path: String,
    /// The matching line, trimmed.
    pub excerpt: String,
    /// Position of the edit.
    pub seq: u64,
}

/// The todo list: the newest `TodoWrite`, or the result of all `TaskCreate` and `TaskUpdate` calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Todos {
    /// Whether any todo tool was used.
    pub seen: bool,
    /// Items in order.
    pub items: Vec<Todo>,
    /// Position of the last change.
    pub last_seq: u64,
}

/// One item of the todo list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Todo {
    /// Task id. Empty for `TodoWrite`.
    pub id: String,
    pub content: String,
    /// `pending`, `in_progress`, `completed`, or another status that the tool wrote.
    pub status: String,
}

/// Token usage of the main chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    pub meters: Meters,
    /// Ids of the last counted API messages, so that their further blocks are not counted.
    pub counted: Vec<String>,
    /// Counted output tokens of the newest message.
    pub last_output: u64,
    /// Model of the last call, also if its client reports no tokens.
    pub called: String,
}
