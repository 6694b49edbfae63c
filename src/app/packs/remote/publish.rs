//! Publishes a pack: its file list, which the publisher signs, and an archive for a server or a registry.

use std::path::{Path, PathBuf};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;
use tar::{Builder, EntryType, Header};

use super::address::PackAddress;
use super::configuration::PackConfiguration;
use super::fetch::require_valid;
use super::fetch_error::FetchError;
use super::registry::Registry;
use super::signature::{self, Requirement, Requirer};
use crate::error::AppError;
use crate::packs;
use policyd_base::limits::PACK_LIST_BYTES_MAX;
use policyd_policy::pack_list::{LIST_FILE, PackList, SIGNATURE_FILE};
use policyd_store::file::{self, Durability, SaveOutcome};
use policyd_store::pack_cache::CachedPack;
use policyd_world::{World, WorldError};

/// Permissions of the files in an archive.
const FILE_MODE: u32 = 0o644;

/// Why a pack is not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the manifest has no `pack_version`, so users could not reject an older version")]
    NoVersion,
    #[error(
        "`{0}` is not the list of the present files; run `policyd pack manifest`, and sign it again"
    )]
    OldList(String),
    #[error("could not read `{path}`: {source}")]
    Unreadable { path: String, source: WorldError },
    #[error("could not write the archive: {0}")]
    Archive(#[from] std::io::Error),
    #[error("expected `oci://REGISTRY/NAME:TAG`, or a file that ends in `.tar.zst`")]
    Target,
    #[error("could not write `{path}`: {why}")]
    NotSaved { path: String, why: String },
}

/// A published pack.
#[derive(Debug)]
pub struct Publication {
    pub list: PackList,
    pub is_signed: bool,
    /// Digest of the manifest in the registry. `None`: the archive is a file.
    pub digest: Option<String>,
}

/// Returns the pack in a directory with its list and its signature.
///
/// # Errors
/// The pack cannot be read, does not load, or cannot be fetched by others.
fn pack(world: &dyn World, folder: &Path) -> Result<CachedPack, AppError> {
    let name = folder.display().to_string();
    let found = packs::at(world, Some(&name));
    if !found.unreadable.is_empty() {
        return Err(AppError::failed_as(found.unreadable.join("\n")));
    }
    let files = found.pack().files.clone();
    let list = PackList::of(&files).map_err(|it| AppError::failed(FetchError::NoPack(it)))?;
    require_valid(&name, &files).map_err(AppError::failed)?;
    if list.version.is_none() {
        return Err(AppError::failed(PublishError::NoVersion));
    }
    let signature = read(world, &folder.join(SIGNATURE_FILE))?;
    Ok(CachedPack { list, files, signature })
}

/// Writes the file list of a pack into its directory, so that the publisher can sign it. Returns its path and the list.
///
/// # Errors
/// The pack cannot be published, or the file cannot be written.
pub fn write_list(world: &dyn World, folder: &Path) -> Result<(PathBuf, PackList), AppError> {
    let pack = pack(world, folder)?;
    let path = folder.join(LIST_FILE);
    save(world, &path, pack.list.text().as_bytes())?;
    Ok((path, pack.list))
}

/// Publishes the pack in a directory, with its signature if there is one, which `key` must have made.
///
/// # Errors
/// The pack cannot be published, or the target cannot be written.
pub fn push(
    world: &dyn World,
    folder: &Path,
    target: &str,
    key: Option<&str>,
) -> Result<Publication, AppError> {
    let address = match PackAddress::parse(target) {
        Ok(PackAddress::Registry(address)) => Some(address),
        _ if !target.contains("://") && target.ends_with(".tar.zst") => None,
        _ => return Err(AppError::usage(PublishError::Target)),
    };
    let pack = pack(world, folder)?;
    let list = read(world, &folder.join(LIST_FILE))?;
    if pack.signature.is_some() || list.is_some() {
        let path = folder.join(LIST_FILE).display().to_string();
        let current = list.filter(|it| *it == pack.list.text());
        current.ok_or_else(|| AppError::failed(PublishError::OldList(path)))?;
    }
    if let Some(key) = key {
        let requirement = Requirement { by: Requirer::Option, keys: vec![key.to_owned()] };
        signature::verify(&pack.list.text(), pack.signature.as_deref(), &[requirement])
            .map_err(|it| AppError::failed(FetchError::Signature(it)))?;
    }
    let archive = archive(&pack).map_err(AppError::failed)?;
    let digest = match address {
        Some(address) => {
            let configuration = PackConfiguration::load(world, folder).map_err(AppError::failed)?;
            let roots = configuration.roots(world);
            let roots = roots.map_err(|it| AppError::failed(FetchError::Roots(it)))?;
            let annotations = json!({
                "org.opencontainers.image.title": pack.list.name,
                "org.opencontainers.image.version": pack.list.version.as_ref().map(ToString::to_string),
            });
            let mut registry = Registry::new(world, &address, roots);
            Some(registry.push(&archive, &annotations).map_err(AppError::failed)?)
        }
        None => {
            save(world, &world.working_folder().join(target), &archive)?;
            None
        }
    };
    Ok(Publication { is_signed: pack.signature.is_some(), list: pack.list, digest })
}

/// Returns the archive of a pack. The same files give the same bytes.
fn archive(pack: &CachedPack) -> Result<Vec<u8>, PublishError> {
    let list = pack.list.text();
    let files = pack.files.iter().map(|(name, source)| (name.as_str(), source.text.as_str()));
    let signature = pack.signature.iter().map(|it| (SIGNATURE_FILE, it.as_str()));
    let mut builder = Builder::new(Vec::new());
    for (name, text) in files.chain([(LIST_FILE, list.as_str())]).chain(signature) {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(FILE_MODE);
        header.set_size(u64::try_from(text.len()).unwrap_or(u64::MAX));
        builder.append_data(&mut header, name, text.as_bytes())?;
    }
    let tar = builder.into_inner()?;
    Ok(compress_to_vec(tar.as_slice(), CompressionLevel::Fastest))
}

/// Reads a text file. `None`: it does not exist.
fn read(world: &dyn World, path: &Path) -> Result<Option<String>, AppError> {
    let shown = || path.display().to_string();
    match world.read(path, PACK_LIST_BYTES_MAX) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes);
            text.map(Some).map_err(|_| AppError::failed(FetchError::NotText(shown())))
        }
        Err(WorldError::NotFound) => Ok(None),
        Err(source) => Err(AppError::failed(PublishError::Unreadable { path: shown(), source })),
    }
}

fn save(world: &dyn World, path: &Path, bytes: &[u8]) -> Result<(), AppError> {
    match file::save(world, path, bytes, &Durability::default()) {
        SaveOutcome::NotSaved { why, .. } => {
            let path = path.display().to_string();
            Err(AppError::failed(PublishError::NotSaved { path, why }))
        }
        SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => Ok(()),
    }
}
