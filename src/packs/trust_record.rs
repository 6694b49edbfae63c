//! Trust in a pack, with the texts that the user saw, so that the next question shows what changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{FoundPack, grants, trust_store};
use policyd_policy::Policy;
use policyd_policy::load::Pack;
use policyd_record::mask::mask;
use policyd_store::document::DocumentError;
use policyd_store::trust::TrustedPack;
use policyd_store::trusted_texts::{TrustedTextStore, TrustedTexts};
use policyd_store::user::{self, UserDirectory};
use policyd_world::World;
use policyd_yaml::Source;
use policyd_yaml::time::Timestamp;

/// What changed in a pack since its user trusted it.
#[derive(Debug)]
pub struct PackDifference {
    /// When the user trusted it.
    pub since: Timestamp,
    /// The texts of the files then, with known secrets masked.
    pub before: BTreeMap<String, String>,
    /// The texts of the files now.
    pub now: BTreeMap<String, String>,
    /// Whether the files are the same ones. Texts alone do not tell, because secrets in them are masked.
    pub is_same: bool,
    /// Rules, settings, and commands that differ, weaker ones first. `None` if the earlier version does not load.
    pub rules: Option<Vec<String>>,
}

/// Trusts a pack, and saves its texts.
///
/// # Errors
/// The trust was not saved.
pub fn add(
    world: &dyn World,
    found: &FoundPack,
    trusted: TrustedPack,
) -> Result<(), DocumentError> {
    let no_directory = DocumentError::NoDirectory(UserDirectory::Configuration);
    let store = trust_store(world).ok_or(no_directory)?;
    let folder = trusted.folder.clone();
    store.add(trusted)?;
    if let Some(texts) = text_store(world) {
        // Without them, the next question shows the whole pack.
        let (hash, files) = (found.content_hash(), texts_of(found));
        texts.save(&TrustedTexts { folder, hash, files }).ok();
    }
    Ok(())
}

/// Revokes the trust in a pack, and removes its texts. Returns whether it was trusted.
///
/// # Errors
/// The change was not saved.
pub fn revoke(world: &dyn World, folder: &Path) -> Result<bool, DocumentError> {
    let no_directory = DocumentError::NoDirectory(UserDirectory::Configuration);
    let is_revoked = trust_store(world).ok_or(no_directory)?.revoke(folder)?;
    if let Some(texts) = text_store(world) {
        texts.remove(folder);
    }
    Ok(is_revoked)
}

/// Compares a pack with the version that the user trusted. `None` if it was not trusted, or its texts are unknown.
pub fn difference(world: &dyn World, found: &FoundPack, policy: &Policy) -> Option<PackDifference> {
    let folder = Path::new(found.folder()?);
    let all = trust_store(world)?.all().ok()?;
    let trusted = all.iter().find(|it| Path::new(&it.folder) == folder)?;
    let texts = text_store(world)?.load(folder)?;
    // Another program can have saved the trust without the texts.
    let is_of_trusted = trusted.hash.as_ref().is_none_or(|it| *it == texts.hash);
    let (since, is_same) = (trusted.since, texts.hash == found.content_hash());
    let before = Some(texts.files).filter(|_| is_of_trusted)?;
    let now = texts_of(found);
    let rules = super::loaded(&found.with_pack(pack_of(folder, &before, found)));
    let rules = rules.ok().map(|trusted| grants::changes(policy, &trusted));
    Some(PackDifference { since, before, now, is_same, rules })
}

fn text_store(world: &dyn World) -> Option<TrustedTextStore<'_>> {
    user::config_folder(world).map(|it| TrustedTextStore::new(world, &it))
}

/// Returns the texts of the files, with known secrets masked.
fn texts_of(found: &FoundPack) -> BTreeMap<String, String> {
    let files = found.own_files().into_iter().flat_map(|it| &it.files);
    files.map(|(name, source)| (name.clone(), mask(&source.text).0.into_owned())).collect()
}

/// Returns the pack of texts. It extends the remote packs as they are now, because their texts were not saved.
fn pack_of(folder: &Path, texts: &BTreeMap<String, String>, now: &FoundPack) -> Pack {
    let files = texts.iter().map(|(file, text)| {
        let name = folder.join(file).display().to_string();
        (file.clone(), Arc::new(Source { name, text: text.clone() }))
    });
    Pack {
        name: folder.display().to_string(),
        files: files.collect(),
        remote: now.remote().to_vec(),
    }
}
