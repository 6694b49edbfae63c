//! Types of expressions, and the names a pack defines that expressions may use.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::record::Shape;

/// Type of an expression or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Type {
    /// The names an expression starts with.
    Global,
    /// `true` or `false`
    Bool,
    /// A whole number
    Int,
    /// A number with a fraction; it is compared, and no more
    Decimal,
    /// Text
    Text,
    /// A list of texts
    Texts,
    /// The event
    Event,
    /// The session
    Session,
    /// The transcript
    Transcript,
    /// Tool calls
    Tools,
    /// Shell commands
    Commands,
    /// One shell command
    Command,
    /// Commands of one kind
    CommandKind,
    /// Edited files
    Files,
    /// Findings in edited text
    Findings,
    /// The todo list
    Todos,
    /// Token usage
    Tokens,
    /// Text patterns
    Patterns,
    /// Preferences
    Preferences,
    /// Probes
    Probes,
    /// One probe
    Probe,
    /// Circuit breakers
    Breakers,
    /// Dead letters
    DeadLetters,
    /// Questions to humans
    Escalations,
    /// One circuit breaker
    Breaker,
    /// Signals that wait
    Signals,
    /// How full the context is
    Context,
    /// What the session remembers
    State,
    /// The clock
    Now,
    /// The consideration that is being judged
    Rule,
    /// What was decided
    Outcome,
    /// Excuses in the agent's last text
    Rationalizations,
    /// The tool call that is about to happen
    Call,
    /// One program that it would start
    Invocation,
    /// Places of files that a program is given
    Places,
    /// The record that the rules of one file speak of
    Record,
    /// Unknown after an error, so that one cause gives one finding.
    Any,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Bool => "true-or-false",
            Self::Int => "number",
            Self::Decimal => "decimal",
            Self::Text => "text",
            Self::Texts => "list of texts",
            Self::Event => "event",
            Self::Session => "session",
            Self::Transcript => "transcript",
            Self::Tools => "tools",
            Self::Commands => "commands",
            Self::Command => "command",
            Self::CommandKind => "command kind",
            Self::Files => "files",
            Self::Findings => "findings",
            Self::Todos => "todos",
            Self::Tokens => "tokens",
            Self::Patterns => "patterns",
            Self::Preferences => "prefs",
            Self::Probes => "probes",
            Self::Probe => "probe",
            Self::Breakers => "breakers",
            Self::DeadLetters => "dead_letter",
            Self::Escalations => "escalations",
            Self::Breaker => "breaker",
            Self::Signals => "signals",
            Self::Context => "context",
            Self::State => "state",
            Self::Now => "now",
            Self::Rule => "rule",
            Self::Outcome => "outcome",
            Self::Rationalizations => "rationalizations",
            Self::Call => "action",
            Self::Invocation => "program",
            Self::Places => "paths",
            Self::Record => "record",
            Self::Any => "anything",
        })
    }
}

/// What kind of name a text argument must be, so that a typo in it is found at load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Any text.
    Free,
    /// A command kind of the vocabulary.
    CommandKind,
    /// A file kind of the vocabulary.
    FileKind,
    /// A content pattern of the vocabulary.
    Content,
    /// A text pattern of the vocabulary.
    Text,
    /// A tier of the context.
    Tier,
    /// A regular expression.
    Regex,
}

/// What kind of evidence a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Neither: modes, limits, settings.
    Neutral,
    /// Somebody's words. A blocker does not block on these alone.
    Words,
    /// A command, a file, a todo, a probe: something that happened.
    Structure,
}

impl Type {
    /// Whether a value of this type can be shown; the others only have members.
    #[must_use]
    pub const fn is_shown(self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Decimal | Self::Text | Self::Texts)
    }
}

/// Names a pack defines that expressions may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Command kinds.
    pub command_kinds: BTreeSet<String>,
    /// File kinds.
    pub file_kinds: BTreeSet<String>,
    /// Content patterns.
    pub contents: BTreeSet<String>,
    /// Text patterns.
    pub texts: BTreeSet<String>,
    /// Preferences.
    pub preferences: BTreeSet<String>,
    /// Probes.
    pub probes: BTreeSet<String>,
    /// Session types.
    pub session_types: BTreeSet<String>,
    /// Forges.
    pub forges: BTreeSet<String>,
    /// Tiers of the context.
    pub tiers: BTreeSet<String>,
    /// Whether a vocabulary could not be read: then no name is taken for unknown.
    pub incomplete: bool,
    /// The record that expressions speak of; where there is one, they see nothing else.
    pub record: Option<Arc<Shape>>,
}

impl Names {
    /// The names that a text argument of this kind may be; nothing where it is no name.
    #[must_use]
    pub const fn of(&self, domain: Domain) -> Option<&BTreeSet<String>> {
        match domain {
            Domain::CommandKind => Some(&self.command_kinds),
            Domain::FileKind => Some(&self.file_kinds),
            Domain::Content => Some(&self.contents),
            Domain::Text => Some(&self.texts),
            Domain::Tier => Some(&self.tiers),
            Domain::Free | Domain::Regex => None,
        }
    }
}
