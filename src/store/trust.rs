//! Trust: which packs found in repositories their user has looked at. `trust.json` in the user's
//! folder of policyd: the folder of each, and what its files came to then. What cannot be read
//! trusts nothing.

use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::document::DocumentError;
use super::user_file::UserFile;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

const FILE: &str = "trust.json";
/// Represents any content, for a directory that is trusted with all future changes.
const ANY: &str = "any";

/// A pack that its user has looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedPack {
    /// Directory of the pack.
    #[serde(deserialize_with = "text")]
    pub folder: String,
    /// Hash of its files, in hexadecimal digits. `None`: any content is trusted.
    #[serde(deserialize_with = "read_hash", serialize_with = "write_hash")]
    pub hash: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TrustedPacks {
    packs: Vec<TrustedPack>,
}

/// How far a pack is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustStatus {
    /// It is as its user saw it.
    Trusted,
    /// It was trusted, and is another one now.
    Changed,
    /// The user did not trust it.
    Unknown,
}

/// The packs that one user trusts.
pub struct TrustStore<'a> {
    file: UserFile<'a>,
    path: PathBuf,
}

impl<'a> TrustStore<'a> {
    /// Those kept in the user's folder of policyd.
    #[must_use]
    pub fn new(world: &'a dyn World, folder: &Path) -> Self {
        let path = folder.join(FILE);
        Self { file: UserFile { world, path: Some(path.clone()), state_dir: None }, path }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Every pack that is trusted.
    ///
    /// # Errors
    /// The file exists and cannot be used.
    pub fn all(&self) -> Result<Vec<TrustedPack>, DocumentError> {
        self.file.load::<TrustedPacks>().map(|it| it.packs)
    }

    /// How far the pack in a folder is trusted, with files of this `hash`. A worktree is also trusted
    /// as the folder `in_main` of its main checkout, but only with the content that its user saw: trust
    /// in future changes counts for the folder itself.
    #[must_use]
    pub fn standing(&self, folder: &Path, in_main: Option<&Path>, hash: &str) -> TrustStatus {
        let all = self.all().unwrap_or_default();
        let is_at = |it: &TrustedPack, folder: &Path| Path::new(&it.folder) == folder;
        let is_own = |it: &&TrustedPack| {
            is_at(it, folder) || (it.hash.is_some() && in_main.is_some_and(|main| is_at(it, main)))
        };
        let mut known = all.iter().filter(is_own).peekable();
        if known.peek().is_none() {
            return TrustStatus::Unknown;
        }
        let same = |it: &TrustedPack| it.hash.as_deref().is_none_or(|it| it == hash);
        if known.any(same) { TrustStatus::Trusted } else { TrustStatus::Changed }
    }

    /// Trusts a pack; what was known of its folder is replaced.
    ///
    /// # Errors
    /// The file is not used or locked, or cannot be written.
    pub fn add(&self, trusted: TrustedPack) -> Result<(), DocumentError> {
        self.file.change(|all: &mut TrustedPacks| {
            all.packs.retain(|it| it.folder != trusted.folder);
            all.packs.push(trusted);
        })
    }

    /// Trusts a folder no longer; says whether it was.
    ///
    /// # Errors
    /// Why it could not be kept.
    pub fn revoke(&self, folder: &Path) -> Result<bool, DocumentError> {
        self.file.change(|all: &mut TrustedPacks| {
            let before = all.packs.len();
            all.packs.retain(|it| Path::new(&it.folder) != folder);
            all.packs.len() != before
        })
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Err(D::Error::custom("a value is empty")) } else { Ok(text) }
}

fn read_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    text(deserializer).map(|it| Some(it).filter(|it| it != ANY))
}

fn write_hash<S: Serializer>(hash: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(hash.as_deref().unwrap_or(ANY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    const FOLDER: &str = "/work/.policyd/policies";

    fn trusted(hash: Option<&str>) -> TrustedPack {
        let hash = hash.map(str::to_owned);
        TrustedPack { folder: FOLDER.to_owned(), hash, since: Timestamp::from_millis(0) }
    }

    #[test]
    fn a_change_asks_again_and_a_revoked_pack_is_unknown() {
        let world = FakeWorld::new();
        let store = TrustStore::new(&world, Path::new("/config/policyd"));
        let standing = |hash: &str| store.standing(Path::new(FOLDER), None, hash);
        assert_eq!(standing("aa"), TrustStatus::Unknown);
        store.add(trusted(Some("aa"))).unwrap();
        assert_eq!((standing("aa"), standing("ab")), (TrustStatus::Trusted, TrustStatus::Changed));
        assert_eq!(store.standing(Path::new("/work"), None, "aa"), TrustStatus::Unknown);
        let of_worktree =
            |hash: &str| store.standing(Path::new("/tree"), Some(Path::new(FOLDER)), hash);
        assert_eq!(
            (of_worktree("aa"), of_worktree("ab")),
            (TrustStatus::Trusted, TrustStatus::Changed)
        );
        store.add(trusted(None)).unwrap();
        assert_eq!(standing("anything"), TrustStatus::Trusted);
        assert_eq!(of_worktree("aa"), TrustStatus::Unknown, "changes count for the folder itself");
        assert_eq!(store.all().unwrap().len(), 1);
        assert_eq!(store.revoke(Path::new(FOLDER)), Ok(true));
        assert_eq!(store.revoke(Path::new(FOLDER)), Ok(false));
        assert_eq!(standing("aa"), TrustStatus::Unknown);
    }
}
