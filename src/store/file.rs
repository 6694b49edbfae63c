//! One durable value in one file: saved so that a power loss at any moment leaves the old or the
//! new value, loaded so that a torn one is noticed and replaced by its sibling.
//! May not live here: what the value means, locks (the caller holds one).
//!
//! One attempt: write the sibling `.NAME.tmp`, sync it, read it back, exchange the two names
//! (rename where the target is missing or the file system cannot exchange), sync the folder.
//! An exchange leaves the previous value in the sibling; the next save writes over it in place,
//! which costs a fifth of replacing a file by rename.
//!
//! INVARIANT: of the two names, at most one is ever being written, and the other holds a whole
//! value, on the disk as well as in memory. Hence a new sibling's name is made durable before the
//! exchange, and a sibling is abandoned (removed, and written again) whenever a sync was refused.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::diagnostic::Code;
use policyd_base::limits::SAVE_ATTEMPTS_MAX;
pub use policyd_policy::Durability;
use policyd_world::{FileKind, World, WorldError};

/// Result of saving a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a block that was not saved must not be spoken"]
pub enum SaveOutcome {
    /// It survives a power loss (as far as `Durability` asks for it).
    Durable {
        /// Failed attempts before this one.
        retries: u32,
    },
    /// It is in place and was read back, but a power loss may bring the old value back.
    Degraded {
        /// Failed attempts.
        retries: u32,
        /// Why the last one failed.
        why: String,
    },
    /// The old value stands.
    NotSaved {
        /// Failed attempts beyond the first.
        retries: u32,
        /// Why the last one failed.
        why: String,
        /// The seed's return code.
        code: Code,
    },
}

/// The step at which an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveStep {
    /// Writing, syncing, or putting in place.
    Save,
    /// Reading back.
    Verify,
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveFailure {
    /// Where it failed.
    pub step: SaveStep,
    /// The operation, and the error of the operating system.
    pub why: String,
}

impl SaveFailure {
    fn new(step: SaveStep, what: &str, error: &WorldError) -> Self {
        Self { step, why: format!("{what}: {error}") }
    }
}

/// The sibling a value is prepared in: `.NAME.tmp`.
#[must_use]
pub fn sibling(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Makes `bytes` the value of the file at `path`. Values must be such that `is_whole` tells a
/// torn one. The caller holds a lock; the folder exists.
pub fn save(world: &dyn World, path: &Path, bytes: &[u8], durability: &Durability) -> SaveOutcome {
    save_noting(world, path, bytes, durability, &mut Vec::new())
}

/// `save`, adding every failed attempt to `failures`.
pub fn save_noting(
    world: &dyn World,
    path: &Path,
    bytes: &[u8],
    durability: &Durability,
    failures: &mut Vec<SaveFailure>,
) -> SaveOutcome {
    let saving = SaveOperation {
        world,
        path,
        folder: path.parent().unwrap_or(Path::new(".")),
        sibling: sibling(path),
        bytes,
        durability,
        unsynced: Cell::new(false),
    };
    let attempts = durability.attempts.clamp(1, SAVE_ATTEMPTS_MAX);
    let (mut reached, mut why) = (SaveStage::Nothing, String::new());
    for attempt in 0..attempts {
        if attempt > 0 {
            world.sleep(durability.delay_after(attempt.saturating_sub(1)));
        }
        let answer = match reached {
            SaveStage::Placed => saving.sync_folder(),
            SaveStage::Nothing | SaveStage::Staged => saving.attempt(attempt > 0, &mut reached),
        };
        match answer {
            Ok(()) => return saving.saved(attempt),
            Err(failure) => {
                why.clone_from(&failure.why);
                failures.push(failure);
            }
        }
    }
    let retries = attempts.saturating_sub(1);
    match saving.last_resort(reached) {
        Ok(()) => SaveOutcome::Degraded { retries, why },
        Err(failure) => {
            failures.extend(failure);
            SaveOutcome::NotSaved { retries, why, code: Code::RetriesExhausted }
        }
    }
}

/// How far the attempts came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SaveStage {
    /// The sibling cannot be trusted.
    Nothing,
    /// The sibling holds the new value, synced and read back.
    Staged,
    /// The target is the new value; its name may not be durable.
    Placed,
}

struct SaveOperation<'a> {
    world: &'a dyn World,
    path: &'a Path,
    folder: &'a Path,
    sibling: PathBuf,
    bytes: &'a [u8],
    durability: &'a Durability,
    /// Whether the file system does not sync.
    unsynced: Cell<bool>,
}

impl SaveOperation<'_> {
    /// The result after an attempt in which every step succeeded. A file system that does not sync ends the
    /// attempts.
    fn saved(&self, retries: u32) -> SaveOutcome {
        match self.unsynced.get() {
            true => {
                SaveOutcome::Degraded { retries, why: format!("sync: {}", WorldError::Unsupported) }
            }
            false => SaveOutcome::Durable { retries },
        }
    }

    fn attempt(&self, again: bool, reached: &mut SaveStage) -> Result<(), SaveFailure> {
        *reached = SaveStage::Nothing;
        let reusable =
            !again && self.world.stat(&self.sibling).is_ok_and(|it| it.kind == FileKind::File);
        if !reusable {
            // Whatever is there: a link, a pipe, a file whose sync was refused. Absence is fine.
            self.world.remove(&self.sibling).ok();
        }
        self.fill(&self.sibling)?;
        *reached = SaveStage::Staged;
        let replaces = self.world.stat(self.path).is_ok();
        if replaces && !reusable {
            self.sync_folder()?;
        }
        self.place(replaces)?;
        *reached = SaveStage::Placed;
        self.sync_folder()
    }

    /// Writes the value into the file at `path`, syncs it and reads it back.
    fn fill(&self, path: &Path) -> Result<(), SaveFailure> {
        let failed = |what| move |error: WorldError| SaveFailure::new(SaveStep::Save, what, &error);
        self.world.write(path, self.bytes).map_err(failed("write"))?;
        if self.durability.fsync {
            match self.world.sync_file(path) {
                Err(WorldError::Unsupported) => self.unsynced.set(true),
                answer => answer.map_err(failed("sync"))?,
            }
        }
        if !self.durability.verify {
            return Ok(());
        }
        match self.world.read(path, self.bytes.len()) {
            Ok(read) if read == self.bytes => Ok(()),
            Ok(_) | Err(WorldError::TooLarge(_)) => {
                Err(SaveFailure { step: SaveStep::Verify, why: "data_mismatch".to_owned() })
            }
            Err(error) => Err(SaveFailure::new(SaveStep::Verify, "read back", &error)),
        }
    }

    fn place(&self, replaces: bool) -> Result<(), SaveFailure> {
        let exchanged = match replaces {
            true => self.world.exchange(&self.sibling, self.path),
            false => Err(WorldError::Unsupported),
        };
        // Only these two say for certain that nothing was exchanged.
        let answer = match exchanged {
            Err(WorldError::Unsupported | WorldError::NotFound) => {
                self.world.rename(&self.sibling, self.path)
            }
            answer => answer,
        };
        answer.map_err(|error| SaveFailure::new(SaveStep::Save, "replace", &error))
    }

    fn sync_folder(&self) -> Result<(), SaveFailure> {
        if !self.durability.fsync {
            return Ok(());
        }
        match self.world.sync_folder(self.folder) {
            // The file system cannot: there is nothing more that could be done.
            Ok(()) | Err(WorldError::Unsupported) => Ok(()),
            Err(error) => Err(SaveFailure::new(SaveStep::Save, "sync folder", &error)),
        }
    }

    /// Runs after the last attempt. `Ok`: the new value is in place. A failure of the last resort itself
    /// is reported where it happens.
    fn last_resort(&self, reached: SaveStage) -> Result<(), Option<SaveFailure>> {
        match reached {
            // Without a whole sibling the old value is not touched.
            SaveStage::Nothing => Err(None),
            // Both names may have changed places on the disk or not: the sibling is not to be
            // written in place by the next save.
            SaveStage::Placed => {
                self.world.remove(&self.sibling).ok();
                Ok(())
            }
            // The sibling stays a whole copy while the target is written in place.
            SaveStage::Staged => {
                self.sync_folder().and_then(|()| self.fill(self.path)).map_err(Some)?;
                self.sync_folder().ok();
                Ok(())
            }
        }
    }
}

/// Replaces a damaged value by a recovered one in a single attempt, through a name of its
/// own: the sibling, which may be the only whole value, is not touched. What was there is kept as
/// `aside`, where one is named.
///
/// # Errors
/// The step that failed; the damaged value and the sibling are as before.
pub fn replace(
    world: &dyn World,
    path: &Path,
    bytes: &[u8],
    durability: &Durability,
    aside: Option<&Path>,
) -> Result<(), SaveFailure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let saving = SaveOperation {
        world,
        path,
        folder: path.parent().unwrap_or(Path::new(".")),
        sibling: path.with_file_name(format!(".{name}.new")),
        bytes,
        durability,
        unsynced: Cell::new(false),
    };
    world.remove(&saving.sibling).ok();
    saving.fill(&saving.sibling)?;
    let failed = |error: WorldError| SaveFailure::new(SaveStep::Save, "quarantine", &error);
    match aside {
        None => saving.place(false)?,
        // At no moment is there no file, which would read as no value; else for a moment only.
        Some(aside) if world.exchange(&saving.sibling, path).is_ok() => {
            world.rename(&saving.sibling, aside).map_err(failed)?;
        }
        Some(aside) => {
            world.rename(path, aside).map_err(failed)?;
            saving.place(false)?;
        }
    }
    saving.sync_folder()
}

/// Writes a foreign file, such as the settings of a client, in a single attempt: through a name
/// beside it, which is gone afterwards. A file that is there keeps its permissions and its owner. Whatever
/// happens, the file holds its old or its new content as a whole.
pub fn rewrite(world: &dyn World, path: &Path, bytes: &[u8]) -> SaveOutcome {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let durability = &Durability::default();
    let saving = SaveOperation {
        world,
        path,
        folder: path.parent().unwrap_or(Path::new(".")),
        sibling: path.with_file_name(format!(".{name}.policyd-new")),
        bytes,
        durability,
        unsynced: Cell::new(false),
    };
    // One that an earlier attempt left behind.
    world.remove(&saving.sibling).ok();
    let failed =
        |error: WorldError| SaveFailure::new(SaveStep::Save, "keep its permissions", &error);
    let staged = saving.fill(&saving.sibling).and_then(|()| match world.stat(path) {
        Ok(_) => world.copy_rights(path, &saving.sibling).map_err(failed),
        Err(_) => Ok(()),
    });
    if let Err(failure) = staged.and_then(|()| saving.place(false)) {
        world.remove(&saving.sibling).ok();
        return SaveOutcome::NotSaved {
            retries: 0,
            why: failure.why,
            code: Code::RetriesExhausted,
        };
    }
    match saving.sync_folder() {
        Ok(()) => saving.saved(0),
        Err(failure) => SaveOutcome::Degraded { retries: 0, why: failure.why },
    }
}

/// Result of loading a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadedDocument {
    /// The file does not exist.
    Missing,
    /// A whole value.
    Whole(Vec<u8>),
    /// The file is torn or was damaged; `backup` is its sibling where that is whole.
    Torn {
        /// The damaged content.
        bytes: Vec<u8>,
        /// The previous or the next value.
        backup: Option<Vec<u8>>,
    },
    /// It cannot be read: too large, not a file, refused. The sibling as above.
    Unreadable {
        /// The error of the operating system.
        error: WorldError,
        /// The previous or the next value.
        backup: Option<Vec<u8>>,
    },
}

/// Reads the value of the file at `path`, of at most `bytes_max` bytes; changes nothing.
/// A missing file is missing even where a sibling exists: a person who deletes it means it.
#[must_use]
pub fn load(world: &dyn World, path: &Path, bytes_max: usize) -> LoadedDocument {
    let backup = || world.read(&sibling(path), bytes_max).ok().filter(|it| is_whole(it));
    match world.read(path, bytes_max) {
        Ok(bytes) if is_whole(&bytes) => LoadedDocument::Whole(bytes),
        Ok(bytes) => LoadedDocument::Torn { bytes, backup: backup() },
        Err(WorldError::NotFound) => LoadedDocument::Missing,
        Err(error) => LoadedDocument::Unreadable { error, backup: backup() },
    }
}

/// Puts the whole sibling of a torn or unreadable file in its place. To be called before the next
/// `save`, which would write over the sibling.
///
/// # Errors
/// The error of the operating system.
pub fn restore(world: &dyn World, path: &Path) -> Result<(), WorldError> {
    world.rename(&sibling(path), path)?;
    // Where this is refused both names still lead to what they led to, and the next save makes a
    // new sibling.
    world.sync_folder(path.parent().unwrap_or(Path::new("."))).ok();
    Ok(())
}

/// Whether bytes are one JSON object or array. No beginning of one is one itself, nor is one
/// followed by zeros, so this tells a torn file from a whole one.
#[must_use]
pub fn is_whole(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
        && std::str::from_utf8(bytes)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

#[cfg(test)]
mod tests;
