//! Clients (harnesses) that call policyd, as tables: their names of events and tools, and the
//! response fields that they support at each event. Rendering, lint, `install`, `doctor` and the
//! documentation read these rows.
//!
//! Contains: the shape of a row, and the search for rows. Does not contain: decisions and wire
//! text.
//!
//! ```
//! let claude = policyd_harness::find("claude-code").unwrap();
//! assert!(claude.moment("PreToolUse").is_some());
//! assert!(policyd_harness::knows_event("stop"));
//! ```

pub mod claude_code;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod droid;
pub mod gemini;
pub mod opencode;
pub mod plain;

use serde_json::{Map, Value};

use policyd_facts::event::{EventKind, spelled_alike};
use policyd_facts::record::TranscriptFormat;

/// Directory of the user's settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserFolder {
    /// Variable that names the directory; empty if the client has none.
    pub variable: &'static str,
    /// Name below the home directory.
    pub below_home: &'static str,
}

/// Part of a response that a client can support at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Allow without asking the user.
    Allow,
    /// Defer: the run ends, and the call waits.
    Defer,
    /// Ask the user.
    Ask,
    /// Block a call, or continue a stop.
    Block,
    /// End the session.
    Halt,
    /// Add text for the agent, without making it continue.
    Context,
    /// Change the input of the tool.
    Input,
    /// Change the result of the tool before the agent reads it.
    Output,
    /// Display a text to the user.
    Notice,
}

impl Capability {
    /// All capabilities.
    pub const ALL: [Self; 9] = [
        Self::Allow,
        Self::Defer,
        Self::Ask,
        Self::Block,
        Self::Halt,
        Self::Context,
        Self::Input,
        Self::Output,
        Self::Notice,
    ];

    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Defer => "defer",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Halt => "halt",
            Self::Context => "context",
            Self::Input => "updated_input",
            Self::Output => "updated_output",
            Self::Notice => "notice",
        }
    }
}

/// Value of a response field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseField {
    /// A fixed text.
    Text(&'static str),
    /// A fixed flag.
    Flag(bool),
    /// Reason of the decision.
    Reason,
    /// Text for the user.
    Notice,
    /// Text for the agent.
    Context,
    /// Changed input of the tool.
    Input,
    /// Changed result of the tool.
    Output,
}

/// A response field: its path (names joined by dots) and its value. A value with an empty path is
/// printed as plain text instead of an object, without a decision.
pub type ResponseFieldRow = (&'static str, ResponseField);

/// How a client expresses one capability.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseTemplate {
    pub says: Capability,
    /// Fields of the response. Empty if an empty output expresses it.
    pub fields: &'static [ResponseFieldRow],
}

/// One event of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// The client's name of the event, in payloads and in its settings.
    pub native: &'static str,
    /// Neutral kind. `None`: the event has none and gets an empty response.
    pub kind: Option<EventKind>,
    /// Supported capabilities, with their fields.
    pub ways: &'static [&'static ResponseTemplate],
}

impl ClientEvent {
    /// Returns the fields of a capability. `None` if it is not supported here.
    #[must_use]
    pub fn way(&self, ability: Capability) -> Option<&'static ResponseTemplate> {
        self.ways.iter().find(|it| it.says == ability).copied()
    }

    /// Returns the value of `--hook` for this event. Empty if it has no neutral kind.
    #[must_use]
    pub fn hook_name(&self) -> String {
        self.kind.map(|kind| kind.name().replace('_', "-")).unwrap_or_default()
    }

    /// Returns whether a capability is supported here.
    #[must_use]
    pub fn can(&self, ability: Capability) -> bool {
        self.way(ability).is_some()
    }
}

/// Signs that identify the processes of a client and the processes that it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct ProcessSigns {
    /// Variables that the client sets for its commands and that a user's terminal does not have.
    pub variables: &'static [&'static str],
    /// File names of its program, and of the script that an interpreter runs.
    pub programs: &'static [&'static str],
    /// Directories in the path of its program.
    pub packages: &'static [&'static str],
}

/// How a client states that no user is present. A client that states nothing counts as attended: a question then
/// waits for an answer, and nothing is lost.
#[derive(Debug, PartialEq, Eq)]
pub struct AbsenceSigns {
    /// Variables in the environment of its hooks, each with the value that states it.
    pub variables: &'static [(&'static str, &'static str)],
    /// Field of its payloads that is `false` if no user is present. Empty for a client without such a field.
    pub field: &'static str,
    /// First operands of its program that make it run without a user.
    pub commands: &'static [&'static str],
    /// Options of its program that make it run without a user.
    pub options: &'static [&'static str],
}

impl AbsenceSigns {
    /// A client that never states it.
    pub const NONE: Self = Self { variables: &[], field: "", commands: &[], options: &[] };

    /// Returns whether arguments of the program, without its name, state that no user is present.
    #[must_use]
    pub fn are_in(&self, arguments: &[String]) -> bool {
        let words = || arguments.iter().map(String::as_str);
        let is_option =
            |word: &str| self.options.contains(&word.split_once('=').map_or(word, |it| it.0));
        words().take_while(|it| *it != "--").any(is_option) || self.is_command(words())
    }

    /// Returns whether the first operand is one of the commands. The word after an option can be its value.
    fn is_command<'w>(&self, words: impl Iterator<Item = &'w str>) -> bool {
        let mut is_value = false;
        for word in words {
            let is_option = word.starts_with('-');
            if !is_option && self.commands.contains(&word) {
                return true;
            }
            if !is_option && !is_value {
                return false;
            }
            is_value = is_option && !word.contains('=');
        }
        false
    }
}

/// Where a client records its sessions, and in which form.
#[derive(Debug, PartialEq, Eq)]
pub struct Transcripts {
    /// The reader of its lines.
    pub format: TranscriptFormat,
    /// The directory of all sessions.
    pub directory: TranscriptDirectory,
}

/// Directory in which a client records its sessions.
#[derive(Debug, PartialEq, Eq)]
pub enum TranscriptDirectory {
    /// Below the user's directory of the client.
    OfClient(&'static str),
    /// Below the user's state directory of policyd, whose plugin records the sessions.
    OfPlugin(&'static str),
}

/// A client: a row of [`HARNESSES`].
#[derive(Debug)]
pub struct Harness {
    /// Name on the command line.
    pub name: &'static str,
    /// Product name.
    pub title: &'static str,
    /// Events of the client.
    pub moments: &'static [ClientEvent],
    /// Its names of tools, with the neutral names, which are Claude Code's.
    pub tools: &'static [(&'static str, &'static str)],
    /// Its names of the inputs of file tools, with the neutral names.
    pub inputs: &'static [(&'static str, &'static str)],
    /// Output of an empty response.
    pub silence: &'static str,
    /// Returns whether a payload certainly belongs to this client.
    pub signs: fn(&Map<String, Value>) -> bool,
    /// Environment variable that only this client sets for its hooks. Can be empty.
    pub variable: &'static str,
    /// Signs of its processes.
    pub process: ProcessSigns,
    /// How it states that no user is present.
    pub absence: AbsenceSigns,
    /// Whether each stop after a block can be recognized without a state: by a flag that stays until the next
    /// prompt, or by the reason of the block in the transcript.
    pub reports_blocks: bool,
    /// Files of a project whose variables it gives to its hooks.
    pub variable_files: &'static [VariableFile],
    /// Where it records its sessions. `None`: no client with this protocol has a documented place.
    pub transcripts: Option<Transcripts>,
    /// Maximum bytes of a context that reaches the model unchanged.
    pub context_bytes_max: usize,
    /// Converts a payload to the neutral spelling, which is Claude Code's. Returns whether the
    /// event needs an evaluation.
    pub neutral: fn(&ClientEvent, &mut Map<String, Value>) -> bool,
}

/// A file that sets variables.
#[derive(Debug, Clone, Copy)]
pub struct VariableFile {
    /// Path in the project.
    pub path: &'static str,
    pub format: VariableFileFormat,
}

/// How a file sets variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableFileFormat {
    /// The object `env` of a JSON document.
    Settings,
    /// Lines `NAME=value`.
    Lines,
}

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

const fn moment(
    native: &'static str,
    kind: EventKind,
    ways: &'static [&'static ResponseTemplate],
) -> ClientEvent {
    ClientEvent { native, kind: Some(kind), ways }
}

/// Creates an event without a neutral kind.
const fn unmapped(native: &'static str) -> ClientEvent {
    ClientEvent { native, kind: None, ways: &[] }
}

/// Renames a field to its neutral name, if that is not used.
fn rename(fields: &mut Map<String, Value>, native: &str, neutral: &str) {
    if let Some(value) = fields.shift_remove(native) {
        fields.entry(neutral).or_insert(value);
    }
}

/// Replaces a field that contains JSON text by the parsed object.
fn unpack(fields: &mut Map<String, Value>, name: &str) {
    let inner = fields.get(name).and_then(Value::as_str);
    if let Some(Ok(value @ Value::Object(_))) = inner.map(serde_json::from_str) {
        fields.insert(name.to_owned(), value);
    }
}

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

impl Harness {
    /// Finds the event with this native or neutral name, in any spelling.
    #[must_use]
    pub fn moment(&self, name: &str) -> Option<&'static ClientEvent> {
        if spelled_alike(name, "") {
            return None;
        }
        let native = self.moments.iter().find(|it| it.native == name);
        let spelled = || self.moments.iter().find(|it| spelled_alike(it.native, name));
        native.or_else(spelled).or_else(|| self.moment_of(EventKind::find(name)?))
    }

    /// Returns the event that reports a neutral kind, the first of several.
    #[must_use]
    pub fn moment_of(&self, kind: EventKind) -> Option<&'static ClientEvent> {
        self.moments.iter().find(|it| it.kind == Some(kind))
    }

    /// Returns whether a capability is supported at a neutral kind of event.
    #[must_use]
    pub fn can(&self, kind: EventKind, ability: Capability) -> bool {
        self.moment_of(kind).is_some_and(|it| it.can(ability))
    }

    /// Returns whether the inputs of a tool, given by its neutral name, have client-specific names.
    #[must_use]
    pub fn has_own_inputs(tool: &str) -> bool {
        matches!(tool, "Read" | "Write" | "Edit")
    }

    /// Returns whether a tool name is known: of the client, neutral, or of an MCP server.
    #[must_use]
    pub fn knows_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|(own, _)| *own == name)
            || claude_code::TOOLS.contains(&name)
            || name.starts_with("mcp_")
    }

    /// Returns the neutral name of a tool: `Bash` for `run_shell_command`.
    #[must_use]
    pub fn tool<'a>(&self, native: &'a str) -> &'a str {
        self.tools.iter().find(|(own, _)| *own == native).map_or(native, |(_, neutral)| neutral)
    }
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
