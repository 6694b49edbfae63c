//! Fetches remote packs into the cache and records their content in the lock file. Whatever fails, the lock file and the
//! content that it names stay as they are, so the last good version stays active.

use std::path::Path;
use std::sync::Arc;

use semver::Version;

use super::address::PackAddress;
use super::archive::{self, UnpackedPack};
use super::configuration::PackConfiguration;
use super::registry::Registry;
use super::signature::{self, Requirement, Requirer};
use super::{git, https};
use crate::error::AppError;
use crate::packs;
use policyd_base::limits::{PACK_LOCK_WAIT, REMOTE_PACKS_MAX};
use policyd_policy::builtin;
use policyd_policy::load::{self, Pack};
use policyd_policy::pack_list::{PackList, SIGNATURE_FILE};
use policyd_policy::remote::{self, RemoteEntry};
use policyd_store::document::DocumentError;
use policyd_store::pack_cache::{CachedPack, PackCache, PackFiles};
use policyd_store::pack_history::{FailedFetch, PackHistoryStore};
use policyd_store::pack_lock::{LockedPack, PackLock};
use policyd_world::World;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Level, Source};

pub use super::fetch_error::FetchError;

/// What happened to a remote pack.
#[derive(Debug)]
pub enum FetchResult {
    /// The cache has the content already.
    Current(LockedPack),
    /// The content was fetched; `before` is the content that it replaced in the lock file.
    Fetched { pack: LockedPack, before: Option<LockedPack> },
    /// The content was not fetched, or it was rejected. The lock file still names `active`, if it names one.
    Failed { error: FetchError, active: Option<LockedPack> },
}

/// A remote pack and what happened to it.
#[derive(Debug)]
pub struct FetchReport {
    /// The source as the manifest states it.
    pub source: String,
    pub result: FetchResult,
}

/// What to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchMode {
    /// The content that the lock file names, and packs that it lacks.
    Locked,
    /// The newest content of each source.
    Update,
    /// The same, also if a version is older than one that the source had before.
    AllowOlder,
}

/// Fetches the remote packs of the pack in a directory.
///
/// # Errors
/// The pack or its lock file cannot be read, the cache cannot be locked, or the lock file cannot be saved.
pub fn fetch(
    world: &dyn World,
    folder: &Path,
    mode: FetchMode,
) -> Result<Vec<FetchReport>, AppError> {
    let found = packs::at(world, Some(&folder.display().to_string()));
    if !found.unreadable.is_empty() {
        return Err(AppError::failed_as(found.unreadable.join("\n")));
    }
    let entries = remote::entries(&found.pack().files);
    if entries.len() > REMOTE_PACKS_MAX {
        let text = format!("the manifest names more than {REMOTE_PACKS_MAX} sources");
        return Err(AppError::failed_as(text));
    }
    let cache = PackCache::of_pack(world, folder).ok_or_else(|| {
        AppError::failed_as("cannot store packs: neither `XDG_DATA_HOME` nor `HOME` is set")
    })?;
    cache.create(cache.folder()).map_err(AppError::failed)?;
    let lock_path = cache.folder().join("fetch.lock");
    let _held = world.lock(&lock_path, PACK_LOCK_WAIT).map_err(AppError::failed)?;
    let about = |error: AppError| error.about(PackLock::path(folder).display());
    let before = PackLock::load(world, folder).map_err(|it| about(AppError::failed(it)))?;
    let configuration = PackConfiguration::load(world, folder).map_err(|problem| {
        AppError::failed_as(format!("a remote pack {problem}\nhelp: {}", problem.help()))
    })?;
    let store = PackHistoryStore::new(world, cache.folder());
    let history = store.load().map_err(AppError::failed)?;
    let mut reports = Vec::new();
    for entry in entries {
        let newest = history.newest(&entry.source);
        let (cache, configuration) = (&cache, &configuration);
        let fetcher = Fetcher { world, cache, configuration, entry: &entry, mode, newest };
        let result = fetcher.fetch(before.get(&entry.source));
        reports.push(FetchReport { source: entry.source, result });
    }
    let packs = reports.iter().filter_map(|it| it.result.locked().cloned()).collect();
    let after = PackLock::new(packs);
    if after.packs != before.packs {
        after.save(world, folder).map_err(AppError::failed)?;
    }
    record(&store, world.now(), mode, &reports).map_err(AppError::failed)?;
    Ok(reports)
}

/// Records the fetched versions, and what failed.
fn record(
    store: &PackHistoryStore<'_>,
    at: Timestamp,
    mode: FetchMode,
    reports: &[FetchReport],
) -> Result<(), DocumentError> {
    store.change(|history| {
        for report in reports {
            match &report.result {
                FetchResult::Current(pack) | FetchResult::Fetched { pack, .. } => {
                    let version = pack.pack_version.as_deref();
                    match mode {
                        FetchMode::AllowOlder => history.replace(&report.source, version),
                        FetchMode::Locked | FetchMode::Update => {
                            history.add(&report.source, version)
                        }
                    }
                }
                FetchResult::Failed { error, .. } => {
                    let failed = FailedFetch { at, reason: error.to_string() };
                    history.failures.insert(report.source.clone(), failed);
                }
            }
        }
    })
}

impl FetchResult {
    /// Returns the content that is active from now on.
    fn locked(&self) -> Option<&LockedPack> {
        match self {
            Self::Current(pack) | Self::Fetched { pack, .. } => Some(pack),
            Self::Failed { active, .. } => active.as_ref(),
        }
    }
}

/// Fetches one remote pack.
struct Fetcher<'a> {
    world: &'a dyn World,
    cache: &'a PackCache<'a>,
    configuration: &'a PackConfiguration,
    entry: &'a RemoteEntry,
    mode: FetchMode,
    /// The newest version that the source had on this machine.
    newest: Option<Version>,
}

impl Fetcher<'_> {
    fn fetch(&self, locked: Option<&LockedPack>) -> FetchResult {
        let wanted = locked.filter(|_| self.mode == FetchMode::Locked);
        let demanded = self.entry.sha256.as_deref();
        let wanted = wanted.filter(|it| demanded.is_none_or(|hash| hash == it.sha256));
        if let Some(wanted) = wanted.filter(|it| self.is_cached(it)) {
            return FetchResult::Current(wanted.clone());
        }
        match self.download(locked, wanted) {
            Ok(pack) if locked == Some(&pack) && self.mode != FetchMode::Locked => {
                FetchResult::Current(pack)
            }
            Ok(pack) => FetchResult::Fetched {
                before: locked.filter(|it| it.sha256 != pack.sha256).cloned(),
                pack,
            },
            Err(error) => FetchResult::Failed { error, active: locked.cloned() },
        }
    }

    /// Whether the cache has the content, signed as it must be.
    fn is_cached(&self, locked: &LockedPack) -> bool {
        let requirements = self.requirements(Some(locked));
        self.cache.load(&locked.sha256, &self.entry.source).is_ok_and(|it| {
            signature::verify(&it.list.text(), it.signature.as_deref(), &requirements).is_ok()
        })
    }

    /// Downloads and verifies the pack, and saves it in the cache.
    fn download(
        &self,
        locked: Option<&LockedPack>,
        wanted: Option<&LockedPack>,
    ) -> Result<LockedPack, FetchError> {
        let (unpacked, revision) = self.transfer(wanted)?;
        let pack = self.read(unpacked)?;
        let found = pack.list.hash();
        let demands = [
            (self.entry.sha256.as_deref(), "manifest"),
            (wanted.map(|it| it.sha256.as_str()), "lock file"),
        ];
        for (wanted, demand) in demands {
            if let Some(wanted) = wanted.filter(|it| *it != found) {
                return Err(FetchError::OtherHash { found, wanted: wanted.to_owned(), demand });
            }
        }
        let key = self.signer(&pack, locked)?;
        if wanted.is_none() && self.mode != FetchMode::AllowOlder {
            self.require_not_older(&pack.list, locked)?;
        }
        require_valid(&self.entry.source, &pack.files)?;
        self.cache.save(&pack).map_err(FetchError::Cache)?;
        Ok(LockedPack {
            source: self.entry.source.clone(),
            revision,
            sha256: found,
            name: pack.list.name,
            pack_version: pack.list.version.map(|it| it.to_string()),
            key,
        })
    }

    /// Downloads the pack; returns it with the commit or the digest of the source.
    fn transfer(
        &self,
        wanted: Option<&LockedPack>,
    ) -> Result<(UnpackedPack, Option<String>), FetchError> {
        let roots = || self.configuration.roots(self.world).map_err(FetchError::Roots);
        let locked = wanted.and_then(|it| it.revision.as_deref());
        match PackAddress::parse(&self.entry.source)? {
            PackAddress::Archive { url } => {
                let bytes = https::download(self.world, &url, roots()?)?;
                Ok((archive::unpack(&archive::decompress(&bytes)?)?, None))
            }
            PackAddress::Git(address) => {
                let ca_file = self.configuration.ca_file();
                let (pack, commit) =
                    git::download(self.world, self.cache, &address, locked, ca_file)?;
                Ok((pack, Some(commit)))
            }
            PackAddress::Registry(mut address) => {
                if let Some(digest) = locked {
                    digest.clone_into(&mut address.reference);
                }
                let mut registry = Registry::new(self.world, &address, roots()?);
                let (bytes, digest) = registry.pull()?;
                Ok((archive::unpack(&archive::decompress(&bytes)?)?, Some(digest)))
            }
        }
    }

    /// Returns the signatures that the pack must have. A pack that was signed stays signed by the same key, unless the
    /// organization or the user names the accepted keys.
    fn requirements(&self, locked: Option<&LockedPack>) -> Vec<Requirement> {
        let mut requirements = self.configuration.requirements(self.entry);
        let is_named = |it: &Requirement| matches!(it.by, Requirer::Organization | Requirer::User);
        if let Some(key) = locked.and_then(|it| it.key.clone())
            && !requirements.iter().any(is_named)
        {
            requirements.push(Requirement { by: Requirer::LockFile, keys: vec![key] });
        }
        requirements
    }

    /// Verifies the signature; returns the key that signed the pack, if it is an accepted one.
    fn signer(
        &self,
        pack: &CachedPack,
        locked: Option<&LockedPack>,
    ) -> Result<Option<String>, FetchError> {
        let (list, signature) = (pack.list.text(), pack.signature.as_deref());
        let requirements = self.requirements(locked);
        if requirements.is_empty() {
            let known = [self.configuration.known_keys()];
            return Ok(signature::verify(&list, signature, &known).ok().flatten());
        }
        Ok(signature::verify(&list, signature, &requirements)?)
    }

    /// Requires that the version is not older than one that the source had before. No version counts as the oldest.
    fn require_not_older(
        &self,
        list: &PackList,
        locked: Option<&LockedPack>,
    ) -> Result<(), FetchError> {
        let locked = locked.and_then(|it| Version::parse(it.pack_version.as_deref()?).ok());
        let newest = locked.into_iter().chain(self.newest.clone()).max();
        match newest {
            Some(newest) if list.version.as_ref().is_none_or(|it| *it < newest) => {
                let found = list.version.as_ref().map_or("none".to_owned(), Version::to_string);
                Err(FetchError::Older { found, newest })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the files of a pack with their list.
    fn read(&self, unpacked: UnpackedPack) -> Result<CachedPack, FetchError> {
        let text = |bytes: Vec<u8>, name: &str| {
            String::from_utf8(bytes).map_err(|_| FetchError::NotText(name.to_owned()))
        };
        let mut files = PackFiles::new();
        for (file, bytes) in unpacked.files {
            let text = text(bytes, &file)?;
            let name = format!("{}/{file}", self.entry.source);
            files.push((file, Arc::new(Source { name, text })));
        }
        let list = PackList::of(&files)?;
        if unpacked.list.is_some_and(|it| it != list.text().as_bytes()) {
            return Err(FetchError::OtherFiles);
        }
        let signature = unpacked.signature.map(|it| text(it, SIGNATURE_FILE)).transpose()?;
        Ok(CachedPack { list, files, signature })
    }
}

/// Requires that a remote pack loads, so that a pack with errors never replaces one without.
pub(super) fn require_valid(source: &str, files: &PackFiles) -> Result<(), FetchError> {
    if !remote::entries(files).is_empty() {
        return Err(FetchError::Nested);
    }
    let pack = Pack { name: source.to_owned(), files: files.clone(), remote: Vec::new() };
    let loaded = load::load(&pack, &builtin::pack());
    match loaded.diagnostics.iter().find(|it| it.level == Level::Error) {
        Some(error) => {
            Err(FetchError::Invalid(format!("{}: {}", error.span.place(), error.message)))
        }
        None => Ok(()),
    }
}
