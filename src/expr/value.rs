//! The value of an expression.

use rhai::Dynamic;

/// The value of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
}

impl Value {
    /// A value of the engine's; nothing for one that no expression may have.
    pub(super) fn of(value: Dynamic) -> Option<Self> {
        if let Ok(value) = value.as_bool() {
            return Some(Self::Bool(value));
        }
        if let Ok(value) = value.as_int() {
            return Some(Self::Int(value));
        }
        // A fraction is only ever compared or shown.
        if let Ok(value) = value.as_float() {
            return Some(Self::Text(value.to_string()));
        }
        if value.is_string() {
            return value.into_string().ok().map(Self::Text);
        }
        let items = value.into_array().ok()?;
        let texts = items.into_iter().map(|it| it.into_string().ok());
        texts.collect::<Option<Vec<_>>>().map(Self::Texts)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Texts(values) => f.write_str(&values.join(", ")),
        }
    }
}
