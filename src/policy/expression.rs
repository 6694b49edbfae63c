//! Expressions of a policy, where they are written, and the texts that they choose between.

use serde::{Deserialize, Serialize};

use crate::deferred::Deferred;
use crate::script::Written;
use crate::script::plain::Kept;

/// Where something is written, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1, in characters.
    pub column: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A typed expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ToKeep")]
pub struct Expression {
    /// Its text, decoded.
    pub text: String,
    /// Where it is written.
    pub place: Deferred<Place>,
    /// Facts it reads.
    pub uses: Deferred<Vec<String>>,
    /// Whether it reads nothing but words, so that a blocker may not block on it.
    pub words_only: bool,
    /// Its plain form, where it comes from a compiled pack.
    pub kept: Kept,
}

/// An expression as a compiled pack keeps it.
#[derive(Serialize)]
struct ToKeep {
    text: String,
    place: Deferred<Place>,
    uses: Deferred<Vec<String>>,
    words_only: bool,
    kept: Kept,
}

impl From<Expression> for ToKeep {
    fn from(Expression { text, place, uses, words_only, .. }: Expression) -> Self {
        Self { kept: Kept::of(&text), text, place, uses, words_only }
    }
}

impl<'t> From<&'t Expression> for Written<'t> {
    fn from(it: &'t Expression) -> Self {
        Self { text: &it.text, kept: Some(&it.kept) }
    }
}

/// One of several texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Holds where this text is used; always, where absent.
    pub when: Option<Expression>,
    /// A template.
    pub text: String,
}

/// One text of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageChoice {
    /// The voice it belongs to; every voice, where absent.
    pub voice: Option<String>,
    /// When it is used, and the text.
    pub choice: Choice,
}
