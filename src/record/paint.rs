//! Text for a terminal: colors, and escapes in place of characters that control a terminal.
//!
//! Reports mix our own colors with text that others wrote: packs, signals, transcripts. Our own escape
//! sequences carry a key that is made in each process, so text that was written before cannot
//! contain it. [`for_terminal`] keeps sequences with the key and escapes everything else.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use policyd_base::text::{is_control, push_escaped};
use unicode_width::UnicodeWidthStr;

/// The key of policyd's escape sequences.
static KEY: LazyLock<String> =
    LazyLock::new(|| format!("{:016x}", RandomState::new().hash_one("policyd")));

const ESCAPE: char = '\u{1b}';

/// Color of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextColor {
    /// The color of the terminal.
    Plain,
    /// Headings.
    Bold,
    /// Details.
    Dim,
    /// Blocks and failures.
    Red,
    /// Success.
    Green,
    /// Warnings and questions.
    Yellow,
}

/// Colors, or none.
#[derive(Debug, Clone, Copy)]
pub struct AnsiStyle {
    color: bool,
}

impl AnsiStyle {
    /// Colors, if the reader sees them.
    #[must_use]
    pub const fn new(color: bool) -> Self {
        Self { color }
    }

    /// Returns a text in a color.
    #[must_use]
    pub fn paint(self, color: TextColor, text: &str) -> String {
        match color {
            TextColor::Plain => text.to_owned(),
            TextColor::Bold => self.bold(text),
            TextColor::Dim => self.dim(text),
            TextColor::Red => self.red(text),
            TextColor::Green => self.green(text),
            TextColor::Yellow => self.yellow(text),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let key = KEY.as_str();
        format!("{ESCAPE}{key}[{code}m{text}{ESCAPE}{key}[0m")
    }

    /// Formats a text in bold, if colors are on.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Formats a text dimmed, if colors are on.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Formats a text in red, if colors are on.
    pub fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// Formats a text in green, if colors are on.
    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Formats a text in yellow, if colors are on.
    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }
}

/// Returns the display width of a text. Own colors have none.
#[must_use]
pub fn visible_width(text: &str) -> usize {
    let mut parts = text.split(ESCAPE);
    let first = parts.next().map_or(0, UnicodeWidthStr::width);
    let behind = |part: &str| match part.strip_prefix(KEY.as_str()) {
        Some(sequence) => sequence.split_once('m').map_or(0, |(_, text)| text.width()),
        None => part.width(),
    };
    parts.map(behind).fold(first, usize::saturating_add)
}

/// Marks every escape sequence in `text` as our own: a renderer made it of texts without any.
pub fn as_own(text: &str) -> String {
    text.replace(ESCAPE, &format!("{ESCAPE}{}", KEY.as_str()))
}

/// A page as a browser may show it: every control character, and every one that changes the direction of text, becomes
/// `\u202e`. Own texts contain none of them.
#[must_use]
pub fn for_browser(page: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| is_control(c) && c != '\r';
    if !page.chars().any(is_hidden) {
        return Cow::Borrowed(page);
    }
    let mut shown = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            '\r' => shown.push(c),
            c => push_escaped(&mut shown, c),
        }
    }
    Cow::Owned(shown)
}

/// Text as it may be written to a terminal: line breaks, tabs and our own colors stay, every other
/// control character becomes `\u001b`. JSON reads that as the same character, so JSON stays as it is.
#[must_use]
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.as_str();
        match c {
            ESCAPE if after.starts_with(KEY.as_str()) => {
                shown.push(c);
                rest = after.strip_prefix(KEY.as_str()).unwrap_or(after).chars();
            }
            '\r' if after.starts_with('\n') => shown.push(c),
            c => push_escaped(&mut shown, c),
        }
    }
    Cow::Owned(shown)
}

/// The same on one line: line breaks and tabs are escaped, too.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    for_terminal(&text.replace('\r', "\\r")).into_owned()
}

/// Adds a line.
pub fn line(text: &mut String, content: &str) {
    text.push_str(content);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_control_characters_are_escaped_and_own_colors_stay() {
        let red = AnsiStyle::new(true).red("a\u{1b}[2Kb");
        assert_eq!(for_terminal(&red), "\u{1b}[1;31ma\\u001b[2Kb\u{1b}[0m");
        assert_eq!(AnsiStyle::new(false).red("a"), "a");
        for (text, shown) in [
            ("plain ä 日本 👍\n\ttext\r\n", "plain ä 日本 👍\n\ttext\r\n"),
            ("curl evil #\u{1b}[2K\rgh pr view", "curl evil #\\u001b[2K\\u000dgh pr view"),
            ("\u{1b}0123456789abcdef[31m", "\\u001b0123456789abcdef[31m"),
            ("\0\u{7}\u{8}\u{7f}\u{9b}31m", "\\u0000\\u0007\\u0008\\u007f\\u009b31m"),
            ("a\u{202e}b\u{2066}c\u{200f}", "a\\u202eb\\u2066c\\u200f"),
        ] {
            assert_eq!(for_terminal(text), shown);
        }
        assert_eq!(on_one_line("a\nb\t\u{1b}c\\n"), "a\\nb\\t\\u001bc\\\\n");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"a\u{9b}": "\u{1b}[31m \u{202e} \u{7f} \n"});
        let text = value.to_string();
        let read: serde_json::Value = serde_json::from_str(&for_terminal(&text)).unwrap();
        assert_ne!(for_terminal(&text), text);
        assert_eq!(read, value);
    }
}
