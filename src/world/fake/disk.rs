//! A disk in memory: its visible content, and the content that would survive a power loss. Syncing
//! a file makes its content durable; syncing a directory makes its names durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{FileKind, FileStat, WorldError};
use policyd_yaml::time::Timestamp;

/// Target of a name: an index into `Disk::files`, or an entry that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskNode {
    File(usize),
    Folder,
    Special,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Durable bytes at the beginning that were not written since. Appending keeps them.
    kept: usize,
    /// Whether a failed sync dropped the dirty pages. The visible content is then not durable until
    /// it is written again.
    spoilt: bool,
    modified: Timestamp,
}

/// Unsynced changes that survive a power loss: the first `names` changes of names (they reach a
/// journal in order), and a part of the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survival {
    /// Number of changes of names that survive, oldest first.
    pub names: usize,
    /// Fate of contents that were written and not synced.
    pub content: Content,
}

/// Content of an unsynced file after a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The old content.
    Old,
    /// The new content.
    New,
    /// An empty file.
    Empty,
    /// The first half of the new content.
    Half,
    /// The first half of the new content, followed by zeros.
    Zeros,
}

impl Survival {
    /// Only synced changes survive.
    pub const NOTHING: Self = Self { names: 0, content: Content::Old };
    /// All changes survive.
    pub const EVERYTHING: Self = Self { names: usize::MAX, content: Content::New };

    /// Returns every survival with up to `names_max` changes of names, and the survival of all
    /// changes.
    #[must_use]
    pub fn all(names_max: usize) -> Vec<Self> {
        let contents = [Content::Old, Content::New, Content::Empty, Content::Half, Content::Zeros];
        let names = (0..=names_max).chain([usize::MAX]);
        names.flat_map(|names| contents.map(|content| Self { names, content })).collect()
    }
}

/// One atomic change of names and their targets.
type NameChange = Vec<(PathBuf, Option<DiskNode>)>;

#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    files: Vec<Inode>,
    seen: BTreeMap<PathBuf, DiskNode>,
    durable: BTreeMap<PathBuf, DiskNode>,
    pending: Vec<NameChange>,
}

fn apply(names: &mut BTreeMap<PathBuf, DiskNode>, change: &NameChange) {
    for (path, node) in change {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}

impl Disk {
    fn change(&mut self, change: NameChange) {
        apply(&mut self.seen, &change);
        self.pending.push(change);
    }

    fn inode(&self, path: &Path) -> Result<usize, WorldError> {
        match self.seen.get(path) {
            Some(DiskNode::File(id)) => Ok(*id),
            Some(DiskNode::Folder | DiskNode::Special) => Err(WorldError::NotAFile),
            None => Err(WorldError::NotFound),
        }
    }

    /// Returns the file at `path`, and creates it if it does not exist.
    fn inode_or_new(&mut self, path: &Path) -> Result<&mut Inode, WorldError> {
        let id = match self.inode(path) {
            Err(WorldError::NotFound) => {
                if !path.parent().is_some_and(|parent| self.is_folder(parent)) {
                    return Err(WorldError::NotFound);
                }
                let id = self.files.len();
                self.files.push(Inode::default());
                self.change(vec![(path.to_owned(), Some(DiskNode::File(id)))]);
                id
            }
            answer => answer?,
        };
        self.files.get_mut(id).ok_or(WorldError::NotFound)
    }

    fn is_folder(&self, path: &Path) -> bool {
        path == Path::new("/") || self.seen.get(path) == Some(&DiskNode::Folder)
    }

    pub(super) fn put_folder(&mut self, path: &Path) {
        for folder in path.ancestors().filter(|it| it.parent().is_some()) {
            self.seen.insert(folder.to_owned(), DiskNode::Folder);
            self.durable.insert(folder.to_owned(), DiskNode::Folder);
        }
    }

    pub(super) fn put_special(&mut self, path: &Path) {
        path.parent().into_iter().for_each(|parent| self.put_folder(parent));
        self.seen.insert(path.to_owned(), DiskNode::Special);
        self.durable.insert(path.to_owned(), DiskNode::Special);
    }

    pub(super) fn put(&mut self, path: &Path, bytes: &[u8], modified: Timestamp) {
        path.parent().into_iter().for_each(|parent| self.put_folder(parent));
        let node = DiskNode::File(self.files.len());
        let bytes = bytes.to_vec();
        let kept = bytes.len();
        let spoilt = false;
        self.files.push(Inode { seen: bytes.clone(), durable: bytes, kept, spoilt, modified });
        self.seen.insert(path.to_owned(), node);
        self.durable.insert(path.to_owned(), node);
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        let is_file = |(path, node): (&PathBuf, &DiskNode)| {
            matches!(node, DiskNode::File(_)).then(|| path.clone())
        };
        self.seen.iter().filter_map(is_file).collect()
    }

    pub(super) fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        let blank = FileStat {
            kind: FileKind::Folder,
            length: 0,
            modified: Timestamp::default(),
            created: None,
            identity: 0,
        };
        match self.seen.get(path) {
            Some(DiskNode::File(id)) => {
                let inode = self.files.get(*id).ok_or(WorldError::NotFound)?;
                Ok(FileStat {
                    kind: FileKind::File,
                    length: u64::try_from(inode.seen.len()).unwrap_or(u64::MAX),
                    modified: inode.modified,
                    created: None,
                    identity: u64::try_from(*id).unwrap_or(0).saturating_add(1),
                })
            }
            Some(DiskNode::Special) => Ok(FileStat { kind: FileKind::Special, ..blank }),
            Some(DiskNode::Folder) => Ok(blank),
            None if path == Path::new("/") => Ok(blank),
            None => Err(WorldError::NotFound),
        }
    }

    /// Like [`stat`](Self::stat), on a disk that ignores case. Directories have an identity there.
    pub(super) fn stat_in_any_case(&self, path: &Path) -> Result<FileStat, WorldError> {
        let lower = |path: &Path| path.to_string_lossy().to_lowercase();
        let wanted = lower(path);
        let found = self.seen.keys().enumerate().find(|(_, it)| lower(it) == wanted);
        let Some((at, path)) = found else { return self.stat(path) };
        let stat = self.stat(path)?;
        let own = u64::try_from(at).unwrap_or(0).saturating_add(1);
        Ok(FileStat { identity: if stat.identity == 0 { own } else { stat.identity }, ..stat })
    }

    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, WorldError> {
        let inode = self.files.get(self.inode(path)?).ok_or(WorldError::NotFound)?;
        Ok(inode.seen.clone())
    }

    pub(super) fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        if !self.is_folder(folder) {
            return Err(WorldError::NotFound);
        }
        let inside = self.seen.keys().filter(|path| path.parent() == Some(folder));
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        Ok(inside.filter_map(name).collect())
    }

    pub(super) fn create_folder(&mut self, path: &Path) -> Result<(), WorldError> {
        let mut missing: Vec<&Path> =
            path.ancestors().take_while(|it| !self.is_folder(it)).collect();
        if missing.iter().any(|it| self.seen.contains_key(*it)) {
            return Err(WorldError::AlreadyExists);
        }
        while let Some(folder) = missing.pop() {
            self.change(vec![(folder.to_owned(), Some(DiskNode::Folder))]);
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        path: &Path,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let inode = self.inode_or_new(path)?;
        inode.seen = bytes.to_vec();
        inode.kept = 0;
        (inode.modified, inode.spoilt) = (now, false);
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        path: &Path,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let inode = self.inode_or_new(path)?;
        inode.seen.extend_from_slice(bytes);
        (inode.modified, inode.spoilt) = (now, false);
        Ok(())
    }

    pub(super) fn sync_file(&mut self, path: &Path) -> Result<(), WorldError> {
        let id = self.inode(path)?;
        let inode = self.files.get_mut(id).ok_or(WorldError::NotFound)?;
        if !inode.spoilt {
            inode.durable = inode.seen.clone();
            inode.kept = inode.seen.len();
        }
        Ok(())
    }

    /// Makes a sync fail. Later syncs succeed, but the content is still not durable.
    pub(super) fn spoil(&mut self, path: &Path) {
        let id = self.inode(path).ok();
        if let Some(inode) = id.and_then(|id| self.files.get_mut(id)) {
            inode.spoilt = true;
        }
    }

    pub(super) fn sync_folder(&mut self, folder: &Path) -> Result<(), WorldError> {
        if !self.is_folder(folder) {
            return Err(WorldError::NotFound);
        }
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let inside = change.iter().any(|(path, _)| path.parent() == Some(folder));
            if inside {
                apply(durable, change);
            }
            !inside
        });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), WorldError> {
        let node = *self.seen.get(from).ok_or(WorldError::NotFound)?;
        self.change(vec![(from.to_owned(), None), (to.to_owned(), Some(node))]);
        Ok(())
    }

    pub(super) fn exchange(&mut self, one: &Path, other: &Path) -> Result<(), WorldError> {
        let first = *self.seen.get(one).ok_or(WorldError::NotFound)?;
        let second = *self.seen.get(other).ok_or(WorldError::NotFound)?;
        self.change(vec![(one.to_owned(), Some(second)), (other.to_owned(), Some(first))]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), WorldError> {
        match self.seen.get(path) {
            None => Err(WorldError::NotFound),
            Some(DiskNode::Folder) => Err(WorldError::NotAFile),
            Some(DiskNode::File(_) | DiskNode::Special) => {
                self.change(vec![(path.to_owned(), None)]);
                Ok(())
            }
        }
    }

    pub(super) fn remove_folder(&mut self, folder: &Path) -> Result<(), WorldError> {
        if !self.is_folder(folder) {
            return Err(WorldError::NotFound);
        }
        let inside = self.seen.keys().filter(|path| path.starts_with(folder));
        let change: NameChange = inside.map(|path| (path.clone(), None)).collect();
        self.change(change);
        Ok(())
    }

    pub(super) fn reboot(&self, survival: Survival) -> Self {
        let mut names = self.durable.clone();
        for change in self.pending.iter().take(survival.names) {
            apply(&mut names, change);
        }
        // A name is lost with its directory.
        let all = names.clone();
        names.retain(|path, _| {
            let mut folders = path.ancestors().skip(1).filter(|it| it.parent().is_some());
            folders.all(|folder| all.get(folder) == Some(&DiskNode::Folder))
        });
        let files = self.files.iter().map(|inode| {
            let content = survived(inode, survival.content);
            let kept = content.len();
            Inode { seen: content.clone(), durable: content, kept, spoilt: false, ..*inode }
        });
        Self { files: files.collect(), seen: names.clone(), durable: names, pending: Vec::new() }
    }
}

fn survived(inode: &Inode, content: Content) -> Vec<u8> {
    if inode.durable == inode.seen {
        return inode.durable.clone();
    }
    let (kept, written) = inode.seen.split_at_checked(inode.kept).unwrap_or_default();
    let (half, rest) = written.split_at_checked(written.len() / 2).unwrap_or_default();
    match content {
        Content::Old => inode.durable.clone(),
        Content::New => inode.seen.clone(),
        Content::Empty => kept.to_vec(),
        Content::Half => [kept, half].concat(),
        Content::Zeros => [kept, half, &vec![0; rest.len()]].concat(),
    }
}
