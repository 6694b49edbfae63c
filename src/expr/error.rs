//! Why an expression or one of its facts has no value.

use rhai::{Dynamic, EvalAltResult, Position};

/// Why a fact has no value. The text is one lower-case sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactError {
    /// The recorded inputs of a decision do not contain the fact.
    NotRecorded(String),
    /// The fact is not available, or was requested with an invalid argument.
    Unavailable(String),
    /// The owner has no such member. Load-time checks report this.
    NoMember(String),
}

impl std::fmt::Display for FactError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotRecorded(text) | Self::Unavailable(text) | Self::NoMember(text) => {
                f.write_str(text)
            }
        }
    }
}

impl From<String> for FactError {
    fn from(text: String) -> Self {
        Self::Unavailable(text)
    }
}

impl From<&str> for FactError {
    fn from(text: &str) -> Self {
        Self::Unavailable(text.to_owned())
    }
}

impl From<FactError> for Box<EvalAltResult> {
    fn from(error: FactError) -> Self {
        Self::new(EvalAltResult::ErrorRuntime(Dynamic::from(error), Position::NONE))
    }
}

/// What kind of error an expression failed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptErrorKind {
    /// The text is not one expression.
    Syntax,
    /// A value has a type that cannot be used.
    Type,
    /// A value grew beyond the limits of an expression.
    TooLarge,
    /// The recorded inputs of a decision do not contain a fact.
    NotRecorded,
    /// Anything else that went wrong during evaluation: an unavailable fact, an overflow, a limit.
    Evaluation,
}

/// What went wrong in an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Kind of the error: decisions depend on it, never on the message.
    pub kind: ScriptErrorKind,
    /// One lower-case sentence.
    pub message: String,
    /// Byte offset in the expression, if known.
    pub offset: Option<usize>,
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}

impl From<FactError> for ScriptError {
    fn from(error: FactError) -> Self {
        let kind = match error {
            FactError::NotRecorded(_) => ScriptErrorKind::NotRecorded,
            FactError::Unavailable(_) | FactError::NoMember(_) => ScriptErrorKind::Evaluation,
        };
        Self { kind, message: error.to_string(), offset: None }
    }
}
