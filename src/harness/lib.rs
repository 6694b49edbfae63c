//! Clients (harnesses) that call policyd, as tables: their names of events and tools, and the
//! response fields that they support at each event. Rendering, lint, `install`, `doctor` and the
//! documentation read these rows.
//!
//! Contains: the table of rows, and the search for rows. Does not contain: decisions and wire text.
//!
//! ```
//! let claude = policyd_harness::find("claude-code").unwrap();
//! assert!(claude.moment("PreToolUse").is_some());
//! assert!(policyd_harness::knows_event("stop"));
//! ```

pub mod claude_code;
mod client_event;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod droid;
pub mod gemini;
pub mod opencode;
mod payload_fields;
pub mod plain;
mod response;
mod row;

use serde_json::{Map, Value};

use policyd_facts::event::EventKind;

pub use client_event::ClientEvent;
pub use response::{Capability, ResponseField, ResponseFieldRow, ResponseTemplate};
pub use row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
    UserFolder, VariableFile, VariableFileFormat,
};

/// All clients. Those whose payloads have signs come first.
pub const HARNESSES: [&Harness; 8] = [
    &cursor::HARNESS,
    &copilot::HARNESS,
    &droid::HARNESS,
    &gemini::HARNESS,
    &codex::HARNESS,
    &opencode::HARNESS,
    &plain::HARNESS,
    &claude_code::HARNESS,
];

/// Finds a client by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Harness> {
    HARNESSES.into_iter().find(|it| it.name == name)
}

/// Detects the client of a payload: by its signs, by a variable, or Claude Code by default.
#[must_use]
pub fn detect(payload: &Map<String, Value>, is_set: &dyn Fn(&str) -> bool) -> &'static Harness {
    let signed = HARNESSES.into_iter().find(|it| (it.signs)(payload));
    let set = || HARNESSES.into_iter().find(|it| !it.variable.is_empty() && is_set(it.variable));
    signed.or_else(set).unwrap_or(&claude_code::HARNESS)
}

/// Returns whether any client has an event with this native or neutral name.
#[must_use]
pub fn knows_event(name: &str) -> bool {
    EventKind::find(name).is_some() || HARNESSES.iter().any(|it| it.moment(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sound() {
        for harness in HARNESSES {
            assert_eq!(find(harness.name).map(|it| it.name), Some(harness.name));
            for moment in harness.moments {
                let mut says: Vec<_> = moment.ways.iter().map(|it| it.says).collect();
                says.sort_unstable();
                says.dedup();
                assert_eq!(says.len(), moment.ways.len(), "{}: twice", moment.native);
            }
        }
    }

    #[test]
    fn arguments_state_that_no_user_is_present() {
        let stated = |name: &str, line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            find(name).unwrap().absence.are_in(&arguments)
        };
        for (name, line, expected) in [
            ("codex", "exec --json", true),
            ("codex", "-m gpt-5 --config=a=b exec -", true),
            ("codex", "--search exec", true),
            ("codex", "e x", true),
            ("codex", "", false),
            ("codex", "resume exec", false),
            ("codex", "-m gpt-5", false),
            ("codex", "-p exec-profile hello exec", false),
            ("gemini", "-m x -p hello", true),
            ("gemini", "--prompt=hello", true),
            ("gemini", "-i -- -p", false),
            ("gemini", "--prompt-interactive hello", false),
            ("copilot", "-p hello --allow-all-tools", true),
            ("copilot", "--resume", false),
            ("cursor", "agent --print x", true),
            ("droid", "exec x", true),
            ("droid", "", false),
            ("claude-code", "-p x", false),
        ] {
            assert_eq!(stated(name, line), expected, "{name} {line}");
        }
    }

    #[test]
    fn events_are_found_in_any_spelling() {
        let claude = &claude_code::HARNESS;
        for spelling in ["PreToolUse", "pre_tool_use", "pre-tool-use"] {
            assert_eq!(claude.moment(spelling).map(|it| it.native), Some("PreToolUse"));
        }
        assert_eq!(claude.moment("pretool"), None);
    }
}
