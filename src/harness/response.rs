//! Parts of a response, and how a client expresses each of them.

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
