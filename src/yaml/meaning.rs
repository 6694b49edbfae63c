//! What a scalar means: nothing, a truth value, a number or text, by the core schema of YAML 1.2. Tests compare it with
//! `serde_yaml`, a typed reader of the same files.

use super::{Scalar, ScalarStyle};

/// Prefixes of numbers with another base than ten. The core schema has the first two.
const BASES: [(&str, u32); 3] = [("0x", 16), ("0o", 8), ("0b", 2)];
/// Size of the smallest number of 128 bits with a sign.
const LARGEST_NEGATIVE: u128 = 1 << 127;

/// What a scalar means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarSense {
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
pub fn meaning(scalar: &Scalar) -> ScalarSense {
    let text = scalar.text.as_str();
    if scalar.style != ScalarStyle::Plain {
        return ScalarSense::Text;
    }
    if is_nothing(scalar) {
        return ScalarSense::Null;
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "tTfF+-.".contains(first)) {
        return ScalarSense::Text; // Nothing below begins so.
    }
    match text {
        "true" | "True" | "TRUE" => return ScalarSense::Bool(true),
        "false" | "False" | "FALSE" => return ScalarSense::Bool(false),
        _ if !may_be_no_text(text) => return ScalarSense::Text,
        _ => {}
    }
    if let Some(value) = small_number(text) {
        return ScalarSense::Int(value);
    }
    number(text)
}

/// What a text means that begins as a number does.
fn number(text: &str) -> ScalarSense {
    let is_negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_padded = unsigned.len() > 1 && unsigned.starts_with('0');
    if is_padded && unsigned.bytes().all(|it| it.is_ascii_digit()) {
        return ScalarSense::Text;
    }
    match integer(unsigned).filter(|size| !is_negative || *size <= LARGEST_NEGATIVE) {
        Some(size) => whole(size, is_negative),
        None => float(text).map_or(ScalarSense::Text, ScalarSense::Number),
    }
}

/// What a whole number means. One that no 64 bits hold is text, as for `serde_yaml`.
fn whole(size: u128, is_negative: bool) -> ScalarSense {
    match (i64::try_from(size), is_negative) {
        (Ok(value), false) => ScalarSense::Int(value),
        (Ok(value), true) => ScalarSense::Int(value.saturating_neg()),
        (Err(_), true) if size == u128::from(i64::MIN.unsigned_abs()) => ScalarSense::Int(i64::MIN),
        (Err(_), false) => u64::try_from(size).map_or(ScalarSense::Text, large),
        (Err(_), true) => ScalarSense::Text,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number above the signed range is rounded, as `serde_yaml` rounds it"
)]
fn large(value: u64) -> ScalarSense {
    ScalarSense::Number(value as f64)
}

/// Returns a whole number without its sign. `None` if it is not one, or is too large for 128 bits.
fn integer(unsigned: &str) -> Option<u128> {
    let based = BASES
        .iter()
        .find_map(|(prefix, base)| unsigned.strip_prefix(prefix).map(|digits| (digits, *base)));
    let (digits, base) = based.unwrap_or((unsigned, 10));
    let is_signed = digits.starts_with('+');
    u128::from_str_radix(digits, base).ok().filter(|_| !is_signed)
}

/// Returns a finite number, an infinity, or `.nan`.
fn float(text: &str) -> Option<f64> {
    let unpositive = text.strip_prefix('+').unwrap_or(text);
    match unpositive {
        ".inf" | ".Inf" | ".INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => (unpositive == text).then_some(f64::NAN),
        _ => unpositive.parse().ok().filter(|it: &f64| it.is_finite()),
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
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> ScalarSense {
        meaning(&Scalar { text: text.to_owned(), style: ScalarStyle::Plain, indent: 0 })
    }

    /// What `serde_yaml` says of a document with one plain scalar.
    fn of_serde_yaml(text: &str) -> ScalarSense {
        use serde_yaml::Value;
        match serde_yaml::from_str(text) {
            Ok(Value::Null) => ScalarSense::Null,
            Ok(Value::Bool(value)) => ScalarSense::Bool(value),
            Ok(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => ScalarSense::Int(value),
                (None, Some(value)) => ScalarSense::Number(value),
                (None, None) => ScalarSense::Text,
            },
            Ok(Value::String(_) | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_))
            | Err(_) => ScalarSense::Text,
        }
    }

    fn assert_same(text: &str) {
        let (ours, theirs) = (plain(text), of_serde_yaml(text));
        let is_nan = |it: ScalarSense| matches!(it, ScalarSense::Number(value) if value.is_nan());
        assert!(ours == theirs || (is_nan(ours) && is_nan(theirs)), "{text}: {ours:?} {theirs:?}");
    }

    #[test]
    fn plain_words_mean_what_the_core_schema_says() {
        assert_eq!(plain(""), ScalarSense::Null);
        assert_eq!(plain("~"), ScalarSense::Null);
        assert_eq!(plain("NULL"), ScalarSense::Null);
        assert_eq!(plain("True"), ScalarSense::Bool(true));
        assert_eq!(plain("0x10"), ScalarSense::Int(16));
        assert_eq!(plain("-7"), ScalarSense::Int(-7));
        assert_eq!(plain("0.5"), ScalarSense::Number(0.5));
        assert_eq!(
            plain("18446744073709551615"),
            ScalarSense::Number(18_446_744_073_709_551_615.0)
        );
        for text in ["yes", "on", "no", "0755", "1_000", "12:30", "---", "...", "-", "true && x"] {
            assert_eq!(plain(text), ScalarSense::Text, "{text}");
        }
    }

    #[test]
    fn words_and_numbers_mean_what_serde_yaml_says() {
        let words = ["null", "Null", "true", "FALSE", "nul", "t", "truth", "nan", "nULL", "True"];
        let numbers = [
            "0",
            "7",
            "10",
            "007",
            "00",
            "0.0",
            "00.5",
            "1234567890",
            "1e3",
            "1E3",
            "1e400",
            "1e-400",
            "1.",
            ".5",
            "1.e5",
            "1e",
            "1e+5",
            "5e-1",
            "0x1f",
            "0x1F",
            "0X1f",
            "0x",
            "0xg",
            "0o17",
            "0o8",
            "0b101",
            "0b2",
            "0x+1",
            "0x-1",
            ".inf",
            ".Inf",
            ".INF",
            ".iNF",
            ".nan",
            ".NaN",
            ".NAN",
            "inf",
            "12s",
            "1-2",
            "1..2",
            "9223372036854775807",
            "9223372036854775808",
            "9223372036854775809",
            "18446744073709551615",
            "18446744073709551616",
            "0x7fffffffffffffff",
            "0x8000000000000000",
            "0xffffffffffffffff",
            "0x10000000000000000",
            "170141183460469231731687303715884105728",
            "170141183460469231731687303715884105729",
            "340282366920938463463374607431768211455",
            "340282366920938463463374607431768211456",
            "1000000000000000000000000000000000000000000",
        ];
        for word in words.into_iter().chain(numbers) {
            for text in
                [format!("-{word}"), format!("+{word}"), format!("~{word}"), word.to_owned()]
            {
                assert_same(&text);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn whatever_may_be_a_number_means_what_serde_yaml_says(
            text in "[+-]?(0[xob])?[0-9a-fA-F_.]{1,40}([eE][+-]?[0-9]{1,3})?|[+-]?[0-9]{1,45}|[+.0-9a-zA-Z_-]{1,8}"
        ) {
            if may_be_no_text(&text) {
                assert_same(&text);
            }
        }
    }

    #[test]
    fn quoted_scalars_are_text() {
        let scalar =
            Scalar { text: "true".to_owned(), style: ScalarStyle::DoubleQuoted, indent: 0 };
        assert_eq!(meaning(&scalar), ScalarSense::Text);
    }
}
