//! Lines and columns of places in long files. Where the lines of a file begin is kept for the files that were asked for
//! last: the build of a pack asks for the place of every expression, and would count all lines before each of them.

use std::cell::RefCell;
use std::sync::Arc;

use super::Source;

/// Bytes up to which the lines of a file are counted each time.
const SHORT: usize = 4 * 1024;
/// Files of which the lines are kept. A pack has 25, and most findings relate two of them.
const KEPT_MAX: usize = 4;

thread_local! {
    /// The files that were asked for last, the newest at the end.
    static KEPT: RefCell<Vec<LineStarts>> = const { RefCell::new(Vec::new()) };
}

/// Where the lines of a file begin.
struct LineStarts {
    /// The file, which is kept so that no other file has its address.
    source: Arc<Source>,
    /// Positions of all lines but the first.
    starts: Vec<usize>,
}

impl LineStarts {
    fn of(source: &Arc<Source>) -> Self {
        let ends = memchr::memchr_iter(b'\n', source.text.as_bytes());
        let starts = ends.map(|at| at.saturating_add(1)).collect();
        Self { source: Arc::clone(source), starts }
    }

    /// Returns the number of the line of a byte, and the position at which the line begins.
    fn line(&self, at: usize) -> (usize, usize) {
        let before = self.starts.partition_point(|it| *it <= at);
        let start = before.checked_sub(1).and_then(|it| self.starts.get(it));
        (before.saturating_add(1), start.copied().unwrap_or_default())
    }
}

/// Returns line and column of a byte, both from 1. The column counts characters.
pub(super) fn line_column(source: &Arc<Source>, at: usize) -> (usize, usize) {
    let before = source.text.get(..at).unwrap_or(&source.text);
    let (line, start) = match source.text.len() {
        ..=SHORT => counted(before),
        _ => KEPT.with_borrow_mut(|kept| {
            let known = kept.iter().position(|it| Arc::ptr_eq(&it.source, source));
            let lines = match known {
                Some(known) => kept.remove(known),
                None => LineStarts::of(source),
            };
            let found = lines.line(before.len());
            if kept.len() >= KEPT_MAX {
                kept.remove(0);
            }
            kept.push(lines);
            found
        }),
    };
    let column = before.get(start..).map_or(0, |it| it.chars().count()).saturating_add(1);
    (line, column)
}

/// Returns the number of the last line of a text, and the position at which the line begins.
fn counted(text: &str) -> (usize, usize) {
    let last = memchr::memrchr(b'\n', text.as_bytes());
    let line = memchr::memchr_iter(b'\n', text.as_bytes()).count().saturating_add(1);
    (line, last.map_or(0, |at| at.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_lines_are_those_that_are_counted() {
        let file = |text: String| Arc::new(Source { name: "a.yaml".to_owned(), text });
        let files: Vec<_> = (0..KEPT_MAX + 2)
            .map(|number| file("\u{e9}a: 1\n\n  - b\n".repeat(SHORT / 12 + number) + "end"))
            .collect();
        for round in 0..3 {
            for source in &files {
                let length = source.text.len();
                for at in (0..=length + 1).step_by(211 + round).chain([length, length + 9]) {
                    let before = source.text.get(..at).unwrap_or(&source.text);
                    let (line, start) = counted(before);
                    let column = before.get(start..).unwrap().chars().count() + 1;
                    assert_eq!(line_column(source, at), (line, column), "byte {at}");
                }
            }
        }
        assert_eq!(KEPT.with_borrow(Vec::len), KEPT_MAX);
    }
}
