//! The recorded sessions in files and folders: each with its own transcript and those of its
//! subagents, which the client keeps in a folder of the session's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use policyd_base::limits;
use policyd_world::{FileKind, FileStat, World};
use policyd_yaml::time::Timestamp;

/// One transcript.
pub struct Transcript {
    pub path: PathBuf,
    pub modified: Timestamp,
    bytes: u64,
}

impl Transcript {
    /// The subagent whose transcript it is, by its name: `agent-<id>.jsonl`.
    pub fn agent(&self) -> Option<String> {
        let stem = self.path.file_stem()?.to_str()?;
        stem.strip_prefix("agent-").map(str::to_owned)
    }
}

/// One session.
pub struct ReplaySession {
    /// Name of its transcript.
    pub id: String,
    pub transcripts: Vec<Transcript>,
}

impl ReplaySession {
    /// Returns the size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.transcripts.iter().map(|it| it.bytes).sum()
    }
}

/// What was found.
#[derive(Default)]
pub struct FoundSessions {
    /// In the order of their paths.
    pub sessions: Vec<ReplaySession>,
    /// Files and folders that could not be looked at, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Finds the sessions in files and folders, those that did not change since `oldest` left out.
pub fn find(world: &dyn World, paths: &[PathBuf], oldest: Timestamp) -> FoundSessions {
    let (folders, files, unreadable) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut search = Search { world, oldest, root: None, folders, files, unreadable };
    for path in paths {
        search.root = world.real_path(path).ok();
        search.path(path, 0);
    }
    // The shortest path first: a session's own transcript before those of its subagents, and a file
    // before the links to it, which are not counted again.
    let depth = |it: &Transcript| it.path.components().count();
    let mut files = search.files;
    files.sort_by(|(_, one), (_, other)| {
        depth(one).cmp(&depth(other)).then_with(|| one.path.cmp(&other.path))
    });
    let mut seen = BTreeSet::new();
    let mut sessions: BTreeMap<PathBuf, Vec<Transcript>> = BTreeMap::new();
    for (known, it) in files {
        if seen.insert(known) {
            sessions.entry(session_of(&it.path)).or_default().push(it);
        }
    }
    let sessions = sessions.into_iter().map(|(key, transcripts)| {
        let id = key.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        ReplaySession { id, transcripts }
    });
    FoundSessions { sessions: sessions.collect(), unreadable: search.unreadable }
}

/// What a file or folder is known by: its identity, or its path where the machine tells none.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FileIdentity {
    Identity(u64),
    Path(PathBuf),
}

struct Search<'w> {
    world: &'w dyn World,
    oldest: Timestamp,
    /// The path that was named, without links. A link in it cannot lead out.
    root: Option<PathBuf>,
    /// Folders looked at so far: links may lead in a ring.
    folders: BTreeSet<FileIdentity>,
    files: Vec<(FileIdentity, Transcript)>,
    unreadable: Vec<(String, String)>,
}

impl Search<'_> {
    /// Looks at a path; `depth` folders lie between it and the one that was named.
    fn path(&mut self, path: &Path, depth: usize) {
        let is_wanted = depth == 0 || path.extension().is_some_and(|it| it == "jsonl");
        if depth > 0 && self.leads_out(path) {
            let is_folder = self.world.stat(path).is_ok_and(|it| it.kind == FileKind::Folder);
            if is_wanted || is_folder {
                let why =
                    "leads out of the directory, so it was not read; name its target to read it";
                self.complain(path, why.to_owned());
            }
            return;
        }
        match self.world.stat(path) {
            Ok(stat) if stat.kind == FileKind::Folder => self.folder(path, &stat, depth),
            Ok(stat) if is_wanted && stat.kind == FileKind::File => self.file(path, &stat),
            Ok(_) => {}
            Err(error) if is_wanted => self.complain(path, error.to_string()),
            // A dangling link whose name is not that of a transcript.
            Err(_) => {}
        }
    }

    fn leads_out(&self, path: &Path) -> bool {
        let is_link = self.world.entry(path).is_ok_and(|it| it.link.is_some());
        let target = is_link.then(|| self.world.real_path(path).ok()).flatten();
        target.zip(self.root.as_ref()).is_some_and(|(target, root)| !target.starts_with(root))
    }

    fn folder(&mut self, path: &Path, stat: &FileStat, depth: usize) {
        if depth >= limits::TRANSCRIPT_FOLDER_DEPTH_MAX {
            return self.complain(path, "too many folders in folders".to_owned());
        }
        if !self.folders.insert(known(path, stat)) {
            return;
        }
        match self.world.list(path) {
            Ok(names) => names.iter().for_each(|name| self.path(&path.join(name), depth + 1)),
            Err(error) => self.complain(path, error.to_string()),
        }
    }

    fn file(&mut self, path: &Path, stat: &FileStat) {
        if stat.modified >= self.oldest {
            let (modified, bytes) = (stat.modified, stat.length);
            let it = Transcript { path: path.to_path_buf(), modified, bytes };
            self.files.push((known(path, stat), it));
        }
    }

    fn complain(&mut self, path: &Path, why: String) {
        self.unreadable.push((path.display().to_string(), why));
    }
}

fn known(path: &Path, stat: &FileStat) -> FileIdentity {
    match stat.identity {
        0 => FileIdentity::Path(path.to_path_buf()),
        identity => FileIdentity::Identity(identity),
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
