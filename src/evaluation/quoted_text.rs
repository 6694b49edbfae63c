//! Text of others in a message: cut, in quotes, indented, or on one line.

use std::borrow::Cow;

use policyd_base::limits;

/// Maximum characters of a quoted text.
const QUOTED_CHARS_MAX: usize = limits::EVIDENCE_CHARS_MAX;

/// Maximum characters of a name that is displayed without quotes.
const PLAIN_NAME_CHARS_MAX: usize = 64;

/// Cuts a text to a number of characters, with a notice.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let notice = " … [cut]";
    let kept = chars_max.saturating_sub(notice.chars().count());
    text.chars().take(kept).chain(notice.chars()).collect()
}

/// Indents the further lines of a text by `columns`.
#[must_use]
pub fn indented(text: &str, columns: usize) -> Cow<'_, str> {
    match text.contains('\n') {
        true => Cow::Owned(text.replace('\n', &format!("\n{}", " ".repeat(columns)))),
        false => Cow::Borrowed(text),
    }
}

/// Replaces line breaks, for a reader that works by lines.
#[must_use]
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Quotes text of another process or of a file: in quotes, on one line, at most `QUOTED_CHARS_MAX`
/// characters. A plain name is not quoted, because it cannot contain an instruction.
#[must_use]
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@#".contains(c);
    if text.len() <= PLAIN_NAME_CHARS_MAX && text.chars().all(is_plain) {
        return text.to_owned();
    }
    in_quotes(text)
}

/// Quotes text as [`quote`] does, also a plain name.
#[must_use]
pub fn in_quotes(text: &str) -> String {
    let line = text.chars().map(|c| match c {
        '"' => '\'',
        c if c.is_control() || c.is_whitespace() => ' ',
        c => c,
    });
    format!("\"{}\"", cut(&line.collect::<String>(), QUOTED_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_text_is_data_on_one_line_and_a_name_is_itself() {
        assert_eq!(quote("task-099"), "task-099");
        assert_eq!(quote(""), "");
        assert_eq!(quote("a\n\u{1b}[2K \"b\""), "\"a  [2K 'b'\"");
        let long = quote(&"word ".repeat(200));
        assert!(long.starts_with("\"word ") && long.ends_with('"') && long.len() < 320, "{long}");
    }
}
