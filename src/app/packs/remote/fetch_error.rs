//! Why a remote pack is not fetched, whatever transports it.

use semver::Version;

use super::address::AddressError;
use super::archive::ArchiveError;
use super::registry::RegistryError;
use policyd_policy::pack_list::PackListError;
use policyd_policy::remote::SignatureProblem;
use policyd_probe::git_fetch::GitFetchError;
use policyd_world::WorldError;

/// Why a remote pack is not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("could not download `{url}`: {source}")]
    Request { url: String, source: WorldError },
    #[error("could not download `{url}`: the server answered with status {status}")]
    Status { url: String, status: u16 },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    #[error("the archive does not contain a pack that can be fetched: {0}")]
    NoPack(#[from] PackListError),
    #[error(
        "the files are not those of `pack.manifest`, so the archive is incomplete or was changed"
    )]
    OtherFiles,
    #[error("the content has the SHA-256 `{found}`, but the {demand} demands `{wanted}`")]
    OtherHash { found: String, wanted: String, demand: &'static str },
    #[error("the pack extends another source, but a remote pack can extend only `builtin`")]
    Nested,
    #[error("the pack does not load: {0}")]
    Invalid(String),
    #[error("could not read the certificate authorities of `ca_file`: {0}")]
    Roots(WorldError),
    #[error("could not fetch the repository: {0}")]
    Git(#[from] GitFetchError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("the pack {0}")]
    Signature(#[from] SignatureProblem),
    #[error("version {found} is older than {newest}, which this source had before")]
    Older { found: String, newest: Version },
    #[error("could not write the cache: {0}")]
    Cache(WorldError),
}
