//! Facts: what a session's transcript says happened, bounded in size, in the program's own words.
//! Lives here: the values. The fold that makes them is in `fold`, the shell reading in `shell`.
//! May not live here: what a policy thinks of them, files, clocks.

pub mod call;
pub mod command;
pub mod compiled;
pub mod complete;
pub mod covers;
pub mod cursor;
pub mod event;
pub mod fold;
pub mod glob;
pub mod lazy;
pub mod lens;
pub mod lines;
pub mod merge;
pub mod meters;
pub mod pattern;
pub mod record;
pub mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

pub use command::{Command, Outcome, Program, Verdict};
use meters::Meters;

/// Everything known of one transcript: of its main chain, or of a subagent's own file. Every collection is bounded by `limits`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Whether these are a subagent's facts: in its own transcript every record is a side chain.
    pub sidechain: bool,
    /// Lines absorbed so far, and one more for each further tool call in a line; every `seq` below
    /// is a value this counter had, and no two tool calls share one.
    pub seq: u64,
    /// Lines that were not JSON, too long or of no known shape.
    pub lines_skipped: u64,
    /// Messages without a session in a transcript whose client names it: another program wrote them.
    pub lines_foreign: u64,
    /// Whether a message named its session.
    pub session_named: bool,
    /// What humans asked.
    pub prompts: Prompts,
    /// What the agent said.
    pub messages: Messages,
    /// Tool calls of any kind.
    pub tools: Tools,
    /// Shell commands.
    pub commands: Commands,
    /// Files that were edited, most recently edited last.
    pub files: Vec<EditedFile>,
    /// Content patterns found in edited text and still standing.
    pub findings: Vec<Finding>,
    /// The todo list.
    pub todos: Todos,
    /// Token usage.
    pub tokens: Tokens,
    /// Bytes that humans and the agent said since the last compaction.
    pub history_bytes: u64,
    /// Context compactions: how many, and the last one's position.
    pub compactions: Marks,
    /// Git branch last seen, empty when unknown.
    pub branch: String,
    /// Branch the last record named. Records repeat it, so only a change of it is news against what
    /// a command said since.
    pub branch_recorded: String,
    /// Working folder last seen, empty when unknown.
    pub folder: String,
    /// Permission mode last seen in the transcript, empty when unknown.
    pub permission_mode: String,
    /// Skills invoked by name.
    pub skills: BTreeSet<String>,
    /// Skills a human asked for by name, without having the client load them.
    pub skills_asked: BTreeSet<String>,
    /// Tool calls whose result has not arrived, oldest first.
    pub pending: Vec<PendingTool>,
    /// Tool calls that continue in the background, oldest first.
    pub background: Vec<PendingTool>,
    /// Hashes of the ids of the last tool calls that ended, oldest first.
    pub ended: Vec<u64>,
    /// Where subagents reported back, oldest first.
    pub subagents: Vec<SubagentReport>,
    /// Position of the last stop that the client recorded, 0 when none.
    pub stop_seq: u64,
    /// Payload time of the last stop hook that the client recorded, in milliseconds, 0 when none.
    pub stop_sent_at: u64,
}

/// A subagent whose result the agent received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SubagentReport {
    /// Id of the subagent.
    pub agent: String,
    /// Position of the newest report.
    pub seq: u64,
}

/// A count and the position of its last occurrence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// How many.
    pub count: u64,
    /// `seq` of the last one, 0 when none.
    pub last_seq: u64,
}

/// Human prompts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompts {
    /// How many.
    pub count: u64,
    /// How many of them were there when the context was last compacted.
    pub before_compaction: u64,
    /// The first ones.
    pub first: Vec<Prompt>,
    /// The last ones that are not among the first.
    pub last: Vec<Prompt>,
    /// `promptId` of the newest prompt that no human wrote (task notifications and the like).
    pub injected_id: String,
}

/// One human prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Position.
    pub seq: u64,
    /// `promptId`, or the record's `uuid` where there is none.
    pub id: String,
    /// Text, cut at the bound.
    pub text: String,
}

/// Assistant messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// How many text blocks.
    pub count: u64,
    /// The last ones, newest last.
    pub last: Vec<Message>,
}

/// One assistant text block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Position.
    pub seq: u64,
    /// Text, its end kept when cut.
    pub text: String,
}

/// Tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    /// Calls.
    pub total: u64,
    /// Calls by tool name.
    pub by_name: BTreeMap<String, u64>,
    /// Results that were errors.
    pub failed: u64,
    /// How the last result that was an error began, since the last compaction.
    pub last_error: String,
    /// Errors in a row that began so, whatever succeeded in between.
    pub same_errors: u64,
    /// Calls refused by a human, a rule or a hook.
    pub denied: u64,
    /// Calls that hooks saw and the transcript does not show; known at a stop only.
    pub unseen: u64,
    /// Name of the newest call.
    pub last_name: String,
    /// Position of the newest call.
    pub last_seq: u64,
}

/// A tool call without a result yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PendingTool {
    /// `tool_use` id.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Position of the call.
    pub seq: u64,
    /// Subject of a `TaskCreate`, to be completed by the id in its result; else empty.
    pub subject: String,
    /// What to restore should the call turn out not to have edited.
    pub edited: Vec<EditUndo>,
    /// Session of a command that still runs, or that the call looks at; else empty.
    pub session: String,
}

/// How a file stood before an edit whose result is awaited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EditUndo {
    /// The file.
    pub path: String,
    /// What was known of it, if it had been edited before.
    pub before: Option<EditedFile>,
    /// Findings that the edit removed.
    pub removed: Vec<Finding>,
    /// Whether it made or replaced the file as a whole.
    pub whole: bool,
}

/// Shell commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    /// How many.
    pub total: u64,
    /// The last ones, newest last.
    pub recent: Vec<Rc<Command>>,
    /// Per command kind of the lens.
    pub by_kind: BTreeMap<String, Rc<KindFacts>>,
}

/// What is known of all commands of one kind, however long ago they ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KindFacts {
    /// How many ran.
    pub count: u64,
    /// How many failed by verdict.
    pub failed: u64,
    /// Position of the last one that passed, 0 when none.
    pub last_passed_seq: u64,
    /// Position of the last one that failed, 0 when none.
    pub last_failed_seq: u64,
    /// The newest one.
    pub last: Rc<Command>,
}

/// One edited file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EditedFile {
    /// Path as the tool was given it.
    pub path: String,
    /// Edits so far.
    pub edits: u64,
    /// How often a whole-file write made or replaced it.
    pub written: u64,
    /// Position of the first edit.
    pub first_seq: u64,
    /// Position of the last edit.
    pub last_seq: u64,
    /// Tool of the last edit.
    pub tool: String,
    /// File kinds of the lens that its path matches.
    pub kinds: BTreeSet<String>,
}

/// A content pattern that stands in an edited file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the pattern in the lens.
    pub pattern: String,
    /// The file.
    pub path: String,
    /// The line it was found in, trimmed.
    pub excerpt: String,
    /// Position of the edit.
    pub seq: u64,
}

/// The todo list: the newest `TodoWrite`, or the sum of `TaskCreate` and `TaskUpdate`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Todos {
    /// Whether any todo tool was used.
    pub seen: bool,
    /// Items in their order.
    pub items: Vec<Todo>,
    /// Position of the last change.
    pub last_seq: u64,
}

/// One todo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Todo {
    /// Task id, empty for `TodoWrite`.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress`, `completed`, or whatever the tool said.
    pub status: String,
}

/// Token usage of the main chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// What is counted.
    pub meters: Meters,
    /// Ids of the last API messages counted, so that their further blocks are not.
    pub counted: Vec<String>,
    /// Output of the newest of them, as far as it was counted.
    pub last_output: u64,
    /// The model that was called last, also where its client counts no tokens.
    pub called: String,
}
