//! The chain of a log: each line contains the hash of the line before, across rotations. Contains: the append, and the
//! verification. Does not contain: what the entries say.
//!
//! A short lock serializes the writers of a chain. A writer that does not get it in time appends all the same, and marks its
//! line `unlocked`: a decision is not lost because another process stopped with the lock. Such a line and the one of the other
//! writer can have the same line before them. The file of the head contains the hash of the newest line, so that the removal of
//! the newest lines is noticed as well. At each stop, `log_witness` saves the same in the directory of the user.
//!
//! The chain has no key: a program that can write the log can also compute all of it again. It finds what was changed by
//! hand, by an editor, by a damaged disk, or by an agent that does not know of it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::log::{self, line};
use super::log_files::{FILE_BYTES_MAX, paths, rotated};
use super::log_witness;
use policyd_base::limits::{LOG_BYTES_MAX, LOG_FILES_MAX};
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

/// Key of the hash of the line before. Empty in the first line of a log.
const PREVIOUS: &str = "previous";
/// Key of the mark of a line that was written without the lock.
const UNLOCKED: &str = "unlocked";
/// Hexadecimal digits of a hash.
const DIGITS: usize = 32;
/// Longest wait for the lock. A writer holds it for less than a millisecond.
const LOCK_WAIT: Duration = Duration::from_millis(200);
/// Lines within which two writers without a lock can cross.
const CROSSING_MAX: usize = 64;

/// Appends entries to a chained log; rotates it before, if it is full. Returns whether they were written.
pub fn append(world: &dyn World, path: &Path, entries: &[Value]) -> bool {
    let held = world.lock(&log::lock_path(path), LOCK_WAIT);
    let is_locked = held.is_ok();
    let mut last = log::last_line(world, path);
    if is_locked && last.as_ref().is_some_and(|it| it.length >= LOG_BYTES_MAX) {
        log::rotate_locked(world, path);
        last = log::last_line(world, path);
    }
    let is_torn = last.as_ref().is_some_and(|it| it.is_torn);
    // The first line of a file follows the last one of the file that was rotated before.
    let before = last.or_else(|| log::last_line(world, &rotated(path, 1)));
    let mut previous = before.map_or_else(String::new, |it| hash(&it.text));
    let mut text = Vec::new();
    if is_torn {
        text.push(b'\n');
    }
    for entry in entries {
        let mut entry = entry.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.insert(PREVIOUS.to_owned(), previous.as_str().into());
            if !is_locked {
                fields.insert(UNLOCKED.to_owned(), true.into());
            }
        }
        let line = line(&entry);
        previous = hash(line.as_bytes());
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    let is_written = world.append(path, &text).is_ok();
    if is_written && !entries.is_empty() {
        // Without it, the removal of the newest lines is not noticed.
        drop(world.write(&head_path(path), previous.as_bytes()));
    }
    is_written
}

/// Saves the hash of the newest line in the user's own state directory.
pub fn save_witness(world: &dyn World, log: &Path) {
    let head = world.read(&head_path(log), DIGITS.saturating_mul(2)).ok();
    let head = head.and_then(|it| String::from_utf8(it).ok()).filter(|it| it.len() == DIGITS);
    if let Some(head) = head {
        log_witness::save(world, log, head);
    }
}

/// Returns the path of the file with the hash of the newest line.
fn head_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.head"))
}

fn hash(line: &[u8]) -> String {
    let mut text = hex(&Sha256::digest(line));
    text.truncate(DIGITS);
    text
}

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainReport {
    /// Number of lines.
    pub lines: usize,
    /// Lines before the chain, which an earlier version wrote.
    pub unchained: usize,
    /// Lines that were written without the lock.
    pub unlocked: usize,
    /// What was removed, changed, or added.
    pub problems: Vec<ChainProblem>,
}

/// A break of the chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainProblem {
    /// The first line names a line before it, and no file with that line is there.
    #[error("{}:1: lines before it were removed", .0.display())]
    Beginning(PathBuf),
    /// The line before is not the one that this line names.
    #[error("{}:{line}: the line before it was changed, or lines between them were removed", file.display())]
    Broken { file: PathBuf, line: usize },
    /// Two lines name the same line before them, and no writer lacked the lock.
    #[error("{}:{line}: it was added or moved: an earlier line follows the same line", file.display())]
    Added { file: PathBuf, line: usize },
    /// The line has no hash, though lines before it have one.
    #[error("{}:{line}: it has no hash: an earlier policyd or another program wrote it", file.display())]
    Foreign { file: PathBuf, line: usize },
    /// The newest line is not the one that was written last.
    #[error("{}: the newest lines were removed or changed", .0.display())]
    End(PathBuf),
    /// The newest line at the last stop is missing.
    #[error("{}: lines from before {at} were removed or changed", log.display())]
    Missing { log: PathBuf, at: Timestamp },
}

/// A file of a log and its bytes.
struct ChainFile {
    path: PathBuf,
    number: usize,
    bytes: Vec<u8>,
}

/// What a line says about the chain.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ChainLink {
    previous: Option<String>,
    unlocked: bool,
}

/// Verifies the chain of a log.
///
/// # Errors
/// A file of the log cannot be read.
pub fn verify(world: &dyn World, log: &Path) -> Result<ChainReport, WorldError> {
    let mut files = Vec::new();
    for (number, path) in paths(log).enumerate() {
        match world.read(&path, FILE_BYTES_MAX) {
            Ok(bytes) => files.push(ChainFile { path, number, bytes }),
            Err(WorldError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    files.reverse();
    // Read after the log: a line that is written meanwhile makes both newer.
    let head = world.read(&head_path(log), DIGITS.saturating_mul(2)).ok();
    let witness = log_witness::load(world, log);
    let mut chain =
        ChainCheck { wanted: witness.as_ref().map(|it| it.head.clone()), ..ChainCheck::default() };
    for file in &files {
        chain.file(file);
    }
    // The oldest file of a full series is removed by rotation, with the line of the last stop.
    let is_full = files.first().is_some_and(|it| it.number >= LOG_FILES_MAX);
    if let Some(witness) = witness.filter(|_| chain.wanted.is_some() && !is_full) {
        let (log, at) = (log.to_path_buf(), witness.at);
        chain.report.problems.push(ChainProblem::Missing { log, at });
    }
    let head = head.and_then(|it| String::from_utf8(it).ok()).filter(|it| it.len() == DIGITS);
    // The head can be older than the newest line: the process ended in between.
    if head.is_some_and(|head| !chain.recent.iter().any(|it| it.hash == head)) {
        chain.report.problems.push(ChainProblem::End(log.to_path_buf()));
    }
    Ok(chain.report)
}

/// Where a line is.
struct ChainPosition {
    file: PathBuf,
    line: usize,
}

/// A line that was read before.
struct KnownLine {
    hash: String,
    previous: String,
    is_unlocked: bool,
}

/// A verification that goes on from line to line.
#[derive(Default)]
struct ChainCheck {
    report: ChainReport,
    /// The last lines, oldest first.
    recent: VecDeque<KnownLine>,
    has_begun: bool,
    /// Hash of a line that must be there, until it is found.
    wanted: Option<String>,
}

impl ChainCheck {
    fn file(&mut self, file: &ChainFile) {
        let lines = file.bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty());
        for (number, line) in (1..).zip(lines) {
            self.line(file, number, line);
        }
    }

    fn line(&mut self, file: &ChainFile, number: usize, line: &[u8]) {
        let link: ChainLink = serde_json::from_slice(line).unwrap_or_default();
        let is_first = self.report.lines == 0;
        self.report.lines = self.report.lines.saturating_add(1);
        self.report.unlocked = self.report.unlocked.saturating_add(usize::from(link.unlocked));
        let location = || ChainPosition { file: file.path.clone(), line: number };
        match &link.previous {
            // A torn line is in the chain: the next writer hashes it.
            None if serde_json::from_slice::<Value>(line).is_err() => {}
            None if self.has_begun => {
                let ChainPosition { file, line } = location();
                self.report.problems.push(ChainProblem::Foreign { file, line });
            }
            None => self.report.unchained = self.report.unchained.saturating_add(1),
            Some(previous) if is_first => {
                // The oldest file of a full series follows one that was removed by rotation.
                if !previous.is_empty() && file.number < LOG_FILES_MAX {
                    self.report.problems.push(ChainProblem::Beginning(file.path.clone()));
                }
            }
            Some(previous) => self.follow(previous, link.unlocked, location()),
        }
        self.has_begun |= link.previous.is_some();
        let previous = link.previous.unwrap_or_default();
        let is_unlocked = link.unlocked;
        let hash = hash(line);
        self.wanted.take_if(|it| *it == hash);
        self.recent.push_back(KnownLine { hash, previous, is_unlocked });
        if self.recent.len() > CROSSING_MAX {
            self.recent.pop_front();
        }
    }

    /// Checks that a line follows a known one.
    fn follow(&mut self, previous: &str, is_unlocked: bool, location: ChainPosition) {
        if self.recent.back().is_some_and(|it| it.hash == previous) {
            return;
        }
        let ChainPosition { file, line } = location;
        let is_known = self.recent.iter().any(|it| it.hash == previous);
        let mut siblings = self.recent.iter().filter(|it| it.previous == previous);
        let crossed = is_unlocked || siblings.any(|it| it.is_unlocked);
        self.report.problems.extend(match (is_known, crossed) {
            (true, true) => None,
            (true, false) => Some(ChainProblem::Added { file, line }),
            (false, _) => Some(ChainProblem::Broken { file, line }),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use policyd_world::fake::FakeWorld;

    const LOG: &str = "/work/decisions.jsonl";

    fn written(world: &FakeWorld, count: usize) {
        for number in 0..count {
            assert!(append(world, Path::new(LOG), &[json!({"n": number})]));
        }
    }

    fn problems(world: &FakeWorld) -> Vec<ChainProblem> {
        verify(world, Path::new(LOG)).unwrap().problems
    }

    fn lines(world: &FakeWorld) -> Vec<String> {
        let text = String::from_utf8(world.get(LOG).unwrap()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_chain_goes_on_across_rotations_and_its_oldest_file_can_go() {
        let world = FakeWorld::new();
        let long = "x".repeat(usize::try_from(LOG_BYTES_MAX).unwrap());
        for number in 0..7 {
            assert!(append(&world, Path::new(LOG), &[json!({"n": number}), json!({"text": long})]));
            assert_eq!(problems(&world), [], "{number}");
        }
        assert!(world.get(format!("{LOG}.{LOG_FILES_MAX}")).is_some());
        // A file in between is missing.
        world.remove(&rotated(Path::new(LOG), 1)).unwrap();
        assert!(matches!(problems(&world).as_slice(), [ChainProblem::Broken { line: 1, .. }]));
    }

    #[test]
    fn a_log_that_is_removed_with_its_head_is_noticed() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        written(&world, 2);
        save_witness(&world, Path::new(LOG));
        written(&world, 1);
        assert_eq!(problems(&world), []);
        let all = lines(&world);
        let is_missing = |world: &FakeWorld| {
            matches!(problems(world).as_slice(), [ChainProblem::Missing { .. }])
        };
        world.remove(&head_path(Path::new(LOG))).unwrap();
        world.put(LOG, format!("{}\n", all[0]));
        assert!(is_missing(&world), "{:?}", problems(&world));
        world.remove(Path::new(LOG)).unwrap();
        assert!(is_missing(&world));
        // The log begins again, until the next stop saves its newest line.
        written(&world, 1);
        assert!(is_missing(&world));
        save_witness(&world, Path::new(LOG));
        assert_eq!(problems(&world), []);
    }

    #[test]
    fn lines_of_an_earlier_version_and_a_torn_line_are_no_break() {
        let world = FakeWorld::new();
        world.put(LOG, "{\"n\": 1}\n{\"n\": 2}\n");
        written(&world, 2);
        let old = world.get(LOG).unwrap();
        world.put(LOG, [old.as_slice(), b"{\"n\": 3, \"previous\""].concat());
        written(&world, 1);
        let report = verify(&world, Path::new(LOG)).unwrap();
        assert_eq!((report.lines, report.unchained, report.problems), (6, 2, vec![]));
        // An earlier version writes again.
        let old = world.get(LOG).unwrap();
        world.put(LOG, [old.as_slice(), b"{\"n\": 4}\n"].concat());
        assert!(matches!(problems(&world).as_slice(), [ChainProblem::Foreign { line: 7, .. }]));
    }

    #[test]
    fn writers_without_the_lock_are_told_apart_from_added_lines() {
        let world = FakeWorld::new();
        written(&world, 2);
        let held = world.lock(&log::lock_path(Path::new(LOG)), Duration::ZERO).unwrap();
        written(&world, 1);
        drop(held);
        written(&world, 1);
        let report = verify(&world, Path::new(LOG)).unwrap();
        assert_eq!((report.lines, report.unlocked, report.problems), (4, 1, vec![]));
        // Both wrote after the same line.
        let [first, second, third, _] = <[String; 4]>::try_from(lines(&world)).unwrap();
        let mut crossed: Value = serde_json::from_str(&third).unwrap();
        crossed["unlocked"] = json!(false);
        crossed["n"] = json!("crossed");
        world.put(LOG, [first.clone(), second.clone(), third, line(&crossed)].join("\n") + "\n");
        world.remove(&head_path(Path::new(LOG))).unwrap();
        assert_eq!(problems(&world), []);
        let mut added: Value = serde_json::from_str(&second).unwrap();
        added["n"] = json!("added");
        world.put(LOG, [first, second, line(&added)].join("\n") + "\n");
        assert!(matches!(problems(&world).as_slice(), [ChainProblem::Added { line: 3, .. }]));
    }
}
