//! Remote packs: which content the lock file and the cache have, and how it is fetched.

pub mod configuration;
pub mod signature;

use std::path::Path;

use self::configuration::PackConfiguration;
use policyd_policy::remote::{self, RemoteEntry, RemotePack, RemoteProblem};
use policyd_store::document::DocumentError;
use policyd_store::pack_cache::{PackCache, PackFiles};
use policyd_store::pack_lock::PackLock;
use policyd_world::World;

/// Resolves the remote packs that a pack in a directory names, by its lock file and from the cache. Never uses the
/// network.
pub(super) fn resolve(world: &dyn World, folder: &Path, files: &PackFiles) -> Vec<RemotePack> {
    let entries = remote::entries(files);
    if entries.is_empty() {
        return Vec::new();
    }
    let (lock, configuration) =
        (PackLock::load(world, folder), PackConfiguration::load(world, folder));
    let cache = PackCache::of_pack(world, folder);
    let resolve = |entry| resolve_entry(cache.as_ref(), &lock, &configuration, entry);
    entries.into_iter().map(resolve).collect()
}

fn resolve_entry(
    cache: Option<&PackCache<'_>>,
    lock: &Result<PackLock, DocumentError>,
    configuration: &Result<PackConfiguration, RemoteProblem>,
    entry: RemoteEntry,
) -> RemotePack {
    let locked = lock.as_ref().ok().and_then(|it| it.get(&entry.source));
    let sha256 = locked.map(|it| it.sha256.clone());
    let files = match (lock, configuration, &sha256) {
        (Err(problem), ..) => Err(RemoteProblem::InvalidLock(problem.message())),
        (_, Err(problem), _) => Err(problem.clone()),
        (.., None) => Err(RemoteProblem::NotFetched),
        (Ok(_), Ok(configuration), Some(locked)) => load(cache, configuration, &entry, locked),
    };
    RemotePack { source: entry.source, sha256, files }
}

/// Loads the locked content of an entry from the cache, and verifies its signature.
fn load(
    cache: Option<&PackCache<'_>>,
    configuration: &PackConfiguration,
    entry: &RemoteEntry,
    locked: &str,
) -> Result<PackFiles, RemoteProblem> {
    if let Some(wanted) = entry.sha256.as_ref().filter(|it| *it != locked) {
        let (wanted, locked) = (wanted.clone(), locked.to_owned());
        return Err(RemoteProblem::OtherHash { wanted, locked });
    }
    let pack = cache.ok_or(RemoteProblem::NotFetched)?.load(locked, &entry.source)?;
    let requirements = configuration.requirements(entry);
    signature::verify(&pack.list.text(), pack.signature.as_deref(), &requirements)?;
    Ok(pack.files)
}
