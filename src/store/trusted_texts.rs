//! The texts of trusted packs, as the user saw them: `policyd trust` shows what changed since then. Trust does not depend on
//! them; `trust` decides by hashes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::document::{DamageAction, DocumentError, StoredDocument, with_version};
use policyd_base::limits::{TRUSTED_TEXTS_BYTES_MAX, USER_LOCK_WAIT};
use policyd_world::World;
use policyd_yaml::checksum::hex;

/// Directory of the texts, beside the trusted packs.
const FOLDER: &str = "trusted";
/// Lock of the texts.
const LOCK: &str = ".lock";
/// Bytes of the hash in the name of a file.
const NAME_BYTES: usize = 16;

/// The files of a pack when the user trusted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedTexts {
    /// Directory of the pack.
    pub folder: String,
    /// Hash of the files that the user trusted: another one means that these texts are of another version.
    pub hash: String,
    /// Texts by the names of the files. Known secrets are masked.
    pub files: BTreeMap<String, String>,
}

/// The texts of all packs that one user trusts.
pub struct TrustedTextStore<'a> {
    world: &'a dyn World,
    folder: PathBuf,
}

impl<'a> TrustedTextStore<'a> {
    /// Returns the texts in the user's configuration directory.
    #[must_use]
    pub fn new(world: &'a dyn World, configuration: &Path) -> Self {
        Self { world, folder: configuration.join(FOLDER) }
    }

    /// Returns the texts of a pack. `None` if none were saved, or if they cannot be read.
    #[must_use]
    pub fn load(&self, pack: &Path) -> Option<TrustedTexts> {
        let texts = self.document(pack).load::<TrustedTexts>().ok()??;
        (Path::new(&texts.folder) == pack).then_some(texts)
    }

    /// Saves the texts of a pack. Texts beyond the limit are not saved, and older ones are removed, because a comparison
    /// with them would show another version.
    ///
    /// # Errors
    /// The texts were not saved.
    pub fn save(&self, texts: &TrustedTexts) -> Result<(), DocumentError> {
        let document = self.document(Path::new(&texts.folder));
        let text = format!("{:#}\n", with_version(texts));
        if text.len() > TRUSTED_TEXTS_BYTES_MAX {
            self.remove(Path::new(&texts.folder));
            return Ok(());
        }
        let _held = document.lock(LOCK, USER_LOCK_WAIT)?;
        document.open::<TrustedTexts>()?.save(&text).map(drop)
    }

    /// Removes the texts of a pack.
    pub fn remove(&self, pack: &Path) {
        // A file that stays is compared with a pack that is trusted again, which only shows more.
        drop(self.world.remove(self.document(pack).path()));
    }

    fn document(&self, pack: &Path) -> StoredDocument<'a> {
        let hash = Sha256::digest(pack.as_os_str().as_encoded_bytes());
        let name = hex(hash.get(..NAME_BYTES).unwrap_or_default());
        let path = self.folder.join(format!("{name}.json"));
        StoredDocument::new(self.world, path, TRUSTED_TEXTS_BYTES_MAX, DamageAction::Quarantine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn texts(text: &str) -> TrustedTexts {
        let files = BTreeMap::from([("guards.yaml".to_owned(), text.to_owned())]);
        TrustedTexts { folder: "/work/pack".to_owned(), hash: "1".to_owned(), files }
    }

    #[test]
    fn the_texts_of_a_pack_are_the_last_that_fit() {
        let world = FakeWorld::new();
        let store = TrustedTextStore::new(&world, Path::new("/config/policyd"));
        let pack = Path::new("/work/pack");
        assert_eq!(store.load(pack), None);
        store.save(&texts("[]")).unwrap();
        assert_eq!(store.load(pack), Some(texts("[]")));
        assert_eq!(store.load(Path::new("/work/other")), None);
        store.save(&texts(&"x".repeat(TRUSTED_TEXTS_BYTES_MAX))).unwrap();
        assert_eq!(store.load(pack), None, "an older version would be compared");
        store.save(&texts("[]")).unwrap();
        store.remove(pack);
        assert_eq!(store.load(pack), None);
    }
}
