//! Codex CLI 0.169.0. Its output schemas are strict: it ignores a response with an unknown key, or
//! a block without a reason, and runs the tool.
//!
//! - `ask`, `allow` without a changed input, and `continue: false` before a tool let the tool run.
//! - The client does not limit the blocks of a stop. Only the block limiter ends them.
//! - A stop takes no context. A block after a tool replaces its result.
//! - A context of more than 2,500 tokens is moved to a file, unless the hook line has an
//!   `additionalContextLimit`.
//! - `Interrupt` reports that the user stopped the agent. No other client has such an event, so the
//!   response is empty.
//! - A patch names its files in its text, from which they are parsed.

use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;
use policyd_facts::shell::quote;
use serde_json::{Map, Value};

use super::claude_code::{
    ASKS_ANYWAY, BLOCK, CONTEXT, DENY, GRANT, HALT, INPUT_ALLOWED, NOTICE, REFUSE,
};
use super::client_event::{ClientEvent, moment, unmapped};
use super::payload_fields::rename;
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
    UserFolder,
};

/// Maximum bytes of a context that is not moved to a file: 2,500 tokens of about 4 bytes, minus a
/// reserve.
const CONTEXT_BYTES_MAX: usize = 9_500;

const MOMENTS: [ClientEvent; 12] = [
    moment("SessionStart", EventKind::SessionStart, &[&CONTEXT, &NOTICE]),
    moment("UserPromptSubmit", EventKind::UserPromptSubmit, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment("PreToolUse", EventKind::PreToolUse, &[&DENY, &INPUT_ALLOWED, &CONTEXT, &NOTICE]),
    moment(
        "PermissionRequest",
        EventKind::PermissionRequest,
        &[&GRANT, &ASKS_ANYWAY, &REFUSE, &NOTICE],
    ),
    moment("PostToolUse", EventKind::PostToolUse, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment("PreCompact", EventKind::PreCompact, &[&NOTICE]),
    moment("PostCompact", EventKind::PostCompact, &[&NOTICE]),
    moment("SubagentStart", EventKind::SubagentStart, &[&CONTEXT, &NOTICE]),
    moment("SubagentStop", EventKind::SubagentStop, &[&BLOCK, &HALT, &NOTICE]),
    moment("Stop", EventKind::Stop, &[&BLOCK, &HALT, &NOTICE]),
    moment("SessionEnd", EventKind::SessionEnd, &[]),
    unmapped("Interrupt"),
];

/// Directory of the user's settings.
pub const USER_FOLDER: UserFolder = UserFolder { variable: "CODEX_HOME", below_home: ".codex" };

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "codex",
    title: "Codex CLI",
    moments: &MOMENTS,
    tools: &[
        ("shell", "Bash"),
        ("local_shell", "Bash"),
        ("exec_command", "Bash"),
        ("unified_exec", "Bash"),
        ("apply_patch", "Edit"),
        ("update_plan", "TodoWrite"),
        ("web_search", "WebSearch"),
        ("write_stdin", "BashOutput"),
        ("view_image", "Read"),
    ],
    inputs: &[],
    silence: "{}",
    signs: |payload| {
        let has = |key: &str| payload.contains_key(key);
        let begins = payload.get("hook_event_name").is_some_and(|it| it == "SessionStart");
        has("model") && (has("turn_id") || (begins && has("permission_mode")))
    },
    variable: "",
    process: ProcessSigns {
        variables: &[
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_THREAD_ID",
            "CODEX_CI",
        ],
        programs: &[
            "codex",
            "codex-exec",
            "codex-linux-sandbox",
            "codex-x86_64-unknown-linux-musl",
            "codex-aarch64-unknown-linux-musl",
            "codex-x86_64-apple-darwin",
            "codex-aarch64-apple-darwin",
        ],
        packages: &["@openai/codex"],
    },
    // Neither payloads nor variables tell `codex exec` from the terminal.
    absence: AbsenceSigns { commands: &["exec", "e", "review"], ..AbsenceSigns::NONE },
    reports_blocks: true,
    variable_files: &[],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::Codex,
        directory: TranscriptDirectory::OfClient("sessions"),
    }),
    permission_rules: PermissionRules::CodexRules,
    approves_hooks: true,
    context_bytes_max: CONTEXT_BYTES_MAX,
    neutral: |_, payload| {
        // A continued stop keeps its turn; a prompt begins a new turn.
        rename(payload, "turn_id", "prompt_id");
        let tool = payload.get("tool_name").and_then(Value::as_str).unwrap_or_default();
        let patches = matches!(tool, "apply_patch" | "Edit" | "Write");
        if let Some(Value::Object(input)) = payload.get_mut("tool_input") {
            join_command(input);
            if patches {
                name_files(input);
            }
        }
        true
    },
};

/// Converts a list of arguments to a command line: the script of `bash -lc`, otherwise the quoted
/// words.
fn join_command(input: &mut Map<String, Value>) {
    rename(input, "cmd", "command");
    let Some(Value::Array(words)) = input.get("command") else { return };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    let line = match words.as_slice() {
        [shell, "-c" | "-lc", script] if shell.ends_with("sh") => (*script).to_owned(),
        _ => words.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" "),
    };
    input.insert("command".to_owned(), line.into());
}

/// Adds the files of a patch: the first as `file_path`, all of them as `file_paths`.
pub(super) fn name_files(input: &mut Map<String, Value>) {
    let text = ["command", "input", "patch"].iter().find_map(|it| input.get(*it)?.as_str());
    let Some(text) = text else { return };
    const MARKS: [&str; 4] =
        ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let lines = text.lines().map(str::trim);
    let files = lines.filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)));
    let files: Vec<String> = files.map(|it| it.trim().to_owned()).collect();
    if let Some(first) = files.first() {
        input.entry("file_path").or_insert_with(|| first.as_str().into());
        input.insert("file_paths".to_owned(), files.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_and_patches_are_read() {
        let neutral = |mut payload: Value| {
            let fields = payload.as_object_mut().unwrap();
            assert!((HARNESS.neutral)(HARNESS.moment("PreToolUse").unwrap(), fields));
            payload["tool_input"].clone()
        };
        let shell = |command: Value| {
            neutral(json!({"tool_name": "shell", "tool_input": {"command": command}}))["command"]
                .clone()
        };
        assert_eq!(shell(json!(["bash", "-lc", "rm -rf x | cat"])), "rm -rf x | cat");
        assert_eq!(shell(json!(["rm", "-rf", "my dir", "it's"])), r"rm -rf 'my dir' 'it'\''s'");
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: .env\n";
        let input = neutral(json!({"tool_name": "apply_patch", "tool_input": {"command": patch}}));
        assert_eq!(input["file_path"], "src/a.rs");
        assert_eq!(input["file_paths"], json!(["src/a.rs", ".env"]));
    }
}
