//! Remote packs in git repositories.

use std::path::Path;

use super::address::GitAddress;
use super::archive::{self, UnpackedPack};
use super::fetch_error::FetchError;
use policyd_base::limits::{PACK_REQUEST_DEADLINE, PACK_UNPACKED_BYTES_MAX};
use policyd_probe::git_fetch::{self, GitCommit, GitFiles, GitLimits};
use policyd_store::pack_cache::PackCache;
use policyd_world::World;

/// Fetches a pack; returns it with the id of its commit. `locked` is the commit in the lock file. A server can refuse a
/// request for a commit, so the revision is requested then, whose content is compared with the lock file.
pub(super) fn download(
    world: &dyn World,
    cache: &PackCache<'_>,
    address: &GitAddress,
    locked: Option<&str>,
    ca_file: Option<&Path>,
) -> Result<(UnpackedPack, String), FetchError> {
    let folder = cache.folder().join(format!(".git-{}", world.process_id()));
    let fetch = |revision: &str| -> Result<GitFiles, FetchError> {
        drop(world.remove_folder(&folder));
        world.create_folder(&folder).map_err(FetchError::Cache)?;
        let (url, subdirectory) = (address.url.as_str(), address.subdirectory.as_str());
        let commit = GitCommit { url, revision, subdirectory, ca_file };
        let limits =
            GitLimits { deadline: PACK_REQUEST_DEADLINE, bytes_max: PACK_UNPACKED_BYTES_MAX };
        Ok(git_fetch::fetch(world, &folder, &commit, limits)?)
    };
    let by_commit = locked.map(&fetch).and_then(Result::ok);
    let files = by_commit.map_or_else(|| fetch(&address.revision), Ok);
    // The next fetch removes what this one could not.
    drop(world.remove_folder(&folder));
    let files = files?;
    Ok((archive::unpack(&files.tar)?, files.commit))
}
