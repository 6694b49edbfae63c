//! The cache of remote packs: one directory for each content, named by its SHA-256. It is below the user's data directory;
//! the cache of the organization's pack is in the directory of the administrator, where no user can remove it.
//! Every file is compared with its hash when it is loaded, so a changed file is never used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::administrator;
use super::user::UserDirectory;
use policyd_base::limits::{PACK_LIST_BYTES_MAX, POLICY_FILE_BYTES_MAX};
use policyd_policy::pack_list::{LIST_FILE, PackList, SIGNATURE_FILE, sha256};
use policyd_policy::remote::RemoteProblem;
use policyd_world::{World, WorldError};
use policyd_yaml::Source;

/// Below the user's data directory, and below the directory of the administrator.
const FOLDER: &str = "packs";

/// The files of a pack, each with its name.
pub type PackFiles = Vec<(String, Arc<Source>)>;

/// A pack with its file list and its signature, which is not verified.
#[derive(Debug, Clone)]
pub struct CachedPack {
    pub list: PackList,
    pub files: PackFiles,
    pub signature: Option<String>,
}

/// The cache of one user, or of the organization.
pub struct PackCache<'a> {
    world: &'a dyn World,
    folder: PathBuf,
    /// Whether each user of the machine reads it.
    is_shared: bool,
}

impl<'a> PackCache<'a> {
    /// Returns the cache of the pack in a directory. `None` if it is not the organization's pack, and neither
    /// `XDG_DATA_HOME` nor `HOME` is set.
    #[must_use]
    pub fn of_pack(world: &'a dyn World, pack: &Path) -> Option<Self> {
        let is_shared = administrator::is_policies(pack);
        let folder = match is_shared {
            true => administrator::directory().join(FOLDER),
            false => UserDirectory::Data.path(world)?.join(FOLDER),
        };
        Some(Self { world, folder, is_shared })
    }

    /// Returns the directory that contains all contents.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the directory of a content.
    #[must_use]
    pub fn folder_of(&self, hash: &str) -> PathBuf {
        self.folder.join(hash)
    }

    /// Loads a content; the names of its files begin with `source`.
    ///
    /// # Errors
    /// [`RemoteProblem::NotFetched`] if the cache lacks the content, or [`RemoteProblem::Damaged`] if a file is not
    /// the one that was fetched.
    pub fn load(&self, hash: &str, source: &str) -> Result<CachedPack, RemoteProblem> {
        let folder = self.folder_of(hash);
        let damaged = |name: &str| RemoteProblem::Damaged(folder.join(name).display().to_string());
        let list = match self.world.read(&folder.join(LIST_FILE), PACK_LIST_BYTES_MAX) {
            Err(WorldError::NotFound) => return Err(RemoteProblem::NotFetched),
            read => read.ok().filter(|it| sha256(it) == hash),
        };
        let list = list.and_then(|it| PackList::parse(std::str::from_utf8(&it).ok()?));
        let list = list.ok_or_else(|| damaged(LIST_FILE))?;
        let mut files = PackFiles::new();
        for (name, expected) in &list.files {
            let bytes = self.world.read(&folder.join(name), POLICY_FILE_BYTES_MAX).ok();
            let bytes = bytes.filter(|it| sha256(it) == *expected);
            let text = bytes.and_then(|it| String::from_utf8(it).ok());
            let text = text.ok_or_else(|| damaged(name))?;
            files.push((name.clone(), Arc::new(Source { name: format!("{source}/{name}"), text })));
        }
        let signature = self.world.read(&folder.join(SIGNATURE_FILE), PACK_LIST_BYTES_MAX).ok();
        let signature = signature.and_then(|it| String::from_utf8(it).ok());
        Ok(CachedPack { list, files, signature })
    }

    /// Creates a directory of the cache.
    ///
    /// # Errors
    /// [`WorldError`] if it cannot be created.
    pub fn create(&self, folder: &Path) -> Result<(), WorldError> {
        self.world.create_folder(folder)?;
        self.publish(folder)
    }

    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        if self.is_shared { self.world.publish(path) } else { Ok(()) }
    }

    /// Saves a content. Its list is written last, so that a content that is not complete has none.
    ///
    /// # Errors
    /// [`WorldError`] if a file cannot be written.
    pub fn save(&self, pack: &CachedPack) -> Result<(), WorldError> {
        let folder = self.folder_of(&pack.list.hash());
        self.create(&folder)?;
        let files = pack.files.iter().map(|(name, source)| (name.as_str(), source.text.as_str()));
        let signature = pack.signature.iter().map(|it| (SIGNATURE_FILE, it.as_str()));
        let list = pack.list.text();
        for (name, text) in files.chain(signature).chain([(LIST_FILE, list.as_str())]) {
            let path = folder.join(name);
            self.world.write(&path, text.as_bytes())?;
            self.publish(&path)?;
            // The content has a checksum, so that a torn file is not used.
            match self.world.sync_file(&path) {
                Ok(()) | Err(WorldError::Unsupported) => {}
                failed => return failed,
            }
        }
        match self.world.sync_folder(&folder) {
            Ok(()) | Err(WorldError::Unsupported) => Ok(()),
            failed => failed,
        }
    }
}
