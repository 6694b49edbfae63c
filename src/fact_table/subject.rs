//! The types of the table of facts, and the kinds of names that a pack defines.

use policyd_expr::table::NamedItems;
use policyd_expr::types::{Domain, NameClass, ObjectType, Type};

/// Declares an enum whose variants have a text each.
macro_rules! texts {
    ($(#[$doc:meta])* $name:ident, $text:ident: $($variant:ident $value:literal;)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $value, "`")] $variant,)+
        }

        impl $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            const fn $text(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }
    };
}

texts! {
    /// A type of values that have members, by its name in messages.
    Subject, name:
    Event "event";
    Session "session";
    Transcript "transcript";
    Tools "tools";
    Agents "agents";
    ToolCall "tool call";
    Commands "commands";
    Command "command";
    CommandKind "command kind";
    Files "files";
    Findings "findings";
    Todos "todos";
    Tokens "tokens";
    Patterns "patterns";
    Preferences "prefs";
    Probes "probes";
    Probe "probe";
    Breakers "breakers";
    DeadLetters "dead_letter";
    Escalations "escalations";
    Breaker "breaker";
    Signals "signals";
    Context "context";
    State "state";
    Costs "costs";
    Memory "memory";
    MemoryEntry "memory entry";
    Now "now";
    Rule "rule";
    Outcome "outcome";
    Rationalizations "rationalizations";
    Call "action";
    Invocation "program";
    Places "paths";
    FileTexts "texts of files";
    Project "project";
    JsonFile "JSON file";
}

impl Subject {
    /// Returns the type in expressions.
    #[must_use]
    pub const fn as_type(self) -> Type {
        Type::Object(ObjectType { number: self as u8, name: self.name() })
    }

    /// Returns the subject of a type; `None` for a type without an entry in the table of facts.
    #[must_use]
    pub fn from_type(value: Type) -> Option<Self> {
        let Type::Object(it) = value else { return None };
        Self::ALL.get(usize::from(it.number)).copied()
    }
}

texts! {
    /// A kind of name that a pack, policyd, or a client defines, by its name in messages.
    PackName, noun:
    CommandKind "command kind";
    FileKind "file kind";
    PathList "list of paths";
    Content "content pattern";
    Text "text pattern";
    Tier "tier of the context";
    Preference "preference";
    Probe "probe";
    MemoryEntry "entry of the memory";
    SessionType "session type";
    Forge "code host";
    Signal "signal";
    Excuse "rationalization";
    Alarm "alarm";
    Breaker "breaker";
    FailureClass "failure class";
    ErrorType "type of an error";
    ErrorName "error of a client";
    Trigger "trigger";
    Tool "tool";
    Program "program";
    Secret "class of secrets";
    IssuedSecret "class of issued secrets";
    PermissionMode "permission mode";
    SessionSource "beginning of a session";
    TimeZone "time zone";
    InputField "field of a tool call that is kept";
}

impl PackName {
    /// Returns the kind in expressions.
    #[must_use]
    pub const fn as_kind(self) -> NameClass {
        NameClass {
            number: self as u8,
            noun: self.noun(),
            is_foreign: matches!(self, Self::TimeZone),
        }
    }

    /// Returns the domain of arguments that are such names.
    #[must_use]
    pub const fn as_domain(self) -> Domain {
        Domain::Name(self.as_kind())
    }

    /// Returns the kind of name that a type check asks for.
    #[must_use]
    pub fn from_kind(kind: NameClass) -> Option<Self> {
        Self::ALL.get(usize::from(kind.number)).copied()
    }
}

/// Breakers have names of any text.
pub(super) const ITEMS: NamedItems = NamedItems {
    owner: Subject::Breakers.as_type(),
    result: Subject::Breaker.as_type(),
    noun: "breaker",
    example: "breakers[\"api/claude\"]",
};
