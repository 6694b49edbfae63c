//! One JSON document in one file, shared by all processes of a project: looked at without a lock,
//! changed under one that the caller holds. What is damaged is put aside, never lost.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::file::{self, Durability};
use super::layout;
use crate::time::Timestamp;
use crate::world::{HeldLock, World, WorldError};

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// There is none.
    Nothing,
    /// A JSON value.
    Value(Value),
    /// Something else, or more than may be read.
    Damaged,
}

/// Looks at a document.
///
/// # Errors
/// It is there and cannot be read now.
pub fn read(world: &dyn World, path: &Path, bytes_max: usize) -> Result<Held, WorldError> {
    match world.read(path, bytes_max) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_start_matches('\u{feff}').trim();
            // A file that somebody made with `touch` holds nothing.
            if text.is_empty() {
                return Ok(Held::Nothing);
            }
            Ok(serde_json::from_str(text).map_or(Held::Damaged, Held::Value))
        }
        Err(WorldError::Missing) => Ok(Held::Nothing),
        Err(WorldError::TooLarge(_)) => Ok(Held::Damaged),
        Err(error) => Err(error),
    }
}

/// Looks at a document that is to be changed, under its lock: a damaged one is put aside.
///
/// # Errors
/// It is there and cannot be read now, or could not be put aside.
pub fn read_to_change(
    world: &dyn World,
    path: &Path,
    bytes_max: usize,
    now: Timestamp,
) -> Result<Option<Value>, WorldError> {
    match read(world, path, bytes_max)? {
        Held::Nothing => Ok(None),
        Held::Value(value) => Ok(Some(value)),
        Held::Damaged => {
            world.rename(path, &aside(path, now))?;
            Ok(None)
        }
    }
}

/// Where a damaged file is put.
fn aside(path: &Path, now: Timestamp) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(format!(".corrupt-{}", now.millis()));
    PathBuf::from(name)
}

/// Writes a document durably, under its lock.
///
/// # Errors
/// It is too large, or was not saved; the old one stands.
pub fn save(
    world: &dyn World,
    path: &Path,
    text: &str,
    (bytes_max, durability): (usize, &Durability),
) -> Result<(), WorldError> {
    if text.len() > bytes_max {
        return Err(WorldError::TooLarge(text.len() as u64));
    }
    match file::save(world, path, text.as_bytes(), durability) {
        file::Saved::Durable { .. } | file::Saved::Degraded { .. } => Ok(()),
        file::Saved::NotSaved { why, .. } => Err(WorldError::Refused(why)),
    }
}

/// Takes a lock under a root of our own; folders that are not there yet are made.
///
/// # Errors
/// The lock was not free in time, or a folder could not be made.
pub fn lock(
    world: &dyn World,
    root: &Path,
    (lock, folders): (&str, &[&str]),
    wait: Duration,
) -> Result<Box<dyn HeldLock>, WorldError> {
    let path = root.join(lock);
    match world.lock(&path, wait) {
        Err(WorldError::Missing) => {
            for folder in folders {
                world.create_folder(&root.join(folder))?;
            }
            layout::hide(world, root);
            world.lock(&path, wait)
        }
        answer => answer,
    }
}
