//! Reads what was appended to a log since the last reading, also if the log was rotated meanwhile.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::log::rotated;
use crate::checksum::{checksum, hex};
use crate::limits::{LOG_BYTES_MAX, LOG_FILES_MAX};
use crate::world::{World, WorldError};

/// Where the reading of a log ended. A file is recognized by its first line, which no other file has: entries contain
/// their time and id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCursor {
    /// Checksum of the first line.
    file: String,
    /// Length of the lines that were read, in bytes.
    offset: usize,
}

/// Calls `each` for every complete line behind the cursor, oldest first, and returns the new cursor. Without a cursor, or
/// if the file of the cursor does not exist any more, all lines are read.
///
/// # Errors
/// A file cannot be read now. Lines may have been passed to `each` before.
pub fn read_new(
    world: &dyn World,
    log: &Path,
    cursor: &LogCursor,
    mut each: impl FnMut(&[u8]),
) -> Result<LogCursor, WorldError> {
    let mut files: Vec<(Vec<u8>, LogCursor)> = Vec::new();
    let newest = [log.to_owned()].into_iter().chain((1..=LOG_FILES_MAX).map(|it| rotated(log, it)));
    for path in newest {
        let Some(bytes) = content(world, path)? else { continue };
        let file = first_line(&bytes);
        let is_known = !cursor.file.is_empty() && file == cursor.file;
        let offset = if is_known { cursor.offset } else { 0 };
        files.push((bytes, LogCursor { file, offset }));
        if is_known {
            break;
        }
    }
    let mut reached = cursor.clone();
    for (bytes, LogCursor { file, offset }) in files.into_iter().rev() {
        let rest = bytes.get(offset..).unwrap_or_default();
        let complete =
            rest.iter().rposition(|it| *it == b'\n').map_or(0, |it| it.saturating_add(1));
        let lines = rest.get(..complete).unwrap_or_default();
        lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()).for_each(&mut each);
        reached = LogCursor { file, offset: offset.saturating_add(complete) };
    }
    Ok(reached)
}

/// Returns the content of a file of the log. `None` if it does not exist or has no complete line.
fn content(world: &dyn World, path: PathBuf) -> Result<Option<Vec<u8>>, WorldError> {
    let bytes_max = usize::try_from(LOG_BYTES_MAX.saturating_mul(2)).unwrap_or(usize::MAX);
    match world.read(&path, bytes_max) {
        Ok(bytes) => Ok(bytes.contains(&b'\n').then_some(bytes)),
        Err(WorldError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn first_line(bytes: &[u8]) -> String {
    hex(&checksum(&[bytes.split(|it| *it == b'\n').next().unwrap_or_default()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log;
    use crate::world::fake::FakeWorld;

    const LOG: &str = "/work/logs/decisions.jsonl";

    fn new_lines(world: &FakeWorld, cursor: &mut LogCursor) -> Vec<String> {
        let mut lines = Vec::new();
        let each = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        *cursor = read_new(world, Path::new(LOG), cursor, each).unwrap();
        lines
    }

    #[test]
    fn each_line_is_read_once() {
        let (world, mut cursor) = (FakeWorld::new(), LogCursor::default());
        assert_eq!(new_lines(&world, &mut cursor), [""; 0]);
        world.put(LOG, "a\nb\nincompl");
        assert_eq!(new_lines(&world, &mut cursor), ["a", "b"]);
        assert_eq!(new_lines(&world, &mut cursor), [""; 0]);
        world.put(LOG, "a\nb\nincomplete\nc\n");
        assert_eq!(new_lines(&world, &mut cursor), ["incomplete", "c"]);
    }

    #[test]
    fn rotated_files_are_read_to_their_end() {
        let (world, mut cursor) = (FakeWorld::new(), LogCursor::default());
        world.put(LOG, "a\n");
        assert_eq!(new_lines(&world, &mut cursor), ["a"]);
        world.put(log::rotated(Path::new(LOG), 2), "a\nb\n");
        world.put(log::rotated(Path::new(LOG), 1), "c\n");
        world.put(LOG, "d\n");
        assert_eq!(new_lines(&world, &mut cursor), ["b", "c", "d"]);
        for number in 1..=LOG_FILES_MAX {
            world.put(log::rotated(Path::new(LOG), number), format!("old {number}\n"));
        }
        world.put(LOG, "e\n");
        assert_eq!(new_lines(&world, &mut cursor), ["old 3", "old 2", "old 1", "e"]);
    }
}
