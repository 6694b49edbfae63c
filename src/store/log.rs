//! Append-only logs, one JSON object per line, rotated by size and count: `NAME`, `NAME.1` (newer)
//! to `NAME.3` (older). An append never fails its caller.
//! May not live here: what the entries say.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::log_files::{self, FILE_BYTES_MAX, paths, rotated};
use policyd_base::limits::{LOG_BYTES_MAX, LOG_FILES_MAX};
use policyd_world::{World, WorldError};

/// Bytes that are read first to find the last line.
const LINE_READ: u64 = 4 * 1024;

/// Appends entries in one write; rotates before, when the log is full. Returns whether it was
/// written; the caller does not fail if the log cannot be written.
pub fn append(world: &dyn World, path: &Path, entries: &[Value]) -> bool {
    if entries.is_empty() {
        return true;
    }
    let mut text = Vec::new();
    let mut end = end_of(world, path);
    if is_full(end) {
        rotate(world, path);
        end = end_of(world, path);
    }
    if end.is_some_and(|(_, last)| last != b'\n') {
        text.push(b'\n'); // The last line was torn: it is not to spoil this one.
    }
    for entry in entries {
        text.extend_from_slice(line(entry).as_bytes());
        text.push(b'\n');
    }
    world.append(path, &text).is_ok()
}

/// Length and last byte of a log that is not empty.
fn end_of(world: &dyn World, path: &Path) -> Option<(u64, u8)> {
    let mut log = world.open(path).ok()?;
    let length = log.stat().ok()?.length;
    let mut last = [0];
    let count = log.read_at(length.checked_sub(1)?, &mut last).ok()?;
    let [last] = last;
    (count == 1).then_some((length, last))
}

/// The last line of a log.
#[derive(Debug, Default)]
pub(super) struct LastLine {
    /// Length of the log.
    pub(super) length: u64,
    /// The line without its end.
    pub(super) text: Vec<u8>,
    /// Whether the line has no end: a write was interrupted.
    pub(super) is_torn: bool,
}

/// Reads the last line of a log that is not empty.
pub(super) fn last_line(world: &dyn World, path: &Path) -> Option<LastLine> {
    let mut log = world.open(path).ok()?;
    let length = log.stat().ok()?.length;
    let mut wanted = LINE_READ.min(length);
    loop {
        let count = usize::try_from(wanted).ok()?;
        let bytes = log_files::read(&mut *log, length.saturating_sub(wanted), count).ok()?;
        let is_torn = bytes.last().is_some_and(|it| *it != b'\n');
        let whole =
            if is_torn { bytes.as_slice() } else { bytes.get(..bytes.len().checked_sub(1)?)? };
        let start = memchr::memrchr(b'\n', whole).map(|at| at.saturating_add(1));
        if let Some(text) = start.or((wanted >= length).then_some(0)).and_then(|it| whole.get(it..))
        {
            return Some(LastLine { length, text: text.to_vec(), is_torn });
        }
        if wanted >= FILE_BYTES_MAX as u64 {
            return None;
        }
        wanted = wanted.saturating_mul(8).min(length);
    }
}

fn is_full(end: Option<(u64, u8)>) -> bool {
    end.is_some_and(|(length, _)| length >= LOG_BYTES_MAX)
}

/// Of several processes that find the log full, one rotates it; the others append. Two that did
/// so at once would push whole logs over the end.
fn rotate(world: &dyn World, path: &Path) {
    let lock = lock_path(path);
    let Ok(_held) = world.lock(&lock, Duration::ZERO) else { return };
    if is_full(end_of(world, path)) {
        rotate_locked(world, path);
    }
}

/// Returns the path of the lock of a log.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.lock"))
}

/// Rotates a log whose lock this process holds.
pub(super) fn rotate_locked(world: &dyn World, path: &Path) {
    for number in (1..LOG_FILES_MAX).rev() {
        // Gaps are normal: not every log has been rotated before.
        world.rename(&rotated(path, number), &rotated(path, number.saturating_add(1))).ok();
    }
    world.rename(path, &rotated(path, 1)).ok();
}

/// Entries of a log and its rotated files, oldest first; lines that are not JSON are skipped.
#[must_use]
pub fn read_all(world: &dyn World, path: &Path) -> Vec<Value> {
    paths(path).rev().flat_map(|file| read_end(world, &file, FILE_BYTES_MAX as u64)).collect()
}

/// Calls `each` for the bytes of each file of a log, newest first, until it returns `false`.
pub fn each_file_back(world: &dyn World, path: &Path, mut each: impl FnMut(&[u8]) -> bool) {
    for file in paths(path) {
        let bytes = end_bytes(world, &file, FILE_BYTES_MAX as u64).unwrap_or_default();
        if !each(&bytes) {
            return;
        }
    }
}

/// Like [`read_all`], but fails for a log that cannot be read now.
///
/// # Errors
/// The error of the operating system, unless the file does not exist.
pub fn read_certainly(world: &dyn World, path: &Path) -> Result<Vec<Value>, WorldError> {
    let mut entries = Vec::new();
    for file in paths(path).rev() {
        match end_bytes(world, &file, FILE_BYTES_MAX as u64) {
            Ok(bytes) => entries.extend(entries_of(&bytes)),
            Err(WorldError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

/// Entries in the last `bytes_max` bytes of one file, oldest first.
#[must_use]
pub fn read_end(world: &dyn World, path: &Path, bytes_max: u64) -> Vec<Value> {
    entries_of(&end_bytes(world, path, bytes_max).unwrap_or_default())
}

fn entries_of(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn end_bytes(world: &dyn World, path: &Path, bytes_max: u64) -> Result<Vec<u8>, WorldError> {
    let mut log = world.open(path)?;
    let length = log.stat()?.length;
    let wanted = length.min(bytes_max);
    log_files::read(&mut *log, length.saturating_sub(wanted), usize::try_from(wanted).unwrap_or(0))
}

/// One entry as one line, with Python's separators: the seed's recipes look for
/// `"success": false`, with the space.
#[must_use]
pub fn line(entry: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, PythonSeparators);
    // Writing a JSON value into memory does not fail.
    entry.serialize(&mut serializer).ok();
    String::from_utf8(text).unwrap_or_default()
}

/// `json.dumps` without arguments.
struct PythonSeparators;

impl Formatter for PythonSeparators {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::{FakeWorld, Op};
    use serde_json::json;

    const PATH: &str = "/work/diagnostic.jsonl";

    fn is_lock(path: &Path) -> bool {
        path.extension().is_some_and(|it| it == "lock")
    }

    #[test]
    fn lines_have_pythons_separators() {
        let entry = json!({"a": [1, "x: y"], "b": {"success": false}, "c": {}, "d": []});
        let text = r#"{"a": [1, "x: y"], "b": {"success": false}, "c": {}, "d": []}"#;
        assert_eq!(line(&entry), text);
    }

    #[test]
    fn a_torn_last_line_costs_itself_only() {
        let world = FakeWorld::new();
        world.put(PATH, "{\"n\": 1}\n{\"n\"");
        assert!(append(&world, Path::new(PATH), &[json!({"n": 2}), json!({"n": 3})]));
        let entries = read_all(&world, Path::new(PATH));
        assert_eq!(entries, [json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
    }

    #[test]
    fn a_full_log_is_rotated_and_the_oldest_goes() {
        let world = FakeWorld::new();
        let full = "x".repeat(usize::try_from(LOG_BYTES_MAX).unwrap());
        for number in 0..6 {
            append(&world, Path::new(PATH), &[json!({"n": number})]);
            let old = world.get(PATH).unwrap();
            world.put(PATH, [old.as_slice(), full.as_bytes(), b"\n"].concat());
        }
        let logs = world.files().into_iter().filter(|it| it.starts_with("/work") && !is_lock(it));
        assert_eq!(logs.count(), LOG_FILES_MAX + 1);
        let entries = read_all(&world, Path::new(PATH));
        assert_eq!(entries, [json!({"n": 2}), json!({"n": 3}), json!({"n": 4}), json!({"n": 5})]);
    }

    #[test]
    fn while_another_process_rotates_entries_go_to_the_full_log() {
        let world = FakeWorld::new();
        world.put(PATH, "x".repeat(usize::try_from(LOG_BYTES_MAX).unwrap()));
        let lock = Path::new("/work/.diagnostic.jsonl.lock");
        let held = world.lock(lock, Duration::ZERO).unwrap();
        assert!(append(&world, Path::new(PATH), &[json!({"n": 1})]));
        assert_eq!(world.get(format!("{PATH}.1")), None);
        drop(held);
        assert!(append(&world, Path::new(PATH), &[json!({"n": 2})]));
        assert!(world.get(format!("{PATH}.1")).is_some());
        assert_eq!(read_all(&world, Path::new(PATH)), [json!({"n": 1}), json!({"n": 2})]);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_failure() {
        let world = FakeWorld::new();
        world.refuse_always(Op::Append, "", WorldError::Io("disk full".to_owned()));
        assert!(!append(&world, Path::new(PATH), &[json!({})]));
    }
}
