//! Reads the text of a file for the facts about files, bounded in bytes and lines.

use std::path::Path;

use policyd_base::limits::{FILE_LINES_BYTES_MAX, FILE_TEXT_BYTES_MAX};
use policyd_fact_table::FactError;
use policyd_fact_table::text_facts::{KnownText, ReadText};
use policyd_facts::call::text_changes::plain;
use policyd_world::{OpenFile, World, WorldError};

/// Reads the text of a file, or its beginning. A file that does not exist has an empty text.
pub(super) fn read_text(world: &dyn World, path: &Path) -> ReadText {
    let failed = |why: &WorldError| {
        FactError::from(format!("`{}` could not be read: {why}", path.display()))
    };
    let real = world.real_path(path);
    let mut file = match world.open(real.as_deref().unwrap_or(path)) {
        Ok(file) => file,
        Err(WorldError::NotFound) => return Ok(KnownText::whole("")),
        Err(error) => return Err(failed(&error)),
    };
    let mut bytes = vec![0; FILE_TEXT_BYTES_MAX + 1];
    let length = read_full(&mut *file, 0, &mut bytes).map_err(|it| failed(&it))?;
    bytes.truncate(length.min(FILE_TEXT_BYTES_MAX));
    let is_whole = length <= FILE_TEXT_BYTES_MAX;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // A long text can be cut within a character.
        Err(error) if !is_whole && error.error_len().is_none() => bytes
            .get(..error.valid_up_to())
            .and_then(|it| std::str::from_utf8(it).ok())
            .unwrap_or_default(),
        Err(_) => return Err(format!("`{}` is not text", path.display()).into()),
    };
    if text.contains('\0') {
        return Err(format!("`{}` is not text", path.display()).into());
    }
    let text = plain(text.strip_prefix('\u{feff}').unwrap_or(text));
    if is_whole {
        return Ok(KnownText::whole(&text));
    }
    let lines = count_lines(&mut *file);
    Ok(KnownText { text: text.into(), is_whole, lines })
}

/// Fills a buffer from a position on, as far as the file goes. Returns the number of bytes.
fn read_full(file: &mut dyn OpenFile, from: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|it| !it.is_empty()) {
        let at = from.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        match file.read_at(at, rest)? {
            0 => break,
            read => length = length.saturating_add(read),
        }
    }
    Ok(length)
}

/// Counts the lines of a long file. `None` if it is too long, or could not be read.
fn count_lines(file: &mut dyn OpenFile) -> Option<u64> {
    let mut buffer = vec![0; FILE_TEXT_BYTES_MAX];
    let (mut at, mut lines, mut last) = (0_u64, 0_u64, b'\n');
    loop {
        let read = read_full(file, at, &mut buffer).ok()?;
        let part = buffer.get(..read).filter(|it| !it.is_empty());
        let Some(part) = part else { return Some(lines + u64::from(last != b'\n')) };
        lines += u64::try_from(part.iter().filter(|it| **it == b'\n').count()).ok()?;
        last = part.last().copied().unwrap_or(last);
        at += u64::try_from(read).ok()?;
        if at > u64::try_from(FILE_LINES_BYTES_MAX).ok()? {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use policyd_world::fake::FakeWorld;

    use super::*;

    #[test]
    fn the_beginning_of_a_long_file_is_known() {
        let world = FakeWorld::new();
        let read = |text: &[u8]| {
            world.put("/w/a", text);
            read_text(&world, Path::new("/w/a"))
        };
        let short = read("\u{feff}a\r\nb".as_bytes()).unwrap();
        assert_eq!((&*short.text, short.is_whole, short.lines), ("a\nb", true, Some(2)));
        let long = "é\n".repeat(FILE_TEXT_BYTES_MAX / 2);
        let long = read(format!("a{long}end").as_bytes()).unwrap();
        let lines = u64::try_from(FILE_TEXT_BYTES_MAX / 2).unwrap() + 1;
        assert_eq!((long.is_whole, long.lines), (false, Some(lines)));
        assert!(long.text.starts_with("aé\n") && long.text.len() <= FILE_TEXT_BYTES_MAX);
        assert_eq!(read(&vec![b'\n'; FILE_LINES_BYTES_MAX + 2]).unwrap().lines, None);
        for bytes in [&b"a\0b"[..], b"a\xff", b"\xff\xfea\0"] {
            assert_eq!(read(bytes).unwrap_err().to_string(), "`/w/a` is not text");
        }
        assert_eq!(read_text(&world, Path::new("/w/b")), Ok(KnownText::whole("")));
        assert!(read_text(&world, Path::new("/w")).is_err(), "a directory has no text");
    }
}
