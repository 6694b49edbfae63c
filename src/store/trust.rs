//! Trust: which packs found in repositories their user has looked at. `trust.json` in the user's
//! folder of policyd: the folder of each, and what its files came to then. What cannot be read
//! trusts nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::choice_record;
use super::file::{self, Durability, Saved};
use super::user::{ChoiceError, FileProblem};
use policyd_base::limits::{TRUST_FILE_BYTES_MAX, USER_LOCK_WAIT};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

const FILE: &str = "trust.json";
const LOCK: &str = ".trust.lock";
const FORMAT_VERSION: u32 = 1;
/// Represents any content, for a directory that is trusted with all future changes.
const ANY: &str = "any";
/// A pack that its user has looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Directory of the pack.
    pub folder: String,
    /// Hash of its files, in hexadecimal digits. `None`: any content is trusted.
    pub hash: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

impl Trusted {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let hash = text("hash").filter(|it| !it.is_empty())?;
        let folder = text("folder").filter(|it| !it.is_empty())?.to_owned();
        let hash = (hash != ANY).then(|| hash.to_owned());
        Some(Self { folder, hash, since: text("since").and_then(Timestamp::parse)? })
    }

    fn to_json(&self) -> Value {
        let hash = self.hash.as_deref().unwrap_or(ANY);
        json!({"folder": self.folder, "hash": hash, "since": self.since.to_string()})
    }
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
    world: &'a dyn World,
    folder: PathBuf,
}

impl<'a> TrustStore<'a> {
    /// Those kept in the user's folder of policyd.
    #[must_use]
    pub fn new(world: &'a dyn World, folder: &Path) -> Self {
        Self { world, folder: folder.to_owned() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Every pack that is trusted.
    ///
    /// # Errors
    /// [`ChoiceError::InvalidTrust`] if the file exists and cannot be used.
    pub fn all(&self) -> Result<Vec<Trusted>, ChoiceError> {
        let path = self.path();
        let trusted = match self.world.read(&path, TRUST_FILE_BYTES_MAX) {
            Ok(bytes) => parse(&bytes),
            Err(WorldError::NotFound) => return Ok(Vec::new()),
            Err(error) => Err(error.into()),
        };
        trusted.map_err(|problem| ChoiceError::InvalidTrust { path, problem })
    }

    /// How far the pack in a folder is trusted, with files of this `hash`. A worktree is also trusted
    /// as the folder `in_main` of its main checkout, but only with the content that its user saw: trust
    /// in future changes counts for the folder itself.
    #[must_use]
    pub fn standing(&self, folder: &Path, in_main: Option<&Path>, hash: &str) -> TrustStatus {
        let all = self.all().unwrap_or_default();
        let is_at = |it: &Trusted, folder: &Path| Path::new(&it.folder) == folder;
        let is_own = |it: &&Trusted| {
            is_at(it, folder) || (it.hash.is_some() && in_main.is_some_and(|main| is_at(it, main)))
        };
        let mut known = all.iter().filter(is_own).peekable();
        if known.peek().is_none() {
            return TrustStatus::Unknown;
        }
        let same = |it: &Trusted| it.hash.as_deref().is_none_or(|it| it == hash);
        if known.any(same) { TrustStatus::Trusted } else { TrustStatus::Changed }
    }

    /// Trusts a pack; what was known of its folder is replaced.
    ///
    /// # Errors
    /// [`ChoiceError`] if the file is invalid or locked, or cannot be written.
    pub fn add(&self, trusted: Trusted) -> Result<(), ChoiceError> {
        self.change(|all| {
            all.retain(|it| it.folder != trusted.folder);
            all.push(trusted);
            true
        })
        .map(drop)
    }

    /// Trusts a folder no longer; says whether it was.
    ///
    /// # Errors
    /// Why it could not be kept.
    pub fn revoke(&self, folder: &Path) -> Result<bool, ChoiceError> {
        self.change(|all| {
            let before = all.len();
            all.retain(|it| Path::new(&it.folder) != folder);
            all.len() != before
        })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Trusted>) -> bool) -> Result<bool, ChoiceError> {
        let (world, path) = (self.world, self.path());
        let failed = |source: WorldError| ChoiceError::Io { path: path.clone(), source };
        world.create_folder(&self.folder).map_err(failed)?;
        let _held = world.lock(&self.folder.join(LOCK), USER_LOCK_WAIT).map_err(failed)?;
        let mut all = self.all()?;
        let changed = change(&mut all);
        if changed {
            let packs: Vec<Value> = all.iter().map(Trusted::to_json).collect();
            let text = format!("{:#}\n", json!({"version": FORMAT_VERSION, "packs": packs}));
            let saved = file::save(world, &path, text.as_bytes(), &Durability::default());
            if let Saved::NotSaved { why, .. } = saved {
                return Err(ChoiceError::NotSaved { path, why });
            }
            choice_record::record(world, &path, text.as_bytes());
        }
        Ok(changed)
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<Trusted>, FileProblem> {
    let value: Value = serde_json::from_slice(bytes)?;
    if value.get("version").and_then(Value::as_u64) != Some(u64::from(FORMAT_VERSION)) {
        return Err(FileProblem::Version);
    }
    let packs = value.get("packs").and_then(Value::as_array).ok_or(FileProblem::NoPacks)?;
    packs.iter().map(Trusted::read).collect::<Option<_>>().ok_or(FileProblem::Pack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    const FOLDER: &str = "/work/.policyd/policies";

    fn trusted(hash: Option<&str>) -> Trusted {
        let hash = hash.map(str::to_owned);
        Trusted { folder: FOLDER.to_owned(), hash, since: Timestamp::from_millis(0) }
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

    #[test]
    fn what_cannot_be_read_trusts_nothing_and_is_not_written_over() {
        for text in
            ["", "{", "[]", "{\"version\":2,\"packs\":[]}", "{\"version\":1,\"packs\":[{}]}"]
        {
            let world = FakeWorld::new();
            world.put("/config/policyd/trust.json", text);
            let store = TrustStore::new(&world, Path::new("/config/policyd"));
            let standing = store.standing(Path::new(FOLDER), None, "aa");
            assert_eq!(standing, TrustStatus::Unknown, "{text}");
            assert!(
                store.add(trusted(None)).unwrap_err().to_string().contains("trust.json"),
                "{text}"
            );
            assert_eq!(world.get("/config/policyd/trust.json").unwrap(), text.as_bytes());
        }
    }
}
