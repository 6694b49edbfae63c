//! Records of hooks that a signal ended: one line for each, with the event and the signal. The handler of the signal
//! writes them, and the next event reports and removes them.

use std::path::PathBuf;

use super::user::UserDirectory;
use policyd_world::{World, WorldError};

/// File in the user's state directory.
const FILE: &str = "crashed-hooks";
/// More is not read: the number of lines is only reported.
const BYTES_MAX: usize = 64 * 1024;

/// One hook that a signal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashedHook {
    /// Name of the event.
    pub event: String,
    /// Number of the signal.
    pub signal: u8,
}

/// Returns the path of the file. `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
#[must_use]
pub fn path(world: &dyn World) -> Option<PathBuf> {
    Some(UserDirectory::State.path(world)?.join(FILE))
}

/// Returns the text of a record before the number of the signal.
#[must_use]
pub fn text(event: &str) -> String {
    event.to_owned()
}

/// Removes the records and returns them. Lines of another form are left out.
pub fn take(world: &dyn World) -> Vec<CrashedHook> {
    let Some(path) = path(world) else { return Vec::new() };
    let bytes = match world.read(&path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(WorldError::NotFound) => return Vec::new(),
        // It is reported, however much it is.
        Err(_) => b"unknown 0".to_vec(),
    };
    // A file that stays is reported again.
    world.remove(&path).ok();
    let text = String::from_utf8_lossy(&bytes);
    let hook = |line: &str| {
        let (event, signal) = line.rsplit_once(' ')?;
        let is_plain = event.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        let signal = signal.parse().ok()?;
        is_plain.then(|| CrashedHook { event: event.to_owned(), signal })
    };
    text.lines().filter_map(hook).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    #[test]
    fn each_record_is_taken_once() {
        let world = FakeWorld::new();
        assert!(take(&world).is_empty());
        world.set_env("HOME", "/home/me");
        assert!(take(&world).is_empty());
        world.put(path(&world).unwrap(), "pre_tool_use 11\nstop 06\n\u{1b}[0m 1\nx\n");
        let hook = |event: &str, signal| CrashedHook { event: event.to_owned(), signal };
        assert_eq!(take(&world), [hook("pre_tool_use", 11), hook("stop", 6)]);
        assert!(take(&world).is_empty());
    }
}
