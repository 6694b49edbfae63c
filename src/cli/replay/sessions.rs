//! The recorded sessions in files and folders: each with its own transcript and those of its
//! subagents, which the client keeps in a folder of the session's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::limits;
use crate::time::Timestamp;
use crate::world::{FileKind, World};

/// One transcript.
pub(super) struct Transcript {
    pub(super) path: PathBuf,
    pub(super) modified: Timestamp,
    bytes: u64,
}

impl Transcript {
    /// The subagent whose transcript it is, by its name: `agent-<id>.jsonl`.
    pub(super) fn agent(&self) -> Option<String> {
        let stem = self.path.file_stem()?.to_str()?;
        stem.strip_prefix("agent-").map(str::to_owned)
    }
}

/// One session.
pub(super) struct Session {
    /// Name of its transcript.
    pub(super) id: String,
    pub(super) transcripts: Vec<Transcript>,
}

impl Session {
    pub(super) fn bytes(&self) -> u64 {
        self.transcripts.iter().map(|it| it.bytes).sum()
    }
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// In the order of their paths.
    pub(super) sessions: Vec<Session>,
    /// Files and folders that could not be looked at, and why.
    pub(super) unreadable: Vec<(String, String)>,
}

/// Finds the sessions in files and folders, those that did not change since `oldest` left out.
pub(super) fn find(world: &dyn World, paths: &[PathBuf], oldest: Timestamp) -> Found {
    let mut search = Search { world, oldest, seen: BTreeSet::new(), sessions: BTreeMap::new() };
    let mut unreadable = Vec::new();
    for path in paths {
        search.path(path, true, 0, &mut unreadable);
    }
    let sessions = search.sessions.into_iter().map(|(key, mut transcripts)| {
        let id = key.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        // The session's own transcript comes first.
        transcripts.sort_by(|one, other| {
            let depth = |it: &Transcript| it.path.components().count();
            depth(one).cmp(&depth(other)).then_with(|| one.path.cmp(&other.path))
        });
        Session { id, transcripts }
    });
    Found { sessions: sessions.collect(), unreadable }
}

struct Search<'w> {
    world: &'w dyn World,
    oldest: Timestamp,
    seen: BTreeSet<PathBuf>,
    /// By the path of the session without its ending.
    sessions: BTreeMap<PathBuf, Vec<Transcript>>,
}

impl Search<'_> {
    fn path(
        &mut self,
        path: &Path,
        named: bool,
        depth: usize,
        unreadable: &mut Vec<(String, String)>,
    ) {
        let is_transcript = path.extension().is_some_and(|it| it == "jsonl");
        let stat = match self.world.stat(path) {
            Ok(stat) => stat,
            Err(error) => {
                unreadable.push((path.display().to_string(), error.to_string()));
                return;
            }
        };
        match stat.kind {
            FileKind::Folder if depth < limits::TRANSCRIPT_FOLDER_DEPTH_MAX => {
                match self.world.list(path) {
                    Ok(names) => names.iter().for_each(|name| {
                        self.path(&path.join(name), false, depth.saturating_add(1), unreadable);
                    }),
                    Err(error) => {
                        unreadable.push((path.display().to_string(), error.to_string()));
                    }
                }
            }
            FileKind::File if named || is_transcript => {
                if stat.modified >= self.oldest && self.seen.insert(path.to_path_buf()) {
                    let (modified, bytes) = (stat.modified, stat.length);
                    let it = Transcript { path: path.to_path_buf(), modified, bytes };
                    self.sessions.entry(session_of(path)).or_default().push(it);
                }
            }
            FileKind::File | FileKind::Folder | FileKind::Special => {}
        }
    }
}

/// The session a transcript belongs to: `<session>.jsonl`, `<session>/subagents/…`.
fn session_of(path: &Path) -> PathBuf {
    let parts: Vec<_> = path.components().collect();
    let subagents = parts.iter().rposition(|it| it.as_os_str() == "subagents");
    match subagents.filter(|it| *it > 0).and_then(|it| parts.get(..it)) {
        Some(session) => session.iter().collect(),
        None => path.with_extension(""),
    }
}
