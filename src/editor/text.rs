//! Texts as an editor changes them: lines, columns in UTF-16 code units, and changes of ranges.

use std::ops::Range;

/// A position as the Language Server Protocol counts it: lines from 0, columns in UTF-16 code units from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line. `\n`, `\r\n`, and `\r` end a line.
    pub line: u32,
    /// UTF-16 code units before the position on its line.
    pub column: u32,
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The replaced range; `None` replaces the whole text.
    pub range: Option<(TextPosition, TextPosition)>,
    /// The new text.
    pub text: String,
}

/// The lines of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    /// First byte of each line.
    starts: Vec<usize>,
    /// Length of the text in bytes.
    length: usize,
}

impl LineIndex {
    /// Finds the lines of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let is_pair = bytes.get(at) == Some(&b'\r') && bytes.get(at + 1) == Some(&b'\n');
            if !is_pair {
                starts.push(at + 1);
            }
        }
        Self { starts, length: text.len() }
    }

    /// Returns the bytes of a line without its end; the last line for a line after it.
    #[must_use]
    pub fn line(&self, text: &str, line: usize) -> Range<usize> {
        let line = line.min(self.starts.len().saturating_sub(1));
        let start = self.starts.get(line).copied().unwrap_or(0);
        let end = self.starts.get(line + 1).copied().unwrap_or(self.length);
        let content = text.get(start..end).unwrap_or_default();
        start..start + content.trim_end_matches(['\n', '\r']).len()
    }

    /// Number of lines, at least 1.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// Returns the line of a byte.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the position of a byte. A byte within a character counts as its first one, and one after the text
    /// as its end.
    #[must_use]
    pub fn position(&self, text: &str, offset: usize) -> TextPosition {
        let offset = on_boundary(text, offset);
        let line = self.line_of(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = text.get(start..offset).unwrap_or_default();
        let column = before.chars().map(char::len_utf16).sum::<usize>();
        TextPosition { line: count(line), column: count(column) }
    }

    /// Returns the byte of a position. A column after the end of its line is the end of the line, and a column
    /// within a surrogate pair the beginning of the pair.
    #[must_use]
    pub fn offset(&self, text: &str, position: TextPosition) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        if line >= self.starts.len() {
            return self.length;
        }
        let range = self.line(text, line);
        let (mut units, wanted) = (0_usize, usize::try_from(position.column).unwrap_or(usize::MAX));
        for (at, c) in text.get(range.clone()).unwrap_or_default().char_indices() {
            units = units.saturating_add(c.len_utf16());
            if units > wanted {
                return range.start + at;
            }
        }
        range.end
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the first byte of the character that contains a byte, at most the end of the text.
#[must_use]
pub fn on_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Applies changes in their order. The positions of a change refer to the text after the changes before it.
pub fn apply(text: &mut String, changes: Vec<TextChange>) {
    for TextChange { range, text: new } in changes {
        let Some((start, end)) = range else {
            *text = new;
            continue;
        };
        let lines = LineIndex::new(text);
        let (one, other) = (lines.offset(text, start), lines.offset(text, end));
        // A range with exchanged ends is still one range.
        text.replace_range(one.min(other)..one.max(other), &new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(line: u32, column: u32) -> TextPosition {
        TextPosition { line, column }
    }

    #[test]
    fn columns_count_utf16_code_units() {
        let text = "a𝄞b\r\né\rz\n";
        let lines = LineIndex::new(text);
        assert_eq!(lines.lines(), 4);
        for (offset, position) in [
            (0, at(0, 0)),
            (1, at(0, 1)),
            (5, at(0, 3)),
            (6, at(0, 4)),
            (8, at(1, 0)),
            (10, at(1, 1)),
            (11, at(2, 0)),
            (13, at(3, 0)),
        ] {
            assert_eq!(lines.position(text, offset), position, "{offset}");
            assert_eq!(lines.offset(text, position), offset, "{position:?}");
        }
        assert_eq!(lines.position(text, 3), at(0, 1), "a byte within a character");
        assert_eq!(lines.offset(text, at(0, 2)), 1, "within a surrogate pair");
        assert_eq!(lines.offset(text, at(0, 99)), 6, "after the end of a line");
        assert_eq!(lines.offset(text, at(99, 0)), text.len());
        assert_eq!(lines.position(text, 99), at(3, 0));
    }

    #[test]
    fn changes_are_applied_one_after_the_other() {
        let mut text = "one\ntwo\n".to_owned();
        let change = |range, text: &str| TextChange { range, text: text.to_owned() };
        apply(&mut text, vec![change(Some((at(0, 3), at(1, 0))), " ")]);
        assert_eq!(text, "one two\n");
        apply(
            &mut text,
            vec![change(Some((at(0, 7), at(0, 4))), "2"), change(Some((at(0, 5), at(0, 5))), "!")],
        );
        assert_eq!(text, "one 2!\n");
        apply(&mut text, vec![change(None, "new")]);
        assert_eq!(text, "new");
    }
}
