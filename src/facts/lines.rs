//! Splits chunks of a file into lines. An incomplete line is stored until the next chunk, so that
//! chunk boundaries do not matter.

use policyd_base::limits::TRANSCRIPT_LINE_BYTES_MAX;

/// A complete line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChunk<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// A line above the size limit, whose content is dropped.
    TooLong,
}

/// Beginning of a line whose end has not been read.
#[derive(Debug, Default)]
pub struct Lines {
    carry: Vec<u8>,
    carried: u64,
    too_long: bool,
}

impl Lines {
    /// Adds a chunk, and passes every line that ends in it to `take`.
    pub fn push(&mut self, chunk: &[u8], mut take: impl FnMut(LineChunk<'_>)) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            let tail = chunk.get(start..end).unwrap_or_default();
            if self.carried == 0 {
                take(bounded(tail));
            } else {
                self.keep(tail);
                take(if self.too_long { LineChunk::TooLong } else { LineChunk::Line(&self.carry) });
                self.forget();
            }
            start = end + 1;
        }
        self.keep(chunk.get(start..).unwrap_or_default());
    }

    /// Returns the number of bytes of the unfinished line.
    #[must_use]
    pub fn unfinished_bytes(&self) -> u64 {
        self.carried
    }

    /// Returns the bytes of the unfinished line. Empty above the size limit.
    #[must_use]
    pub fn unfinished(&self) -> &[u8] {
        &self.carry
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.carried += bytes.len() as u64;
        if self.carry.len() + bytes.len() > TRANSCRIPT_LINE_BYTES_MAX {
            self.too_long = true;
            self.carry = Vec::new();
        }
        if !self.too_long {
            self.carry.extend_from_slice(bytes);
        }
    }

    fn forget(&mut self) {
        self.carry.clear();
        self.carried = 0;
        self.too_long = false;
    }
}

fn bounded(line: &[u8]) -> LineChunk<'_> {
    if line.len() > TRANSCRIPT_LINE_BYTES_MAX { LineChunk::TooLong } else { LineChunk::Line(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> (Vec<String>, u64) {
        let mut reader = Lines::default();
        let mut found = Vec::new();
        for chunk in chunks {
            reader.push(chunk, |piece| {
                found.push(match piece {
                    LineChunk::Line(line) => String::from_utf8_lossy(line).into_owned(),
                    LineChunk::TooLong => "TOO LONG".to_owned(),
                });
            });
        }
        (found, reader.unfinished_bytes())
    }

    #[test]
    fn cuts_do_not_matter() {
        let whole = b"one\n\ntwo\r\nthree\n\nrest";
        let expected = lines(&[whole]);
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let chunks = [&whole[..first], &whole[first..second], &whole[second..]];
                assert_eq!(lines(&chunks), expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn too_long_lines_are_not_kept() {
        let long = vec![b'x'; TRANSCRIPT_LINE_BYTES_MAX / 2 + 1];
        let (found, left) = lines(&[b"a\n", &long, &long, b"\nb\nc"]);
        assert_eq!(found, ["a", "TOO LONG", "b"]);
        assert_eq!(left, 1);
        let mut reader = Lines::default();
        reader.push(&long, |_| {});
        reader.push(&long, |_| {});
        assert!(reader.unfinished().is_empty());
        assert_eq!(reader.unfinished_bytes(), 2 * long.len() as u64);
    }
}
