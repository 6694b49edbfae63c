//! A World of a few files in memory, enough to read a transcript and keep a cursor.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use policyd::time::Timestamp;
use policyd::world::{
    Command, CommandOutput, FileKind, FileStat, HeldLock, OpenFile, World, WorldError,
};

/// Identity and content.
type File = (u64, Rc<[u8]>);

#[derive(Default, Clone)]
pub(crate) struct MemoryWorld {
    files: RefCell<BTreeMap<PathBuf, File>>,
    folders: RefCell<Vec<PathBuf>>,
    identities: Cell<u64>,
    writes_forbidden: Cell<bool>,
    reads_left: Cell<Option<u64>>,
    elapsed: Cell<Duration>,
    tick: Cell<Duration>,
}

impl MemoryWorld {
    /// Sets the content; the file stays the same file.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let known = self.files.borrow().get(Path::new(path)).map(|(identity, _)| *identity);
        match known {
            Some(identity) => {
                self.files.borrow_mut().insert(path.into(), (identity, bytes.into()));
            }
            None => self.replace(path, bytes),
        }
    }

    /// Sets the content of a new file under the same name.
    pub(crate) fn replace(&self, path: &str, bytes: &[u8]) {
        self.identities.set(self.identities.get() + 1);
        self.files.borrow_mut().insert(path.into(), (self.identities.get(), bytes.into()));
    }

    pub(crate) fn make_folder(&self, path: &str) {
        self.folders.borrow_mut().push(path.into());
    }

    pub(crate) fn forbid_writes(&self) {
        self.writes_forbidden.set(true);
    }

    pub(crate) fn fail_reads_after(&self, count: u64) {
        self.reads_left.set(Some(count));
    }

    /// Lets time pass at each look at the clock.
    pub(crate) fn tick(&self, step: Duration) {
        self.tick.set(step);
    }
}

struct Opened {
    identity: u64,
    bytes: Rc<[u8]>,
    reads_left: Option<u64>,
}

impl OpenFile for Opened {
    fn stat(&self) -> Result<FileStat, WorldError> {
        Ok(FileStat {
            kind: FileKind::File,
            length: self.bytes.len() as u64,
            modified: Timestamp::from_millis(0),
            identity: self.identity,
        })
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        if let Some(left) = self.reads_left {
            self.reads_left =
                Some(left.checked_sub(1).ok_or(WorldError::Refused("input/output error".into()))?);
        }
        let rest = self.bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn unused<T>() -> T {
    panic!("reading a transcript does not do this")
}

impl World for MemoryWorld {
    fn elapsed(&self) -> Duration {
        self.elapsed.set(self.elapsed.get() + self.tick.get());
        self.elapsed.get()
    }
    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        if self.folders.borrow().iter().any(|folder| folder == path) {
            return Err(WorldError::NotAFile);
        }
        let files = self.files.borrow();
        let (identity, bytes) = files.get(path).ok_or(WorldError::Missing)?;
        let (identity, bytes) = (*identity, Rc::clone(bytes));
        Ok(Box::new(Opened { identity, bytes, reads_left: self.reads_left.get() }))
    }
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        let files = self.files.borrow();
        let (_, bytes) = files.get(path).ok_or(WorldError::Missing)?;
        if bytes.len() > bytes_max {
            return Err(WorldError::TooLarge(bytes.len() as u64));
        }
        Ok(bytes.to_vec())
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        assert!(!self.writes_forbidden.get(), "written although nothing moved");
        self.put(path.to_str().unwrap(), bytes);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        unused()
    }
    fn sleep(&self, _: Duration) {
        unused()
    }
    fn env(&self, _: &str) -> Option<String> {
        unused()
    }
    fn working_folder(&self) -> PathBuf {
        unused()
    }
    fn process_id(&self) -> u32 {
        unused()
    }
    fn stat(&self, _: &Path) -> Result<FileStat, WorldError> {
        unused()
    }
    fn list(&self, _: &Path) -> Result<Vec<String>, WorldError> {
        unused()
    }
    fn create_folder(&self, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn append(&self, _: &Path, _: &[u8]) -> Result<(), WorldError> {
        unused()
    }
    fn sync_file(&self, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn sync_folder(&self, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn rename(&self, _: &Path, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn exchange(&self, _: &Path, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn remove(&self, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn remove_folder(&self, _: &Path) -> Result<(), WorldError> {
        unused()
    }
    fn lock(&self, _: &Path, _: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        unused()
    }
    fn run(&self, _: &Command) -> Result<CommandOutput, WorldError> {
        unused()
    }
}
