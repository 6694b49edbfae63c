//! Types of expressions, kinds of names, and kinds of evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// A type of the table of facts. It has members, and no value that can be shown.
    #[serde(skip)]
    Object(ObjectType),
    /// The record that the rules of one file speak of
    Record,
    /// Unknown after an error, so that one cause gives one finding.
    Any,
}

/// A type of the table of facts.
#[derive(Debug, Clone, Copy)]
pub struct ObjectType {
    /// Number in the table. Types with the same number are equal.
    pub number: u8,
    /// Name in messages.
    pub name: &'static str,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for ObjectType {}

impl PartialOrd for ObjectType {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectType {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Bool => "boolean",
            Self::Int => "number",
            Self::Decimal => "decimal",
            Self::Text => "text",
            Self::Texts => "list of texts",
            Self::Object(it) => it.name,
            Self::Record => "record",
            Self::Any => "anything",
        })
    }
}

impl Type {
    /// Whether a value of this type can be shown; the others only have members.
    #[must_use]
    pub const fn is_shown(self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Decimal | Self::Text | Self::Texts)
    }
}

/// What a text argument is, so that a typo in it is found at load, and lint knows what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Any text, and what the function compares with it.
    Text(TextMatch),
    /// A name that the pack defines.
    Name(NameClass),
    /// A regular expression.
    Regex,
}

/// How a function compares something with a text argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatch {
    /// It does not: a key, a text that is searched, or a separator.
    Not,
    /// The whole text.
    Whole,
    /// A part of the text.
    Part,
    /// The beginning of the text.
    Beginning,
    /// The end of the text.
    End,
    /// A glob over a word.
    Word,
    /// A glob over a path.
    Path,
    /// A command pattern.
    Command,
    /// An option of a program.
    Option,
    /// Each text of a list must be there.
    Each,
}

/// The form of the text that a fact is. A comparison with a text of another form is never true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Any text.
    Any,
    /// A day such as `2027-01-31`.
    Day,
    /// The local name of a branch, without `refs/heads/`.
    Branch,
    /// A host in lowercase, without a scheme.
    Host,
}

/// What a number counts or measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Lines of the transcript and tool calls before it.
    Position,
    /// Tokens of a whole context: thousands.
    ContextTokens,
    /// Percent; it can be more than 100.
    Percent,
    /// Percent of a whole: from 0 to 100.
    PercentOfWhole,
    /// A fraction from 0 to 1.
    Share,
    /// US cents.
    Cents,
    /// US dollars.
    Dollars,
    /// Another measure, such as seconds.
    Other,
    /// What a program prints, so that it can be anything.
    Unknown,
}

/// A kind of name that a pack defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameClass {
    /// Number among the kinds of the program.
    pub number: u8,
    /// What such a name is called in messages: `file kind`.
    pub noun: &'static str,
    /// Whether neither a pack nor policyd defines the names: then a similar name is not the one that was meant.
    pub is_foreign: bool,
}

/// What kind of evidence a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Neither: modes, limits, settings.
    Neutral,
    /// Prose of the agent or the user. A blocker does not block on prose alone.
    Words,
    /// A command, a file, a todo, a probe: something that happened.
    Structure,
}
