//! Trust in a pack, with the texts that the user saw, so that the next question shows what changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{FoundPack, grants, trust_store};
use policyd_policy::Policy;
use policyd_policy::load::Pack;
use policyd_policy::remote::RemotePack;
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
    /// Rules, settings, and commands that differ, weaker ones first. `None` if the earlier version is not known as a whole, or does
    /// not load.
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
    let trusted = super::loaded(&found.with_pack(pack_of(folder, &before)));
    let rules = trusted.ok().map(|trusted| grants::changes(policy, &trusted));
    Some(PackDifference { since, before, now, is_same, rules })
}

fn text_store(world: &dyn World) -> Option<TrustedTextStore<'_>> {
    user::config_folder(world).map(|it| TrustedTextStore::new(world, &it))
}

/// Between the source of a remote pack and the name of its file.
const OF_SOURCE: &str = ": ";

/// Returns the texts of the files, with known secrets masked. Those of remote packs are named by their source, too.
fn texts_of(found: &FoundPack) -> BTreeMap<String, String> {
    let own = found.own_files().into_iter().flat_map(|it| &it.files);
    let own = own.map(|(name, source)| (name.clone(), source));
    let remote = found.remote().iter().flat_map(|pack| {
        let files = pack.files.iter().flatten();
        files.map(|(name, source)| (format!("{}{OF_SOURCE}{name}", pack.source), source))
    });
    let masked = |(name, source): (String, &Arc<Source>)| (name, mask(&source.text).0.into_owned());
    own.chain(remote).map(masked).collect()
}

/// Returns the pack of texts. It does not load if it extended remote packs whose texts were not saved.
fn pack_of(folder: &Path, texts: &BTreeMap<String, String>) -> Pack {
    let mut pack = Pack { name: folder.display().to_string(), ..Pack::default() };
    for (file, text) in texts {
        let (source, file) = file.rsplit_once(OF_SOURCE).unwrap_or(("", file));
        let name = match source {
            "" => folder.join(file).display().to_string(),
            source => format!("{source}{OF_SOURCE}{file}"),
        };
        let entry = (file.to_owned(), Arc::new(Source { name, text: text.clone() }));
        let known = pack.remote.iter_mut().find(|it| it.source == source);
        match known.map(|it| &mut it.files) {
            Some(Ok(files)) => files.push(entry),
            Some(Err(_)) => {}
            None if source.is_empty() => pack.files.push(entry),
            None => pack.remote.push(RemotePack {
                source: source.to_owned(),
                sha256: None,
                files: Ok(vec![entry]),
            }),
        }
    }
    pack
}
