//! A dry run: reads and commands use the World beneath, and writes stay in memory. Does not
//! contain: decisions about what to write.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{
    Ancestry, CommandOutput, Confirmation, CrashAnswer, DirectoryWatch, ExternalCommand, FileKind,
    FileStat, HeldLock, HttpRequest, HttpResponse, OpenFile, PathEntry, ProjectVariable,
    RunningProgram, World, WorldError,
};
use crate::server::{DocumentServer, ServerAddress, ServerError};
use policyd_base::limits;
use policyd_yaml::time::Timestamp;

/// Change of a path in the dry run.
#[derive(Debug, Clone)]
enum PathChange {
    File(Vec<u8>, Timestamp),
    Folder,
    Gone,
}

/// A World whose writes are visible only to its own reads.
pub struct OverlayWorld<'a> {
    beneath: &'a dyn World,
    changes: Mutex<BTreeMap<PathBuf, PathChange>>,
}

impl<'a> OverlayWorld<'a> {
    /// Starts a dry run over `beneath`.
    #[must_use]
    pub fn new(beneath: &'a dyn World) -> Self {
        Self { beneath, changes: Mutex::default() }
    }

    fn changes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, PathChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the change of `path`. `None`: it is unchanged.
    fn change(&self, path: &Path) -> Option<PathChange> {
        let changes = self.changes();
        if let Some(change) = changes.get(path) {
            return Some(change.clone());
        }
        let mut folders = path.ancestors().skip(1);
        // A directory that was created here hides the one beneath it.
        let gone =
            |folder| matches!(changes.get(folder), Some(PathChange::Gone | PathChange::Folder));
        folders.any(gone).then_some(PathChange::Gone)
    }

    fn set(&self, path: &Path, change: PathChange) {
        self.changes().insert(path.to_owned(), change);
    }

    /// Returns the content of a file that is about to change. Empty if it does not exist.
    fn content(&self, path: &Path) -> Result<Vec<u8>, WorldError> {
        match self.read(path, limits::STDIN_BYTES_MAX) {
            Err(WorldError::NotFound) => Ok(Vec::new()),
            answer => answer,
        }
    }

    fn require_folder_of(&self, path: &Path) -> Result<(), WorldError> {
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        parent.map_or(Ok(()), |parent| self.stat(parent).map(|_| ()))
    }
}

impl World for OverlayWorld<'_> {
    fn now(&self) -> Timestamp {
        self.beneath.now()
    }

    fn elapsed(&self) -> Duration {
        self.beneath.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        self.beneath.sleep(duration);
    }

    fn env(&self, name: &str) -> Option<String> {
        self.beneath.env(name)
    }

    fn variables(&self) -> Vec<String> {
        self.beneath.variables()
    }

    fn ignored_variables(&self) -> Vec<ProjectVariable> {
        self.beneath.ignored_variables()
    }

    fn program(&self) -> Option<PathBuf> {
        self.beneath.program()
    }

    fn working_folder(&self) -> PathBuf {
        self.beneath.working_folder()
    }

    fn process_id(&self) -> u32 {
        self.beneath.process_id()
    }

    fn user(&self) -> Option<u32> {
        self.beneath.user()
    }

    fn ancestry(&self) -> Ancestry {
        self.beneath.ancestry()
    }

    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError> {
        self.beneath.random(buffer)
    }

    fn confirm(&self, question: &str, word: &str) -> Confirmation {
        self.beneath.confirm(question, word)
    }

    fn input_comes(&self, within: Duration) -> bool {
        self.beneath.input_comes(within)
    }

    fn is_writable(&self, folder: &Path) -> bool {
        self.beneath.is_writable(folder)
    }

    fn prepare_crash_answer(&self, answer: Option<CrashAnswer<'_>>) {
        self.beneath.prepare_crash_answer(answer);
    }

    fn cores(&self) -> usize {
        self.beneath.cores()
    }

    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError> {
        match self.change(path) {
            None => self.beneath.entry(path),
            Some(PathChange::Gone) => Err(WorldError::NotFound),
            Some(PathChange::File(..) | PathChange::Folder) => {
                Ok(PathEntry { link: None, owner: self.user(), shared_write: false })
            }
        }
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        match self.change(path) {
            None => self.beneath.stat(path),
            Some(PathChange::Gone) => Err(WorldError::NotFound),
            Some(PathChange::File(bytes, modified)) => Ok(file_stat(&bytes, modified)),
            Some(PathChange::Folder) => {
                Ok(FileStat { kind: FileKind::Folder, ..file_stat(&[], self.now()) })
            }
        }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        match self.change(path) {
            None => self.beneath.real_path(path),
            Some(PathChange::Gone) => Err(WorldError::NotFound),
            // A path that was written here is not a link.
            Some(PathChange::File(..) | PathChange::Folder) => Ok(path.to_owned()),
        }
    }

    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
        self.beneath.owner_on_way(root, path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        match self.change(path) {
            None => self.beneath.open(path),
            Some(PathChange::Gone) => Err(WorldError::NotFound),
            Some(PathChange::Folder) => Err(WorldError::NotAFile),
            Some(PathChange::File(bytes, modified)) => Ok(Box::new(MemoryFile { bytes, modified })),
        }
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        match self.change(path) {
            None => self.beneath.read(path, bytes_max),
            Some(PathChange::Gone) => Err(WorldError::NotFound),
            Some(PathChange::Folder) => Err(WorldError::NotAFile),
            Some(PathChange::File(bytes, _)) if bytes.len() > bytes_max => {
                Err(WorldError::TooLarge(u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
            }
            Some(PathChange::File(bytes, _)) => Ok(bytes),
        }
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        let mut names: BTreeSet<String> = match self.change(folder) {
            None => self.beneath.list(folder)?.into_iter().collect(),
            Some(PathChange::Folder) => BTreeSet::new(),
            Some(PathChange::Gone | PathChange::File(..)) => return Err(WorldError::NotFound),
        };
        for (path, change) in &*self.changes() {
            if path.parent() != Some(folder) {
                continue;
            }
            let Some(name) = path.file_name().map(|it| it.to_string_lossy().into_owned()) else {
                continue;
            };
            match change {
                PathChange::Gone => names.remove(&name),
                PathChange::File(..) | PathChange::Folder => names.insert(name),
            };
        }
        Ok(names.into_iter().collect())
    }

    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|folder| self.stat(folder).is_err()).collect();
        for folder in missing.into_iter().filter(|it| !it.as_os_str().is_empty()) {
            self.set(folder, PathChange::Folder);
        }
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.require_folder_of(path)?;
        self.set(path, PathChange::File(bytes.to_vec(), self.now()));
        Ok(())
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.require_folder_of(path)?;
        let mut content = self.content(path)?;
        content.extend_from_slice(bytes);
        self.set(path, PathChange::File(content, self.now()));
        Ok(())
    }

    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        self.stat(path).map(|_| ())
    }

    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.stat(from).and_then(|_| self.stat(to)).map(|_| ())
    }

    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        self.stat(path).map(|_| ())
    }

    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.stat(path).map(|_| ())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        let content = self.read(from, limits::STDIN_BYTES_MAX)?;
        self.write(to, &content)?;
        self.set(from, PathChange::Gone);
        Ok(())
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        let first = self.read(one, limits::STDIN_BYTES_MAX)?;
        let second = self.read(other, limits::STDIN_BYTES_MAX)?;
        self.write(one, &second)?;
        self.write(other, &first)
    }

    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        self.stat(path)?;
        self.set(path, PathChange::Gone);
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.stat(path)?;
        self.changes().retain(|it, _| !it.starts_with(path));
        self.set(path, PathChange::Gone);
        Ok(())
    }

    fn lock(&self, _path: &Path, _wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        Ok(Box::new(NoLock)) // Nothing is written, so no other process must wait.
    }

    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
        self.beneath.run(command)
    }

    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError> {
        self.beneath.start(command)
    }

    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        match request.method.has_body() {
            true => Err(WorldError::Unsupported),
            false => self.beneath.request(request),
        }
    }

    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        self.beneath.watch(folders)
    }

    fn note_interrupts(&self) {
        self.beneath.note_interrupts();
    }

    fn interrupted(&self) -> bool {
        self.beneath.interrupted()
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        self.beneath.kill_marked(variable, value)
    }
    fn connect(
        &self,
        _address: &ServerAddress,
        _limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        Err(ServerError::DryRun)
    }
}

fn file_stat(bytes: &[u8], modified: Timestamp) -> FileStat {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    FileStat { kind: FileKind::File, length, modified, created: None, identity: 0 }
}

struct NoLock;

impl HeldLock for NoLock {}

struct MemoryFile {
    bytes: Vec<u8>,
    modified: Timestamp,
}

impl OpenFile for MemoryFile {
    fn stat(&self) -> Result<FileStat, WorldError> {
        Ok(file_stat(&self.bytes, self.modified))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.bytes.get(start..).unwrap_or_default();
        buffer.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Ok(rest.len().min(buffer.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWorld;

    #[test]
    fn writes_are_seen_and_never_reach_the_disk() {
        let world = FakeWorld::new();
        world.put("/work/a", "old");
        world.put("/work/sub/b", "b");
        let dry = OverlayWorld::new(&world);
        dry.append(Path::new("/work/a"), b" new").unwrap();
        dry.create_folder(Path::new("/work/x/y")).unwrap();
        dry.write(Path::new("/work/x/y/c"), b"c").unwrap();
        dry.rename(Path::new("/work/x/y/c"), Path::new("/work/x/y/d")).unwrap();
        dry.exchange(Path::new("/work/a"), Path::new("/work/x/y/d")).unwrap();
        dry.remove_folder(Path::new("/work/sub")).unwrap();
        assert_eq!(dry.read(Path::new("/work/a"), 99), Ok(b"c".to_vec()));
        assert_eq!(dry.read(Path::new("/work/x/y/d"), 99), Ok(b"old new".to_vec()));
        assert_eq!(dry.read(Path::new("/work/sub/b"), 99), Err(WorldError::NotFound));
        assert_eq!(dry.list(Path::new("/work")).unwrap(), ["a", "x"]);
        assert_eq!(dry.list(Path::new("/work/x/y")).unwrap(), ["d"]);
        assert_eq!(world.get("/work/a").unwrap(), b"old");
        assert!(
            world.log().iter().all(|line| line.starts_with("read") || line.starts_with("list"))
        );
    }

    #[test]
    fn a_folder_removed_and_made_again_is_empty() {
        let world = FakeWorld::new();
        world.put("/work/sub/b", "b");
        let dry = OverlayWorld::new(&world);
        dry.remove_folder(Path::new("/work/sub")).unwrap();
        dry.create_folder(Path::new("/work/sub")).unwrap();
        assert_eq!(dry.read(Path::new("/work/sub/b"), 99), Err(WorldError::NotFound));
        assert_eq!(dry.list(Path::new("/work/sub")).unwrap(), Vec::<String>::new());
    }
}
