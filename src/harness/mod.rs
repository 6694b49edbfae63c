//! Harnesses: the coding-agent clients that call policyd, as tables. What each calls its events and
//! tools, what can be said to it at each event, and in which fields. Rendering, the checks of lint,
//! `install`, `doctor` and the docs read these rows; a harness is one file and one row.
//! Lives here: what a row is, and how rows are found. No decision, no wire text.

pub mod claude_code;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod droid;
pub mod gemini;
pub mod opencode;
pub mod plain;

use serde_json::{Map, Value};

use crate::facts::event::{EventKind, spelled_alike};

/// Something that can be said to a client at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Let through without asking the user.
    Allow,
    /// Leave it to somebody later: the run ends, the call waits.
    Defer,
    /// Ask the human.
    Ask,
    /// Refuse; continue a stop.
    Block,
    /// End the session.
    Halt,
    /// Tell the agent something beside what it does, without keeping it going.
    Context,
    /// Change the input of the tool.
    Input,
    /// Change the result of the tool before the agent reads it.
    Output,
    /// Tell the user.
    Notice,
}

impl Ability {
    /// Every ability.
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

    /// Stable name.
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

/// What is put into a field of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// This text.
    Text(&'static str),
    /// This flag.
    Flag(bool),
    /// Why it was decided so.
    Reason,
    /// What the user is told.
    Notice,
    /// What the agent is told.
    Context,
    /// The changed input of the tool.
    Input,
    /// The changed result of the tool.
    Output,
}

/// A field of an answer: its path, names joined by dots, and what is put there. Without a path it is
/// printed as it is, in place of an object, where nothing is decided.
pub type Field = (&'static str, Put);

/// How something is said.
#[derive(Debug, PartialEq, Eq)]
pub struct Way {
    /// What.
    pub says: Ability,
    /// In which fields; none where silence says it.
    pub fields: &'static [Field],
}

/// One event of a harness.
#[derive(Debug, PartialEq, Eq)]
pub struct Moment {
    /// The client's name of it, on the wire and in its settings.
    pub native: &'static str,
    /// The neutral kind; nothing for an event that has none: it gets an empty answer.
    pub kind: Option<EventKind>,
    /// What can be said, and how.
    pub ways: &'static [&'static Way],
}

impl Moment {
    /// How something is said here; nothing where it cannot be.
    #[must_use]
    pub fn way(&self, ability: Ability) -> Option<&'static Way> {
        self.ways.iter().find(|it| it.says == ability).copied()
    }

    /// The value of `--hook` for this event; empty if it has no neutral kind.
    #[must_use]
    pub fn hook_name(&self) -> String {
        self.kind.map(|kind| kind.name().replace('_', "-")).unwrap_or_default()
    }

    /// Whether something can be said here.
    #[must_use]
    pub fn can(&self, ability: Ability) -> bool {
        self.way(ability).is_some()
    }
}

/// By what the processes of a client are recognized, and those that it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct ProcessSigns {
    /// Variables that it sets for the commands that it runs, and that no terminal of a human has.
    pub variables: &'static [&'static str],
    /// Names of its program file, and of the script that an interpreter runs.
    pub programs: &'static [&'static str],
    /// Directories that contain its program, as they are in the path of it.
    pub packages: &'static [&'static str],
}

/// A harness: a row of [`HARNESSES`].
#[derive(Debug)]
pub struct Harness {
    /// Name on the command line.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Its events.
    pub moments: &'static [Moment],
    /// Its names of tools beside the neutral ones, which are Claude Code's.
    pub tools: &'static [(&'static str, &'static str)],
    /// Its names of the inputs of file tools beside the neutral ones.
    pub inputs: &'static [(&'static str, &'static str)],
    /// What is written where there is nothing to say.
    pub silence: &'static str,
    /// Whether a payload is surely one of this harness.
    pub signs: fn(&Map<String, Value>) -> bool,
    /// A variable that only this harness sets for its hooks; none where it is empty.
    pub variable: &'static str,
    /// By what its processes are recognized.
    pub process: ProcessSigns,
    /// Puts a payload into the neutral spelling, which is Claude Code's; says whether there is
    /// anything to judge.
    pub neutral: fn(&Moment, &mut Map<String, Value>) -> bool,
}

/// Every harness, those first whose payloads are told by their signs.
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

const fn moment(native: &'static str, kind: EventKind, ways: &'static [&'static Way]) -> Moment {
    Moment { native, kind: Some(kind), ways }
}

/// An event of a client that no neutral event represents.
const fn unmapped(native: &'static str) -> Moment {
    Moment { native, kind: None, ways: &[] }
}

/// Moves a field to its neutral name, where that is free.
fn rename(fields: &mut Map<String, Value>, native: &str, neutral: &str) {
    if let Some(value) = fields.shift_remove(native) {
        fields.entry(neutral).or_insert(value);
    }
}

/// An object that came as its JSON text becomes that object.
fn unpack(fields: &mut Map<String, Value>, name: &str) {
    let inner = fields.get(name).and_then(Value::as_str);
    if let Some(Ok(value @ Value::Object(_))) = inner.map(serde_json::from_str) {
        fields.insert(name.to_owned(), value);
    }
}

/// The harness of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Harness> {
    HARNESSES.into_iter().find(|it| it.name == name)
}

/// Whose payload this is: by its signs, else by a variable, else Claude Code's.
#[must_use]
pub fn detect(payload: &Map<String, Value>, is_set: &dyn Fn(&str) -> bool) -> &'static Harness {
    let signed = HARNESSES.into_iter().find(|it| (it.signs)(payload));
    let set = || HARNESSES.into_iter().find(|it| !it.variable.is_empty() && is_set(it.variable));
    signed.or_else(set).unwrap_or(&claude_code::HARNESS)
}

/// Whether any client has an event of this name, its own or the neutral one.
#[must_use]
pub fn knows_event(name: &str) -> bool {
    EventKind::find(name).is_some() || HARNESSES.iter().any(|it| it.moment(name).is_some())
}

impl Harness {
    /// The event of this name, the client's or the neutral one, in any spelling.
    #[must_use]
    pub fn moment(&self, name: &str) -> Option<&'static Moment> {
        if spelled_alike(name, "") {
            return None;
        }
        let native = self.moments.iter().find(|it| it.native == name);
        let spelled = || self.moments.iter().find(|it| spelled_alike(it.native, name));
        native.or_else(spelled).or_else(|| self.moment_of(EventKind::find(name)?))
    }

    /// Where a neutral event is reported; the first of several.
    #[must_use]
    pub fn moment_of(&self, kind: EventKind) -> Option<&'static Moment> {
        self.moments.iter().find(|it| it.kind == Some(kind))
    }

    /// Whether something can be said at a neutral event.
    #[must_use]
    pub fn can(&self, kind: EventKind, ability: Ability) -> bool {
        self.moment_of(kind).is_some_and(|it| it.can(ability))
    }

    /// Bytes of a context that reaches the model in one piece.
    #[must_use]
    pub fn context_bytes_max(&self) -> usize {
        if self.name == codex::HARNESS.name { codex::CONTEXT_BYTES_MAX } else { usize::MAX }
    }

    /// Whether a tool, by its neutral name, is one of those whose inputs have own names.
    #[must_use]
    pub fn has_own_inputs(tool: &str) -> bool {
        matches!(tool, "Read" | "Write" | "Edit")
    }

    /// Whether a tool is known by its name: one of the client's, a neutral one, or one of an MCP server.
    #[must_use]
    pub fn knows_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|(own, _)| *own == name)
            || claude_code::TOOLS.contains(&name)
            || name.starts_with("mcp_")
    }

    /// The neutral name of a tool: `Bash` for `run_shell_command`.
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
    fn events_are_found_in_any_spelling() {
        let claude = &claude_code::HARNESS;
        for spelling in ["PreToolUse", "pre_tool_use", "pre-tool-use"] {
            assert_eq!(claude.moment(spelling).map(|it| it.native), Some("PreToolUse"));
        }
        assert_eq!(claude.moment("pretool"), None);
    }
}
