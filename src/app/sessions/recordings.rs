//! Directories in which clients record the sessions of all projects.

use std::path::PathBuf;

use crate::install::places::SettingsPlace;
use policyd_harness::Harness;
use policyd_store::user::UserDirectory;
use policyd_world::World;

/// Directories below the client's user directory.
const DIRECTORIES: [(&str, &str); 5] = [
    ("claude-code", "projects"),
    ("codex", "sessions"),
    ("gemini", "tmp"),
    ("copilot", "session-state"),
    ("droid", "sessions"),
];

/// Directory below the user's state directory, in which the plugin of OpenCode records sessions.
const OPENCODE: &str = "opencode";

/// The directory in which a client records its sessions.
pub struct RecordingDirectory {
    /// The client.
    pub harness: &'static Harness,
    /// The directory. It might not exist.
    pub path: PathBuf,
}

/// Returns the directories of all clients that record sessions in files.
pub fn directories(world: &dyn World) -> Vec<RecordingDirectory> {
    let of_user = |(name, below): (&str, &str)| {
        let place = SettingsPlace::of(name)?;
        Some(RecordingDirectory {
            harness: place.harness,
            path: place.user_folder(world)?.join(below),
        })
    };
    let mut found: Vec<RecordingDirectory> = DIRECTORIES.into_iter().filter_map(of_user).collect();
    let state = UserDirectory::State.path(world);
    found.extend(SettingsPlace::of("opencode").zip(state).map(|(place, state)| {
        RecordingDirectory { harness: place.harness, path: state.join(OPENCODE) }
    }));
    found
}
