//! Output of a tool, decoded on first use, because most outputs (above all the content of files)
//! are never used.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lenient::{Either, Text};
use super::repair::repaired;

/// A text, or a list of blocks with texts.
#[derive(Debug, Clone)]
pub enum Output<'a> {
    /// A decoded text.
    Text(Cow<'a, str>),
    /// JSON as written, not decoded.
    Json(&'a RawValue),
}

impl Output<'_> {
    /// Returns the whole text. Texts of several blocks are joined.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(json) => decoded(json.get()),
        }
    }

    /// Returns the text up to its first line break, often without decoding the rest.
    #[must_use]
    pub fn first_line(&self) -> Cow<'_, str> {
        let text = match self {
            Self::Text(text) => Cow::Borrowed(text.as_ref()),
            Self::Json(json) => match first_line_as_written(json.get()) {
                Some(line) => Cow::Owned(decoded(&format!("{line}\"")).into_owned()),
                None => decoded(json.get()),
            },
        };
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(before_line_break(text)),
            Cow::Owned(text) => Cow::Owned(before_line_break(&text).to_owned()),
        }
    }
}

impl Default for Output<'_> {
    fn default() -> Self {
        Self::Text(Cow::Borrowed(""))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Output<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(Self::Json)
    }
}

fn before_line_break(text: &str) -> &str {
    text.split_once('\n').map_or(text, |(line, _)| line)
}

/// Returns a JSON string up to its first line break. `None` if it has no line break or is not a
/// string.
fn first_line_as_written(json: &str) -> Option<&str> {
    let mut from = json.starts_with('"').then_some(1)?;
    loop {
        let escape = from + json.get(from..)?.find('\\')?;
        if json.get(escape..)?.starts_with("\\n") {
            return json.get(..escape);
        }
        from = escape + 2;
    }
}

fn decoded(json: &str) -> Cow<'_, str> {
    if let Ok(content) = serde_json::from_str(json) {
        return inner_text(content);
    }
    // No decoder has checked this text, so it can contain unpaired surrogates.
    let content = repaired(json.as_bytes())
        .and_then(|json| Some(inner_text(serde_json::from_slice(&json).ok()?).into_owned()));
    Cow::Owned(content.unwrap_or_default())
}

/// A block inside a tool result.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct InnerBlock<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

/// Joins the texts of a content with line breaks.
fn inner_text<'a>(content: Either<'a, InnerBlock<'a>>) -> Cow<'a, str> {
    let mut texts = content.into_elements().into_iter().filter_map(|element| match element {
        Either::Text(text) => Some(text),
        Either::One(block) => Some(block.text.0),
        Either::Many(_) | Either::None => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(first, |whole, next| Cow::Owned(format!("{whole}\n{next}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_as_written_reads_as_its_text() {
        for (json, text) in [
            (r#""a\nb""#, "a\nb"),
            (r#""a \"b\"\nc""#, "a \"b\"\nc"),
            (r#""""#, ""),
            (r#""one line""#, "one line"),
            (r#""\\n""#, "\\n"),
            (r#"[{"type":"text","text":"a"},"b\nc",7]"#, "a\nb\nc"),
            (r#"{"text":"a\tb"}"#, "a\tb"),
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            ("17", ""),
            ("null", ""),
            ("[[]]", ""),
        ] {
            let output: Output<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(output.text(), text, "{json}");
            assert_eq!(output.first_line(), text.split('\n').next().unwrap(), "{json}");
            let known = Output::Text(text.into());
            assert_eq!((known.text(), known.first_line()), (output.text(), output.first_line()));
        }
    }
}
