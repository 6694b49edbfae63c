//! Values of expressions, as Rhai has them.

use rhai::{Dynamic, ImmutableString};

use super::FactError;

/// A text argument.
///
/// # Errors
/// The argument is missing, or is not a text.
pub fn text_argument(args: &[Dynamic], at: usize) -> Result<ImmutableString, FactError> {
    let value = args.get(at).ok_or("an argument is missing")?;
    value
        .clone()
        .into_immutable_string()
        .map_err(|found| format!("expected text, found {found}").into())
}

/// A count as the number type of expressions.
pub fn count(value: impl TryInto<i64>) -> Dynamic {
    Dynamic::from(value.try_into().unwrap_or(i64::MAX))
}

/// A list of texts.
pub fn texts<S: Into<String>>(items: impl IntoIterator<Item = S>) -> Dynamic {
    let items = items.into_iter().take(crate::limits::EXPRESSION_ARRAY_MAX);
    Dynamic::from_array(items.map(|it| Dynamic::from(it.into())).collect())
}
