//! OpenCode, through the plugin that `policyd install --harness opencode` writes: it knows no command
//! hooks, so the plugin speaks the plain protocol and does what is answered.
//!
//! - It cannot keep a session from ending: a stop takes a note to the user only.
//! - What follows a tool is put behind its output, for the agent to read.

use super::plain::{ALLOW, ASK, BLOCK, CONTEXT, HARNESS as PLAIN, INPUT, NOTICE};
use super::{Harness, Moment, moment};

const MOMENTS: [Moment; 7] = [
    moment("session.created", "session_start", &[&NOTICE]),
    moment("chat.message", "user_prompt_submit", &[&NOTICE]),
    moment("tool.execute.before", "pre_tool_use", &[&BLOCK, &INPUT, &NOTICE]),
    moment("permission.ask", "permission_request", &[&ALLOW, &ASK, &BLOCK, &NOTICE]),
    moment("tool.execute.after", "post_tool_use", &[&CONTEXT, &NOTICE]),
    moment("session.idle", "stop", &[&NOTICE]),
    moment("session.error", "stop_failure", &[&NOTICE]),
];

/// The row.
pub const HARNESS: Harness = Harness {
    name: "opencode",
    title: "OpenCode",
    moments: &MOMENTS,
    tools: &[
        ("bash", "Bash"),
        ("write", "Write"),
        ("edit", "Edit"),
        ("patch", "Edit"),
        ("read", "Read"),
        ("glob", "Glob"),
        ("grep", "Grep"),
        ("list", "LS"),
        ("webfetch", "WebFetch"),
        ("todowrite", "TodoWrite"),
        ("task", "Agent"),
    ],
    inputs: &[
        ("filePath", "file_path"),
        ("oldString", "old_string"),
        ("newString", "new_string"),
        ("replaceAll", "replace_all"),
    ],
    // The plugin names itself on the command line.
    signs: |_| false,
    variable: "",
    neutral: |moment, payload| (PLAIN.neutral)(moment, payload),
    ..PLAIN
};
