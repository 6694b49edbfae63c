//! Expressions of a policy, their locations, and texts with conditions.

use serde::{Deserialize, Serialize};

use policyd_fact_table::ExprSource;
use policyd_fact_table::compiled::CompiledExpression;
use policyd_yaml::deferred::Lazy;

/// A location in a file of a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocation {
    /// The file.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1, in characters.
    pub column: u32,
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A typed expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// Text of the expression, without YAML quotes and escapes.
    pub text: String,
    /// Location of the expression.
    pub place: Lazy<SourceLocation>,
    /// Facts that the expression reads.
    pub uses: Lazy<Vec<String>>,
    /// Whether the expression reads prose only. A blocker must not block on prose.
    pub words_only: bool,
    /// Parsed form of the expression.
    pub compiled: CompiledExpression,
}

impl<'t> From<&'t Expression> for ExprSource<'t> {
    fn from(it: &'t Expression) -> Self {
        Self { text: &it.text, tree: it.compiled.tree() }
    }
}

/// One of several texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Condition of the text. `None`: always.
    pub when: Option<Expression>,
    /// A template.
    pub text: String,
}

/// One text of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageChoice {
    /// Voice of the text. `None`: every voice.
    pub voice: Option<String>,
    /// The text and its condition.
    pub choice: Choice,
}
