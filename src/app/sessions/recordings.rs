//! Directories in which clients record the sessions of all projects.

use std::path::PathBuf;

use crate::app::install::places::Place;
use crate::harness::Harness;
use crate::store::user::UserDirectory;
use crate::world::World;

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
pub(crate) struct RecordingDirectory {
    /// The client.
    pub(crate) harness: &'static Harness,
    /// The directory. It might not exist.
    pub(crate) path: PathBuf,
}

/// Returns the directories of all clients that record sessions in files.
pub(crate) fn directories(world: &dyn World) -> Vec<RecordingDirectory> {
    let of_user = |(name, below): (&str, &str)| {
        let place = Place::of(name)?;
        Some(RecordingDirectory {
            harness: place.harness,
            path: place.user_folder(world)?.join(below),
        })
    };
    let mut found: Vec<RecordingDirectory> = DIRECTORIES.into_iter().filter_map(of_user).collect();
    let state = UserDirectory::State.path(world);
    found.extend(Place::of("opencode").zip(state).map(|(place, state)| RecordingDirectory {
        harness: place.harness,
        path: state.join(OPENCODE),
    }));
    found
}
