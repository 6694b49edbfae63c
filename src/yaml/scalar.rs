//! Maps decoded text back to the file: for every byte of a scalar, the bytes it was written with.
//! Exact by construction: the decoder reads the file once, and its text must equal the parser's.
//! If the texts differ, the result is `None`. Runs only for scalars that have a finding.

use std::ops::Range;

use super::{Node, Scalar, ScalarStyle};

/// The decoded text of one scalar with the source of each byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalarMap {
    text: String,
    places: Vec<(usize, usize)>,
}

impl ScalarMap {
    /// The decoded text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the file that `decoded` was written with. An empty range gives the point
    /// before its character, or after the last one. `None` outside the text.
    #[must_use]
    pub fn source_range(&self, decoded: Range<usize>) -> Option<Range<usize>> {
        if decoded.is_empty() {
            let after_last = || self.places.last().filter(|_| decoded.start == self.places.len());
            let (start, _) = self.places.get(decoded.start).copied().unzip();
            let at = start.or_else(|| after_last().map(|(_, end)| *end))?;
            return Some(at..at);
        }
        let covered = self.places.get(decoded)?;
        Some(covered.first()?.0..covered.last()?.1)
    }
}

/// The map of a scalar; `None` for anything else, and where it cannot be exact.
#[must_use]
pub fn decoded_map(node: &Node) -> Option<ScalarMap> {
    let scalar = node.scalar()?;
    let source = node.span.source.text.as_bytes();
    let Range { start, end } = node.span.start..node.span.end;
    let decoding = match scalar.style {
        ScalarStyle::Plain => decode_flow(source, start..end, scalar.style)?,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
            decode_flow(source, start + 1..end.checked_sub(1)?, scalar.style)?
        }
        ScalarStyle::Literal | ScalarStyle::Folded => decode_block(source, start, scalar),
    };
    decoding.agreeing_with(&scalar.text)
}

/// Text decoded so far, and for each byte its place in the file.
#[derive(Default)]
struct DecodedText {
    text: Vec<u8>,
    places: Vec<(usize, usize)>,
}

impl DecodedText {
    /// Appends text that the bytes of `from` represent as a whole.
    fn push(&mut self, text: &[u8], from: (usize, usize)) {
        self.text.extend_from_slice(text);
        self.places.extend(text.iter().map(|_| from));
    }

    /// Appends bytes that are written as they are.
    fn copy(&mut self, source: &[u8], range: Range<usize>) {
        self.text.extend(source.get(range.clone()).unwrap_or_default());
        self.places.extend(range.map(|at| (at, at + 1)));
    }

    fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.places.truncate(length);
    }

    /// Drops blanks at the end, but none before `floor`.
    fn trim_blanks(&mut self, floor: usize) {
        let kept = self.text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |at| at + 1);
        self.truncate(kept.max(floor));
    }

    /// The finished map, if it says what the parser said. A block scalar ends with more or fewer
    /// line breaks than decoded, as its header and the end of the file decide.
    fn agreeing_with(mut self, value: &str) -> Option<ScalarMap> {
        if self.text.starts_with(value.as_bytes()) {
            let rest = self.text.get(value.len()..).unwrap_or_default();
            if rest.iter().all(|byte| *byte == b'\n') {
                self.truncate(value.len());
            }
        }
        (self.text == value.as_bytes())
            .then(|| ScalarMap { text: value.to_owned(), places: self.places })
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Length of the line break at `at`.
fn line_break(source: &[u8], at: usize) -> Option<usize> {
    match (source.get(at)?, source.get(at + 1)) {
        (b'\r', Some(b'\n')) => Some(2),
        (b'\n' | b'\r', _) => Some(1),
        _ => None,
    }
}

/// Reads blanks and empty lines: where they end, and their line breaks.
fn empty_lines(source: &[u8], mut at: usize) -> (usize, Vec<(usize, usize)>) {
    let mut breaks = Vec::new();
    loop {
        while source.get(at).is_some_and(|byte| is_blank(*byte)) {
            at += 1;
        }
        let Some(length) = line_break(source, at) else {
            return (at, breaks);
        };
        breaks.push((at, at + length));
        at += length;
    }
}

/// Plain and quoted scalars: lines are folded, quotes and escapes undone.
fn decode_flow(source: &[u8], range: Range<usize>, style: ScalarStyle) -> Option<DecodedText> {
    let source = source.get(..range.end)?;
    let mut decoding = DecodedText::default();
    let (mut at, mut floor) = (range.start, 0); // an escaped blank before `floor` is content
    while let Some(byte) = source.get(at).copied() {
        if let Some(length) = line_break(source, at) {
            decoding.trim_blanks(floor);
            let (next, breaks) = empty_lines(source, at + length);
            if breaks.is_empty() {
                decoding.push(b" ", (at, at + length));
            }
            breaks.into_iter().for_each(|place| decoding.push(b"\n", place));
            (at, floor) = (next, decoding.text.len());
        } else if style == ScalarStyle::SingleQuoted && byte == b'\'' {
            decoding.push(b"'", (at, at + 2));
            at += 2;
        } else if style == ScalarStyle::DoubleQuoted && byte == b'\\' {
            if let Some(length) = line_break(source, at + 1) {
                let (next, breaks) = empty_lines(source, at + 1 + length);
                breaks.into_iter().for_each(|place| decoding.push(b"\n", place));
                at = next;
            } else {
                let (character, length) = escape(source.get(at..)?)?;
                let text = character.encode_utf8(&mut [0; 4]).to_owned();
                decoding.push(text.as_bytes(), (at, at + length));
                at += length;
            }
            floor = decoding.text.len();
        } else {
            decoding.copy(source, at..at + 1);
            at += 1;
        }
    }
    Some(decoding)
}

/// Returns the character that an escape represents, and the length of the escape.
fn escape(source: &[u8]) -> Option<(char, usize)> {
    let code = match source.get(1)? {
        b'0' => 0x00,
        b'a' => 0x07,
        b'b' => 0x08,
        b't' | b'\t' => 0x09,
        b'n' => 0x0A,
        b'v' => 0x0B,
        b'f' => 0x0C,
        b'r' => 0x0D,
        b'e' => 0x1B,
        b'N' => 0x85,
        b'_' => 0xA0,
        b'L' => 0x2028,
        b'P' => 0x2029,
        b'x' => return Some((char::from_u32(hexadecimal(source, 2..4)?)?, 4)),
        b'u' => return unicode_escape(source),
        b'U' => return Some((char::from_u32(hexadecimal(source, 2..10)?)?, 10)),
        verbatim @ (b' ' | b'"' | b'/' | b'\\') => u32::from(*verbatim),
        _ => return None,
    };
    Some((char::from_u32(code)?, 2))
}

/// `\uXXXX`, or the two of a surrogate pair.
fn unicode_escape(source: &[u8]) -> Option<(char, usize)> {
    let high = hexadecimal(source, 2..6)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some((char::from_u32(high)?, 6));
    }
    let low = hexadecimal(source, 8..12).filter(|_| source.get(6..8) == Some(b"\\u"))?;
    let code = 0x1_0000 + ((high - 0xD800) << 10) + low.checked_sub(0xDC00)?;
    Some((char::from_u32(code)?, 12))
}

fn hexadecimal(source: &[u8], digits: Range<usize>) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(source.get(digits)?).ok()?, 16).ok()
}

/// Literal and folded scalars: indentation removed and, where folded, single breaks joined.
fn decode_block(source: &[u8], start: usize, scalar: &Scalar) -> DecodedText {
    let folded = scalar.style == ScalarStyle::Folded;
    let mut decoding = DecodedText::default();
    let mut at = first_line(source, start);
    let mut breaks: Vec<(usize, usize)> = Vec::new(); // since the last line with content
    let (mut seen, mut kept_apart) = (false, false);
    loop {
        let indent = leading_spaces(source, at).min(scalar.indent);
        at += indent;
        if let Some(length) = line_break(source, at) {
            breaks.push((at, at + length));
            at += length;
            continue;
        }
        if indent < scalar.indent || at >= source.len() {
            break;
        }
        let more_indented = source.get(at).is_some_and(|byte| is_blank(*byte));
        if folded && seen && !more_indented && !kept_apart {
            if let [only] = breaks.as_slice() {
                decoding.push(b" ", *only);
            }
            breaks.iter().skip(1).for_each(|place| decoding.push(b"\n", *place));
        } else {
            breaks.iter().for_each(|place| decoding.push(b"\n", *place));
        }
        breaks.clear();
        let rest = source.get(at..).unwrap_or_default();
        let length = rest.iter().position(|it| matches!(it, b'\n' | b'\r')).unwrap_or(rest.len());
        decoding.copy(source, at..at + length);
        at += length;
        (seen, kept_apart) = (true, more_indented);
    }
    breaks.iter().for_each(|place| decoding.push(b"\n", *place));
    decoding
}

fn leading_spaces(source: &[u8], at: usize) -> usize {
    source.iter().skip(at).take_while(|byte| **byte == b' ').count()
}

/// Beginning of the first line of a block scalar: empty lines before the first content, which is
/// where the parser's range begins, belong to it.
fn first_line(source: &[u8], start: usize) -> usize {
    let mut first = line_start(source, start);
    loop {
        let before = source.get(..first).unwrap_or_default();
        let Some(before) = before.strip_suffix(b"\n").or_else(|| before.strip_suffix(b"\r")) else {
            return first;
        };
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let line = line_start(source, before.len());
        if source.get(line..before.len()).is_some_and(|it| it.iter().any(|byte| *byte != b' ')) {
            return first;
        }
        first = line;
    }
}

fn line_start(source: &[u8], at: usize) -> usize {
    let before = source.get(..at).unwrap_or_default();
    before.iter().rposition(|it| matches!(it, b'\n' | b'\r')).map_or(0, |it| it + 1)
}
