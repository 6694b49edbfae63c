//! The row of a client: what its files say about it, and the search for its events and tools.

use serde_json::{Map, Value};

use policyd_facts::event::{EventKind, spelled_alike};
use policyd_facts::record::TranscriptFormat;

use super::claude_code;
use super::client_event::ClientEvent;
use super::response::Capability;

/// A client: a row of [`HARNESSES`](super::HARNESSES).
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
    /// Permission rules of the user that policyd reads before it answers a permission prompt.
    pub permission_rules: PermissionRules,
    /// Whether the client runs a hook of the user only after the user approved it there.
    pub approves_hooks: bool,
    /// Maximum bytes of a context that reaches the model unchanged.
    pub context_bytes_max: usize,
    /// Converts a payload to the neutral spelling, which is Claude Code's. Returns whether the
    /// event needs an evaluation.
    pub neutral: fn(&ClientEvent, &mut Map<String, Value>) -> bool,
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

/// Where a client has the permission rules of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionRules {
    /// Nowhere that policyd reads.
    Unread,
    /// `permissions` in the `settings.json` of Claude Code.
    ClaudeSettings,
    /// `rules/*.rules` of Codex.
    CodexRules,
}

/// Directory of the user's settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserFolder {
    /// Variable that names the directory; empty if the client has none.
    pub variable: &'static str,
    /// Name below the home directory.
    pub below_home: &'static str,
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
