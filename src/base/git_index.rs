//! Reads the paths that git tracks from an index file (gitformat-index, versions 2 to 4).
//!
//! A hook must know whether the repository contains a file. Starting `git` would cost more than the
//! rest of the hook. Only names are read, in order, up to the first name that decides.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the header: signature, version, number of entries.
const HEADER_BYTES: usize = 12;
/// Bytes of an entry before its object id: times, device, inode, mode, owner, size.
const STAT_BYTES: usize = 40;
/// Length of an object id, except in the SHA-256 format.
const SHA1_BYTES: usize = 20;
/// Flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;
/// Bits of the flags that contain the length of a name. All bits set: the name is longer.
const NAME_LENGTH: u16 = 0x0fff;

/// Result of a search for a tracked path below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scan {
    /// Git tracks this path.
    Tracked(String),
    /// Git tracks no path below the directory.
    Untracked,
    /// The bytes end before the deciding entry.
    Incomplete,
    /// The bytes are not an index of a supported version.
    Malformed,
}

/// Searches an index, or its first part, for the directory `prefix` or a path below it that is not exempt. `prefix`
/// ends with a slash. The directory itself is an entry if it is a file, a link, or a submodule.
///
/// `id_bytes` is the length of an object id: 20, or 32 in the SHA-256 format. The prefix ignores
/// ASCII case, because a disk can treat `.Policyd` and `.policyd` as one file.
#[must_use]
pub fn scan(
    bytes: &[u8],
    id_bytes: usize,
    prefix: &[u8],
    is_exempt: impl Fn(&[u8]) -> bool,
) -> Scan {
    if bytes.len() < HEADER_BYTES {
        return Scan::Incomplete;
    }
    let Some((mut entries, count)) = IndexEntries::new(bytes, id_bytes) else {
        return Scan::Malformed;
    };
    for _ in 0..count {
        if entries.advance().is_none() {
            return Scan::Incomplete;
        }
        let name = entries.name.as_slice();
        if prefix.strip_suffix(b"/").is_some_and(|it| name.eq_ignore_ascii_case(it)) {
            return Scan::Tracked(String::from_utf8_lossy(name).into_owned());
        }
        let start = name.get(..prefix.len());
        if start.is_some_and(|it| it.eq_ignore_ascii_case(prefix)) && !is_exempt(name) {
            return Scan::Tracked(String::from_utf8_lossy(name).into_owned());
        }
        // Entries are sorted by the bytes of their names, capital letters first.
        if name > prefix && start != Some(prefix) {
            return Scan::Untracked;
        }
    }
    Scan::Untracked
}

/// Returns at most `most` names of an index, or of its first part, in order. `None` if the bytes are
/// not an index of a supported version.
#[must_use]
pub fn names(bytes: &[u8], id_bytes: usize, most: usize) -> Option<Vec<String>> {
    let (mut entries, count) = IndexEntries::new(bytes, id_bytes)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(most);
    let names = (0..count).map_while(|_| {
        entries.advance()?;
        Some(String::from_utf8_lossy(&entries.name).into_owned())
    });
    Some(names.collect())
}

/// Returns which of some paths an index contains, as entries or as directories of entries. `None` if the bytes are not a
/// whole index of a supported version.
#[must_use]
pub fn contains(bytes: &[u8], id_bytes: usize, paths: &[&str]) -> Option<Vec<bool>> {
    let (mut entries, count) = IndexEntries::new(bytes, id_bytes)?;
    let mut found: BTreeMap<&[u8], bool> = paths.iter().map(|it| (it.as_bytes(), false)).collect();
    for _ in 0..count {
        entries.advance()?;
        let name = entries.name.as_slice();
        let ends = memchr::memchr_iter(b'/', name).chain([name.len()]);
        for end in ends {
            if let Some(found) = name.get(..end).and_then(|it| found.get_mut(it)) {
                *found = true;
            }
        }
    }
    Some(paths.iter().map(|it| found.get(it.as_bytes()).copied().unwrap_or_default()).collect())
}

/// Returns an index of version 2 with these names, whose files have no content. For simulated machines.
#[must_use]
pub fn with_names(names: BTreeSet<&str>) -> Vec<u8> {
    let mut bytes = [&b"DIRC"[..], &2_u32.to_be_bytes()].concat();
    bytes.extend(u32::try_from(names.len()).unwrap_or(u32::MAX).to_be_bytes());
    for name in names {
        let start = bytes.len();
        bytes.extend([0; STAT_BYTES + SHA1_BYTES]);
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX).min(NAME_LENGTH);
        bytes.extend(length.to_be_bytes());
        bytes.extend(name.as_bytes());
        let filled = ((bytes.len() - start) / 8 + 1) * 8;
        bytes.resize(start + filled, 0);
    }
    bytes
}

/// Iterator over the entries of an index.
struct IndexEntries<'b> {
    bytes: &'b [u8],
    id_bytes: usize,
    version: u32,
    at: usize,
    name: Vec<u8>,
}

impl<'b> IndexEntries<'b> {
    /// Reads the header. Returns the entries and their number; `None` for another format.
    fn new(bytes: &'b [u8], id_bytes: usize) -> Option<(Self, u32)> {
        let header = bytes.get(..HEADER_BYTES)?;
        let (version, count) = (number(header, 4)?, number(header, 8)?);
        let is_known = header.starts_with(b"DIRC") && (2..=4).contains(&version);
        let entries = Self { bytes, id_bytes, version, at: HEADER_BYTES, name: Vec::new() };
        is_known.then_some((entries, count))
    }
}

impl IndexEntries<'_> {
    /// Reads the name of the next entry. `None` if the bytes end before.
    fn advance(&mut self) -> Option<()> {
        let start = self.at;
        let flags_at = start.checked_add(STAT_BYTES)?.checked_add(self.id_bytes)?;
        let flags = self.bytes.get(flags_at..flags_at.checked_add(2)?)?;
        let flags = u16::from_be_bytes(flags.try_into().ok()?);
        let extra = if self.version >= 3 && flags & EXTENDED != 0 { 2 } else { 0 };
        let mut at = flags_at.checked_add(2)?.checked_add(extra)?;
        if self.version == 4 {
            let (dropped, after) = self.variable_width(at)?;
            let kept = self.name.len().checked_sub(dropped)?;
            self.name.truncate(kept);
            at = after;
        } else {
            self.name.clear();
        }
        let rest = self.bytes.get(at..)?;
        let length = flags & NAME_LENGTH;
        let length = if self.version == 4 || length == NAME_LENGTH {
            memchr::memchr(0, rest)?
        } else {
            usize::from(length)
        };
        self.name.extend_from_slice(rest.get(..length)?);
        let end = at.checked_add(length)?;
        self.at = if self.version == 4 {
            end.checked_add(1)?
        } else {
            // One to eight NUL bytes fill an entry up to a multiple of eight.
            start.checked_add((end.checked_sub(start)? / 8).checked_add(1)?.checked_mul(8)?)?
        };
        Some(())
    }

    /// Returns a number in git's variable-width encoding, and the position behind it.
    fn variable_width(&self, mut at: usize) -> Option<(usize, usize)> {
        let mut byte = *self.bytes.get(at)?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            at = at.checked_add(1)?;
            byte = *self.bytes.get(at)?;
            value =
                value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some((value, at.checked_add(1)?))
    }
}

/// Returns the big-endian number at a position.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an index of version 2 or 4 with these names.
    fn index(version: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut before = "";
        for name in names {
            let start = bytes.len();
            bytes.extend([7; STAT_BYTES + 20]);
            let length = u16::try_from(name.len().min(usize::from(NAME_LENGTH))).unwrap();
            bytes.extend(length.to_be_bytes());
            if version == 4 {
                let same = before.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
                bytes.push(u8::try_from(before.len() - same).unwrap());
                bytes.extend(name.as_bytes().iter().skip(same));
                bytes.push(0);
            } else {
                bytes.extend(name.as_bytes());
                let filled = ((bytes.len() - start) / 8 + 1) * 8;
                bytes.resize(start + filled, 0);
            }
            before = name;
        }
        bytes
    }

    fn found(bytes: &[u8]) -> Scan {
        scan(bytes, 20, b".policyd/", |name| name.starts_with(b".policyd/policies/"))
    }

    #[test]
    fn a_tracked_file_is_found_in_each_version() {
        let names =
            [".gitignore", ".policyd/policies/a.yaml", ".policyd/runs/1/state.json", "src/a"];
        for version in [2, 3, 4] {
            let bytes = index(version, &names);
            assert_eq!(found(&bytes), Scan::Tracked(".policyd/runs/1/state.json".to_owned()));
        }
        let upper = index(2, &[".Policyd/paused.json", "a"]);
        assert_eq!(found(&upper), Scan::Tracked(".Policyd/paused.json".to_owned()));
    }

    #[test]
    fn policies_and_other_files_are_no_state() {
        for names in [
            &[][..],
            &["a"],
            &[".gitignore", ".policyd/policies/a.yaml", ".policyd0", "a"],
            &["sub/.policyd/x"],
            &["sub/.policyd"],
            &[".policy"],
        ] {
            assert_eq!(found(&index(2, names)), Scan::Untracked, "{names:?}");
            assert_eq!(found(&index(4, names)), Scan::Untracked, "{names:?}");
        }
    }

    #[test]
    fn a_file_a_link_or_a_submodule_in_its_place_is_state() {
        for name in [".policyd", ".Policyd"] {
            let names = [".gitignore", name, "a"];
            for version in [2, 4] {
                let scan = found(&index(version, &names));
                assert_eq!(scan, Scan::Tracked(name.to_owned()), "{version}");
            }
        }
    }

    #[test]
    fn a_part_of_an_index_is_incomplete_until_it_decides() {
        let names = [".gitignore", ".policyd/x", "a", "b"];
        let bytes = index(2, &names);
        let whole = Scan::Tracked(".policyd/x".to_owned());
        for length in 0..bytes.len() {
            let part = found(&bytes[..length]);
            assert!(part == Scan::Incomplete || part == whole, "{length}: {part:?}");
        }
        assert_eq!(found(&bytes[..200]), whole, "the rest is not needed");
        assert_eq!(found(b"DIRC\0\0\0\x05\0\0\0\x01"), Scan::Malformed);
        assert_eq!(found(b"PACK\0\0\0\x02\0\0\0\x01"), Scan::Malformed);
    }

    #[test]
    fn a_path_is_tracked_as_a_file_or_as_a_directory() {
        for version in [2, 4] {
            let bytes = index(version, &["a/b/c.rs", "a.rs"]);
            let found = contains(&bytes, 20, &["a.rs", "a/b", "a", "a/b/c", "b", "c.rs"]);
            assert_eq!(found, Some(vec![true, true, true, false, false, false]));
            assert_eq!(
                contains(&bytes[..bytes.len() / 2], 20, &["a.rs"]),
                None,
                "a part says nothing"
            );
        }
        let long = format!(".a/{}", "x".repeat(5_000));
        let made = with_names([long.as_str(), "b"].into());
        assert_eq!(contains(&made, 20, &["b", &long, "c"]), Some(vec![true, true, false]));
    }

    #[test]
    fn a_name_longer_than_its_flags_can_say_is_read() {
        let long = format!(".a/{}", "x".repeat(5000));
        let bytes = index(2, &[&long, ".policyd/x"]);
        assert_eq!(found(&bytes), Scan::Tracked(".policyd/x".to_owned()));
    }
}
