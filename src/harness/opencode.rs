//! OpenCode 1.18.33, through the plugin that `policyd install --harness opencode` writes. OpenCode
//! has no command hooks, so the plugin uses the plain protocol and applies the response.
//!
//! - A blocked stop sends its reason as the next prompt of the session.
//! - The plugin interface has no hook for permission requests.
//! - Context after a tool is appended to the tool's output.

use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;
use serde_json::Value;

use super::client_event::{ClientEvent, moment};
use super::codex::name_files;
use super::plain::{BLOCK, CONTEXT, HARNESS as PLAIN, INPUT, NOTICE};
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
};

const MOMENTS: [ClientEvent; 6] = [
    moment("session.created", EventKind::SessionStart, &[&NOTICE]),
    moment("chat.message", EventKind::UserPromptSubmit, &[&NOTICE]),
    moment("tool.execute.before", EventKind::PreToolUse, &[&BLOCK, &INPUT, &NOTICE]),
    moment("tool.execute.after", EventKind::PostToolUse, &[&CONTEXT, &NOTICE]),
    moment("session.idle", EventKind::Stop, &[&BLOCK, &NOTICE]),
    moment("session.error", EventKind::StopFailure, &[&NOTICE]),
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "opencode",
    title: "OpenCode",
    moments: &MOMENTS,
    tools: &[
        ("bash", "Bash"),
        ("write", "Write"),
        ("edit", "Edit"),
        ("patch", "Edit"),
        ("apply_patch", "Edit"),
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
    // The plugin passes its name on the command line.
    signs: |_| false,
    variable: "",
    process: ProcessSigns {
        variables: &["OPENCODE", "OPENCODE_PID", "OPENCODE_RUN_ID"],
        programs: &["opencode"],
        packages: &["opencode-ai"],
    },
    // The plugin knows whether it is in `opencode run`.
    absence: AbsenceSigns { field: "attended", ..AbsenceSigns::NONE },
    reports_blocks: false,
    variable_files: &[],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::OpenCode,
        directory: TranscriptDirectory::OfPlugin("opencode"),
    }),
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |moment, payload| {
        let judged = (PLAIN.neutral)(moment, payload);
        let is_patch = payload.get("tool_name").is_some_and(|it| it == "apply_patch");
        if let Some(Value::Object(input)) = payload.get_mut("tool_input").filter(|_| is_patch) {
            let patch = input.get("patchText").cloned().unwrap_or_default();
            input.insert("patch".to_owned(), patch);
            name_files(input);
        }
        judged
    },
    ..PLAIN
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_files_of_a_patch_are_named() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Delete File: .env\n";
        let mut payload = json!({"tool": "apply_patch", "input": {"patchText": patch}});
        let before = HARNESS.moment("tool.execute.before").unwrap();
        assert!((HARNESS.neutral)(before, payload.as_object_mut().unwrap()));
        assert_eq!(payload["tool_input"]["file_paths"], json!(["a.rs", ".env"]));
        assert_eq!(payload["tool_input"]["patch"], patch);
    }
}
