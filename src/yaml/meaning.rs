//! What a scalar means: nothing, a truth value, a number or text. `serde_yaml` decides what may be
//! a number, so that this tree cannot disagree with a typed reader of the same file.

use super::{Scalar, ScalarStyle};

/// What a scalar means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meaning {
    /// Nothing: `key:`, `~`, `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text,
}

/// Whether `scalar` means nothing: what is asked of most.
#[must_use]
#[inline]
pub fn is_nothing(scalar: &Scalar) -> bool {
    scalar.style == ScalarStyle::Plain
        && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
}

/// What `scalar` means. Quoted and block scalars are text.
#[must_use]
pub fn meaning(scalar: &Scalar) -> Meaning {
    let text = scalar.text.as_str();
    if scalar.style != ScalarStyle::Plain {
        return Meaning::Text;
    }
    if is_nothing(scalar) {
        return Meaning::Null;
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "tTfF+-.".contains(first)) {
        return Meaning::Text; // Nothing below begins so.
    }
    match text {
        "true" | "True" | "TRUE" => return Meaning::Bool(true),
        "false" | "False" | "FALSE" => return Meaning::Bool(false),
        _ if !may_be_no_text(text) => return Meaning::Text,
        _ => {}
    }
    if let Some(value) = small_number(text) {
        return Meaning::Int(value);
    }
    match serde_yaml::from_str::<serde_yaml::Value>(text) {
        Ok(serde_yaml::Value::Null) => Meaning::Null,
        Ok(serde_yaml::Value::Bool(value)) => Meaning::Bool(value),
        Ok(serde_yaml::Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Meaning::Int(value),
            (None, Some(value)) => Meaning::Number(value),
            (None, None) => Meaning::Text,
        },
        Ok(
            serde_yaml::Value::String(_)
            | serde_yaml::Value::Sequence(_)
            | serde_yaml::Value::Mapping(_)
            | serde_yaml::Value::Tagged(_),
        )
        | Err(_) => Meaning::Text,
    }
}

/// A number as most are written: a few digits, no zero before them.
fn small_number(text: &str) -> Option<i64> {
    let plain = text.len() < 10 && text.bytes().all(|it| it.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    if plain && !padded { text.parse().ok() } else { None }
}

/// Whether the YAML reader has to be asked: most scalars are words, options or sentences. A text of
/// dashes and dots alone would be read as a document marker when it stands alone.
fn may_be_no_text(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let possible = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.chars().all(possible)
        && !text.chars().all(|c| c == '-' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Meaning {
        meaning(&Scalar { text: text.to_owned(), style: ScalarStyle::Plain, indent: 0 })
    }

    #[test]
    fn plain_words_mean_what_serde_yaml_says() {
        assert_eq!(plain(""), Meaning::Null);
        assert_eq!(plain("~"), Meaning::Null);
        assert_eq!(plain("NULL"), Meaning::Null);
        assert_eq!(plain("True"), Meaning::Bool(true));
        assert_eq!(plain("0x10"), Meaning::Int(16));
        assert_eq!(plain("-7"), Meaning::Int(-7));
        assert_eq!(plain("0.5"), Meaning::Number(0.5));
        assert_eq!(plain("18446744073709551615"), Meaning::Number(18_446_744_073_709_551_615.0));
        for text in ["yes", "on", "no", "0755", "1_000", "12:30", "---", "...", "-", "true && x"] {
            assert_eq!(plain(text), Meaning::Text, "{text}");
        }
    }

    #[test]
    fn words_are_read_as_serde_yaml_reads_them() {
        let words = ["null", "Null", "true", "FALSE", "nul", "t", "truth", "nan", "nULL", "True"];
        let numbers = ["0", "7", "10", "007", "1234567890", "1e3", "0x1f", ".5", ".inf", "12s"];
        for word in words.into_iter().chain(numbers) {
            for text in [format!("-{word}"), format!("+{word}"), format!("~{word}"), word.into()] {
                let theirs: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
                let ours = match plain(&text) {
                    Meaning::Null => serde_yaml::Value::Null,
                    Meaning::Bool(value) => value.into(),
                    Meaning::Int(value) => value.into(),
                    Meaning::Number(value) => value.into(),
                    Meaning::Text => text.as_str().into(),
                };
                assert_eq!(ours, theirs, "{text}");
            }
        }
    }

    #[test]
    fn quoted_scalars_are_text() {
        let scalar =
            Scalar { text: "true".to_owned(), style: ScalarStyle::DoubleQuoted, indent: 0 };
        assert_eq!(meaning(&scalar), Meaning::Text);
    }
}
