//! Reads a log from its end, in blocks: the newest lines, without the rest of the log.

use std::path::{Path, PathBuf};

use super::log_files::{self, FILE_BYTES_MAX, paths};
use policyd_world::{OpenFile, World};

/// Bytes of the first block of a file. Each further block is twice as large, up to `BLOCK_MAX`.
const BLOCK_FIRST: usize = 64 * 1024;
/// Bytes of the largest block.
const BLOCK_MAX: usize = 1024 * 1024;

/// The lines of a log and its rotated files without their ends, newest first. Empty lines are skipped. As for
/// [`read_all`](super::log::read_all), a file that cannot be read has no lines, and of a file that is too large the end
/// is read.
pub struct NewestLines<'a> {
    world: &'a dyn World,
    /// Files that were not opened yet, oldest first.
    paths: Vec<PathBuf>,
    /// Identities of the files that were opened: a rotation moves a file to a name that is opened later.
    opened: Vec<u64>,
    file: Option<FileTail>,
}

impl<'a> NewestLines<'a> {
    /// Returns the lines of a log. Nothing is read yet.
    #[must_use]
    pub fn of(world: &'a dyn World, log: &Path) -> Self {
        Self { world, paths: paths(log).rev().collect(), opened: Vec::new(), file: None }
    }

    /// Opens the next file that was not opened before. `None` if it cannot be read.
    fn open(&mut self, path: &Path) -> Option<FileTail> {
        let file = self.world.open(path).ok()?;
        let stat = file.stat().ok()?;
        if stat.identity != 0 && self.opened.contains(&stat.identity) {
            return None;
        }
        self.opened.push(stat.identity);
        let floor = stat.length.saturating_sub(FILE_BYTES_MAX as u64);
        let (start, block) = (stat.length, BLOCK_FIRST);
        Some(FileTail { file, floor, start, block, bytes: Vec::new() })
    }
}

impl Iterator for NewestLines<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.file.as_mut().and_then(FileTail::line) {
                Some(line) if line.is_empty() => {}
                Some(line) => return Some(line),
                None => {
                    let path = self.paths.pop()?;
                    self.file = self.open(&path);
                }
            }
        }
    }
}

/// The part of a file whose lines were not returned yet.
struct FileTail {
    file: Box<dyn OpenFile>,
    /// Position of the first byte that is read.
    floor: u64,
    /// Position of the first byte of `bytes`.
    start: u64,
    /// Size of the next block.
    block: usize,
    /// Bytes that were read, up to the lines that were returned.
    bytes: Vec<u8>,
}

impl FileTail {
    /// Takes the last line. `None` at the beginning of the file.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &self.bytes) {
                let line = self.bytes.split_off(end.saturating_add(1));
                self.bytes.truncate(end);
                return Some(line);
            }
            if self.start <= self.floor {
                return Some(std::mem::take(&mut self.bytes)).filter(|it| !it.is_empty());
            }
            self.read_block();
        }
    }

    /// Reads the block before `bytes`.
    fn read_block(&mut self) {
        let left = usize::try_from(self.start.saturating_sub(self.floor)).unwrap_or(usize::MAX);
        let wanted = left.min(self.block);
        self.block = self.block.saturating_mul(2).min(BLOCK_MAX);
        self.start = self.start.saturating_sub(wanted as u64);
        let read = log_files::read(self.file.as_mut(), self.start, wanted);
        let mut block = read.unwrap_or_default();
        // If the file was cut meanwhile, what followed does not belong to this block.
        if block.len() == wanted {
            block.append(&mut self.bytes);
        }
        self.bytes = block;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::log;
    use crate::log_files::rotated;
    use policyd_world::WorldError;
    use policyd_world::fake::{FakeWorld, Op};

    const LOG: &str = "/work/logs/decisions.jsonl";

    fn newest(world: &FakeWorld) -> Vec<String> {
        let lines = NewestLines::of(world, Path::new(LOG));
        lines.map(|it| String::from_utf8(it).unwrap()).collect()
    }

    /// Lines of many lengths, some of them longer than a block.
    fn text(first: usize, count: usize) -> String {
        let length = |number: usize| match number % 97 {
            13 => BLOCK_FIRST + number,
            _ => number * 7919 % 3000,
        };
        let line =
            |number| format!("{{\"n\": {number}, \"x\": \"{}\"}}\n", "x".repeat(length(number)));
        (first..first + count).map(line).collect()
    }

    #[test]
    fn lines_are_those_of_the_whole_log_in_reverse() {
        let world = FakeWorld::new();
        assert_eq!(newest(&world), [""; 0]);
        world.put(rotated(Path::new(LOG), 3), text(0, 300));
        world.put(rotated(Path::new(LOG), 1), text(300, 1) + "\n\nno entry\n");
        world.put(LOG, text(301, 400) + "{\"n\": 701}\n{\"n\"");
        let entries = |lines: Vec<String>| -> Vec<Value> {
            lines.iter().filter_map(|it| serde_json::from_str(it).ok()).collect()
        };
        let mut back = entries(newest(&world));
        assert_eq!(newest(&world)[..2], ["{\"n\"", "{\"n\": 701}"]);
        back.reverse();
        let all = log::read_all(&world, Path::new(LOG));
        assert!(all.len() == 702 && back == all);
        // A file whose only line has no end, and one that cannot be read.
        world.put(LOG, "{\"n\": 1}");
        world.refuse_always(Op::ReadAt, ".1", WorldError::Io("unreadable".to_owned()));
        assert_eq!(newest(&world)[..2], ["{\"n\": 1}", text(299, 1).trim_end()]);
    }

    #[test]
    fn the_newest_line_of_a_long_log_costs_one_block() {
        let world = FakeWorld::new();
        for number in 1..=3 {
            world.put(rotated(Path::new(LOG), number), text(0, 2_000));
        }
        for count in [700, 2_800] {
            world.put(LOG, text(0, count));
            world.clear_log();
            let mut lines = NewestLines::of(&world, Path::new(LOG));
            assert_eq!(lines.next(), Some(text(count - 1, 1).trim_end().as_bytes().to_vec()));
            assert_eq!(world.bytes_read(), BLOCK_FIRST as u64);
        }
    }

    #[test]
    fn a_file_that_is_rotated_meanwhile_is_read_once() {
        let world = FakeWorld::new();
        world.put(rotated(Path::new(LOG), 1), "old\n");
        world.put(LOG, "first\nsecond\n");
        let mut lines = NewestLines::of(&world, Path::new(LOG));
        assert_eq!(lines.next().as_deref(), Some(b"second".as_slice()));
        world.rename(&rotated(Path::new(LOG), 1), &rotated(Path::new(LOG), 2)).unwrap();
        world.rename(Path::new(LOG), &rotated(Path::new(LOG), 1)).unwrap();
        world.put(LOG, "third\n");
        // The simulated machine reads by the path; what is open there is the new file.
        let rest: Vec<_> = lines.skip(1).collect();
        assert_eq!(rest, [b"old".to_vec()]);
    }
}
