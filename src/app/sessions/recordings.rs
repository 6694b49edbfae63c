//! Directories in which clients record the sessions of all projects.

use std::path::PathBuf;

use crate::install::places::{PLACES, SettingsPlace};
use policyd_harness::{Harness, TranscriptDirectory};
use policyd_store::user::UserDirectory;
use policyd_world::World;

/// The directory in which a client records its sessions.
pub struct RecordingDirectory {
    /// The client.
    pub harness: &'static Harness,
    /// The directory. It might not exist.
    pub path: PathBuf,
}

/// Returns the directories of all clients that record sessions in files.
pub fn directories(world: &dyn World) -> Vec<RecordingDirectory> {
    let directory = |place: &SettingsPlace| {
        let path = match place.harness.transcripts.as_ref()?.directory {
            TranscriptDirectory::OfClient(below) => place.user_folder(world)?.join(below),
            TranscriptDirectory::OfPlugin(below) => UserDirectory::State.path(world)?.join(below),
        };
        Some(RecordingDirectory { harness: place.harness, path })
    };
    PLACES.iter().filter_map(directory).collect()
}
