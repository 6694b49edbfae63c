//! Numbers in texts, texts cut to a length, and characters that change how a text is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a number of things: `1 stop`, `5,120 stops`.
#[must_use]
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {what}{ending}", grouped(number, ','))
}

/// Returns a number with its thousands apart: `5,120`.
#[must_use]
pub fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Returns the beginning of a text of at most `bytes_max` bytes, cut between characters.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Returns the end of a text of at most `bytes_max` bytes, cut between characters.
#[must_use]
pub fn cut_front(text: &str, bytes_max: usize) -> &str {
    let start = text.len().saturating_sub(bytes_max);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start));
    start.and_then(|start| text.get(start..)).unwrap_or_default()
}

/// Returns whether a reader acts on a character instead of showing it: control characters other than line breaks and tabs, and
/// those that change the direction of text.
#[must_use]
pub const fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text in which such a character is written as `\u202e`.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut shown, c));
    Cow::Owned(shown)
}

/// Adds a character as [`escaped`] writes it.
pub fn push_escaped(text: &mut String, c: char) {
    match is_control(c) {
        // Writing to a text cannot fail.
        true => drop(write!(text, "\\u{:04x}", u32::from(c))),
        false => text.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in
            [(0_u64, "0 stops"), (1, "1 stop"), (999, "999 stops"), (1000, "1,000 stops")]
        {
            assert_eq!(counted(number, "stop"), text);
        }
        assert_eq!(grouped(1_234_567, ' '), "1 234 567");
    }

    #[test]
    fn characters_that_change_how_a_text_is_shown_are_escaped() {
        assert_eq!(escaped("a\n\tb é"), "a\n\tb é");
        assert_eq!(escaped("\u{1b}[2K\rsafe \u{202e}x"), r"\u001b[2K\u000dsafe \u202ex");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(cut_front("aäb", 2), "b");
        assert_eq!((cut("ab", 9), cut_front("ab", 9)), ("ab", "ab"));
    }
}
