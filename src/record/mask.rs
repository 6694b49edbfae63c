//! Secrets in JSON that is stored, logged, or shown are replaced by a mark. What a secret is, is in `source::secrets`.

use std::borrow::Cow;

use serde_json::Value;

pub use policyd_yaml::secrets::{MARK, mask, mask_quoted};
use policyd_yaml::secrets::{mask_words, secrets};

/// Masks every text within a JSON value, and whatever stands under the name of a secret; returns
/// how many there were.
pub fn mask_json(value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            let (Cow::Owned(masked), count) = mask(text) else { return 0 };
            *text = masked;
            count
        }
        Value::Array(items) => {
            // A list of texts may be a command line.
            let words = items.iter_mut().map(|it| match it {
                Value::String(text) => Some(text),
                Value::Null | Value::Bool(_) | Value::Number(_) => None,
                Value::Array(_) | Value::Object(_) => None,
            });
            match words.collect::<Option<Vec<&mut String>>>() {
                Some(mut words) => mask_words(&mut words),
                None => items.iter_mut().map(mask_json).sum(),
            }
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &mut Value)| {
                let named = value.as_str().is_some_and(|it| mask(it).1 == 0 && is_secret(name, it));
                if named {
                    *value = MARK.into();
                }
                if named { 1 } else { mask_json(value) }
            };
            fields.iter_mut().map(field).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Whether a field of this name with this text holds a secret.
fn is_secret(name: &str, text: &str) -> bool {
    !secrets(&format!("{name}={text}")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_marked_and_counted_once() {
        for (text, expected, count) in [
            ("PGPASSWORD=hunter2 psql", "PGPASSWORD=«masked» psql", 1),
            ("a://b:cde@f token: ghijk", "a://b:«masked»@f token: «masked»", 2),
            (r#"{"token": "abcdef"}"#, r#"{"token": "«masked»"}"#, 1),
            ("nothing to hide", "nothing to hide", 0),
        ] {
            let (masked, found) = mask(text);
            assert_eq!((masked.as_ref(), found), (expected, count), "{text}");
            assert_eq!(mask(expected), (Cow::Borrowed(expected), 0), "masked twice: {expected}");
        }
    }

    #[test]
    fn json_is_masked_by_text_and_by_name() {
        let mut value =
            json!({"a": ["PASSWORD=abcdef"], "token": "abcdef", "tokens": 7, "key": "x1"});
        assert_eq!(mask_json(&mut value), 2);
        assert_eq!(
            value,
            json!({"a": ["PASSWORD=«masked»"], "token": MARK, "tokens": 7, "key": "x1"})
        );
    }
}
