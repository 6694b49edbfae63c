//! The content of one transcript line, in the words of no client.

use std::borrow::Cow;

use super::lenient::Either;
use super::output::Output;
use super::wire::Input;

/// Content of one transcript line.
#[derive(Debug, Default)]
pub struct Record<'a> {
    /// Git branch at that time. Empty if the line contains none.
    pub branch: Cow<'a, str>,
    /// Working directory. Empty if the line contains none.
    pub folder: Cow<'a, str>,
    /// Permission mode. Empty if the line contains none.
    pub permission_mode: Cow<'a, str>,
    /// Id of the message, if a later line with the same id replaces this one; otherwise empty.
    pub replaces: Cow<'a, str>,
    /// Whether a subagent wrote the line.
    pub sidechain: bool,
    /// Source of the line.
    pub origin: RecordOrigin<'a>,
    /// Whether the client writes the session id on each line of this type.
    pub names_session: bool,
    /// Entries in order.
    pub entries: Vec<RecordEntry<'a>>,
}

/// Source of a line. No fact depends on it.
#[derive(Debug, Default)]
pub struct RecordOrigin<'a> {
    /// Time as written. Empty if the line contains none.
    pub time: Cow<'a, str>,
    /// Session id. Empty if the line contains none.
    pub session: Cow<'a, str>,
    /// Subagent id. Empty if the line contains none.
    pub agent: Cow<'a, str>,
    /// Entry point of the client: `cli`, `sdk-cli`, …. Empty if the line contains none.
    pub entrypoint: Cow<'a, str>,
    /// Whether the line was copied from the session that this session was forked from.
    pub copied: bool,
}

/// One entry of the main chain.
#[derive(Debug)]
pub enum RecordEntry<'a> {
    /// A stop ended: a hook sent the agent back to work, or the client summarized its hooks.
    Stopped {
        /// Text with which a hook sent the agent back to work. `None` if no hook did.
        feedback: Option<Cow<'a, str>>,
    },
    /// The turn ended without a stop: the user interrupted it, or the API failed.
    CutOff,
    /// The user named a skill that the client did not load.
    Asked(Cow<'a, str>),
    /// The user sent a prompt.
    Prompt {
        /// `promptId`, otherwise `uuid`.
        id: Cow<'a, str>,
        /// Text of the prompt.
        text: Cow<'a, str>,
        /// Whether the user sent it while the agent was working.
        queued: bool,
    },
    /// A prompt that the user did not write.
    Injected { id: Cow<'a, str> },
    /// A text of the agent.
    Said(Cow<'a, str>),
    /// A tool call of the agent.
    Call {
        /// Id that the result will contain.
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Either<'a, Input<'a>>,
    },
    /// The result of a tool call.
    Result(ToolResult<'a>),
    /// An action that ended, and that might not have been recorded as a call. An action with the id
    /// of a call is that call.
    Done { name: Cow<'a, str>, input: Either<'a, Input<'a>>, result: ToolResult<'a> },
    /// The client is calling the stop hooks. All earlier lines are written.
    Stopping {
        /// Time of the hook payload, in milliseconds since 1970.
        sent_at: u64,
    },
    /// Token usage of an API call.
    Usage(TokenUse<'a>),
    /// The context was compacted.
    Compacted,
}

/// A tool call that an entry contains.
#[derive(Debug, Clone, Copy)]
pub enum EntryCall<'e, 'a> {
    /// The agent called a tool. Its result is another entry.
    Begun { id: &'e str, name: &'e str },
    /// An action that ended.
    Ended { name: &'e str, input: &'e Either<'a, Input<'a>>, result: &'e ToolResult<'a> },
}

impl<'a> RecordEntry<'a> {
    /// Returns the tool call that the entry contains, if any.
    #[must_use]
    pub fn call(&self) -> Option<EntryCall<'_, 'a>> {
        match self {
            Self::Call { id, name, .. } => Some(EntryCall::Begun { id, name }),
            Self::Done { name, input, result } => Some(EntryCall::Ended { name, input, result }),
            Self::Stopped { .. }
            | Self::Stopping { .. }
            | Self::CutOff
            | Self::Asked(_)
            | Self::Prompt { .. }
            | Self::Injected { .. }
            | Self::Said(_)
            | Self::Result(_)
            | Self::Usage(_)
            | Self::Compacted => None,
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Default)]
pub struct ToolResult<'a> {
    /// Id of the call.
    pub id: Cow<'a, str>,
    /// Text that the agent received.
    pub text: Output<'a>,
    /// Standard output, if the client separates it from standard error; otherwise empty.
    pub stdout: Output<'a>,
    /// Standard error, if the client separates it from standard output; otherwise empty.
    pub stderr: Output<'a>,
    /// Whether the client marked the result as an error.
    pub error: bool,
    /// Reason why the call was denied. Empty if it ran.
    pub denial: Cow<'a, str>,
    /// Whether the call was interrupted.
    pub interrupted: bool,
    /// Whether the call continues in the background.
    pub background: bool,
    /// Id by which later calls read the output of a command in the background; otherwise empty.
    pub background_task: Cow<'a, str>,
    /// Id of a task that the call created; otherwise empty.
    pub task_id: Cow<'a, str>,
    /// Id of the subagent that did the work; otherwise empty.
    pub agent: Cow<'a, str>,
    /// Session of a command that still runs; otherwise empty.
    pub running: Cow<'a, str>,
    /// Exit code, if the client stores it outside of the text.
    pub exit_code: Option<i32>,
}

/// Beginnings of results of denied calls, from versions before clients marked them.
const REFUSALS: [&str; 6] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user for tool use]",
    "Claude requested permissions",
    "Permission to use ",
    "PreToolUse:",
];

impl ToolResult<'_> {
    /// Returns whether the user or the client denied the call, so that it did not run.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let is_marked = !self.denial.is_empty() && self.denial != "interrupted";
        let is_refused = || {
            let text = self.text.first_line();
            REFUSALS.iter().any(|start| text.starts_with(start))
        };
        is_marked || (self.error && is_refused())
    }
}

/// Token usage of one API call.
#[derive(Debug, Default)]
pub struct TokenUse<'a> {
    /// Message id. Several blocks of one message repeat it.
    pub id: Cow<'a, str>,
    /// Model. Empty if the line contains none.
    pub model: Cow<'a, str>,
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
}
