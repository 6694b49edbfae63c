//! The result of a rule in one logged decision, in one word: metrics, the index, and the dashboard use the same words.

/// Result of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleResult {
    /// The rule blocked a stop, a tool call, or another event.
    Blocked,
    /// The rule ended the work of the agent.
    Halted,
    /// The user was asked.
    Asked,
    /// The block limit let the agent stop although the check had not passed.
    Released,
    /// An allowance of the user let it pass.
    Overridden,
    /// The rule only observed, and would have blocked or asked.
    WouldBlock,
    /// The rule warned.
    Warned,
    /// The rule only logged.
    Logged,
    /// The rule allowed the tool call.
    Allowed,
    /// A value that the rule reads was unknown.
    Unknown,
    /// Any other effect, such as text for the agent.
    Other,
}

impl RuleResult {
    /// Every result, the strongest first.
    pub const ALL: [Self; 11] = [
        Self::Blocked,
        Self::Halted,
        Self::Asked,
        Self::Released,
        Self::Overridden,
        Self::WouldBlock,
        Self::Warned,
        Self::Logged,
        Self::Allowed,
        Self::Unknown,
        Self::Other,
    ];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Halted => "halted",
            Self::Asked => "asked",
            Self::Released => "released",
            Self::Overridden => "overridden",
            Self::WouldBlock => "would_block",
            Self::Warned => "warned",
            Self::Logged => "logged",
            Self::Allowed => "allowed",
            Self::Unknown => "unknown",
            Self::Other => "other",
        }
    }

    /// Returns the result of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Returns the result of a guard that decided.
    #[must_use]
    pub fn of_decision(decision: &str) -> Self {
        match decision {
            "block" => Self::Blocked,
            "halt" => Self::Halted,
            "ask" => Self::Asked,
            "allow" => Self::Allowed,
            "warn" => Self::Warned,
            _ => Self::Other,
        }
    }
}
