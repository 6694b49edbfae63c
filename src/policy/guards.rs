//! Guards as meant: rules on any event that decide about it before it happens, or say something to it.

use serde::{Deserialize, Serialize};

use super::{Expression, Mode, Place};
use crate::deferred::Deferred;
use crate::facts::call::ProgramDatabase;
use crate::facts::event::EventKind;
use crate::facts::pattern::{CommandPattern, Initials};

/// All guards of a pack, and what they need to know of programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    /// The guards, in the order of the files.
    pub rules: Vec<Guard>,
    /// What is known of programs.
    pub knowledge: Deferred<ProgramDatabase>,
}

/// One guard. What is needed to see whether it is concerned stands outside of its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Its id.
    pub id: String,
    /// The set it belongs to: the name of its file without its ending.
    pub set: String,
    /// Events at which it is evaluated.
    pub on: Vec<EventKind>,
    /// Tools it looks at, by glob; all of them where there are none.
    pub tools: Vec<String>,
    /// Whether it looks at programs.
    pub of_programs: bool,
    /// Programs it looks at, one after the other.
    pub commands: Deferred<Vec<CommandPattern>>,
    /// First bytes of the names of those programs.
    pub initials: Initials,
    /// How far it is in force.
    pub mode: Mode,
    /// From this time on it is not judged, in milliseconds.
    pub expires_millis: Option<i64>,
    /// Whether one of its expressions looks at what the transcript tells.
    pub reads_transcript: bool,
    /// Whether one of its expressions looks at paths of files.
    pub reads_paths: bool,
    /// Whether it asks if a git work tree is clean.
    pub reads_tree: bool,
    /// Whether it asks where breakers stand, or what waits.
    pub reads_stores: bool,
    /// Whether it is silent where a call touches no file and sets no variable, whatever it runs.
    pub needs_effects: bool,
    /// What it asks and says.
    pub body: Deferred<GuardBody>,
}

/// What a guard asks and says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GuardBody {
    /// Holds where it fires; always, where absent.
    pub when: Option<Expression>,
    /// Holds where it does not fire all the same.
    pub unless: Option<Expression>,
    /// What it does.
    pub verb: Verb,
    /// What it says, a template.
    pub message: String,
    /// Fields of the tool's input that are put in place of its own, as templates.
    pub updated_input: Vec<(String, String)>,
    /// What it does where it cannot be told whether it fires.
    pub on_error: Fallback,
    /// Where it is written.
    pub place: Place,
}

/// What a guard does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// Lets it through without asking.
    Allow,
    /// Leaves it to somebody later.
    Defer,
    /// Asks the human.
    Ask,
    /// Refuses it.
    Block,
    /// Ends the session.
    Halt,
    /// Tells the agent something.
    Context,
    /// Replaces the secrets in the result of a tool before the agent reads it.
    Mask,
    /// Tells the user something.
    #[default]
    Warn,
}

impl Verb {
    /// How they are written; `deny` is `block`, as clients say it of a tool.
    pub const NAMES: &[&str] =
        &["allow", "deny", "ask", "defer", "block", "context", "mask", "warn", "halt"];

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "allow" => Self::Allow,
            "defer" => Self::Defer,
            "ask" => Self::Ask,
            "deny" | "block" => Self::Block,
            "halt" => Self::Halt,
            "context" => Self::Context,
            "mask" => Self::Mask,
            "warn" => Self::Warn,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Defer => "defer",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Halt => "halt",
            Self::Context => "context",
            Self::Mask => "mask",
            Self::Warn => "warn",
        }
    }
}

/// What a guard does where it cannot be told whether it fires; the weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fallback {
    /// Nothing.
    Allow,
    /// Tells the user.
    #[default]
    Warn,
    /// Asks the human.
    Ask,
    /// Refuses it.
    Block,
}

impl Fallback {
    /// How they are written.
    pub const NAMES: &[&str] = &["allow", "warn", "ask", "deny", "block"];

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "allow" => Self::Allow,
            "warn" => Self::Warn,
            "ask" => Self::Ask,
            "deny" | "block" => Self::Block,
            _ => return None,
        })
    }
}

/// The sets of guards that the built-in pack brings along, each a file that can be switched off.
pub const SETS: [&str; 5] = [
    "destructive-commands",
    "protected-paths",
    "secrets",
    "git-discipline",
    "network-exfiltration",
];

/// Files that hold guards.
pub const FILES: [&str; 6] = [
    "guards.yaml",
    "destructive-commands.yaml",
    "protected-paths.yaml",
    "secrets.yaml",
    "git-discipline.yaml",
    "network-exfiltration.yaml",
];

/// The set that a file belongs to: its name without folder and ending.
#[must_use]
pub fn set_of(file: &str) -> &str {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    base.strip_suffix(".yaml").unwrap_or(base)
}
