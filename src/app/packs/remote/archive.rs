//! Archives of packs: unpacked in memory, with limits. Only policy files of one directory count; links and paths that
//! leave the archive are rejected.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

use ruzstd::decoding::StreamingDecoder;
use tar::{Archive, EntryType};

use crate::packs::folder::{MANIFEST, is_yaml};
use policyd_base::limits::{
    PACK_ARCHIVE_ENTRIES_MAX, PACK_LIST_BYTES_MAX, PACK_UNPACKED_BYTES_MAX, POLICY_FILE_BYTES_MAX,
    POLICY_FILES_MAX,
};
use policyd_policy::pack_list::{LIST_FILE, SIGNATURE_FILE, is_file_name};

/// The files of a pack as an archive has them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UnpackedPack {
    /// Policy files by their names.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The file list, if the archive has one.
    pub(super) list: Option<Vec<u8>>,
    /// The signature of the list, if the archive has one.
    pub(super) signature: Option<Vec<u8>>,
}

/// Why an archive is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("the archive is incomplete or damaged: {0}")]
    Damaged(#[from] io::Error),
    #[error("the archive is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the archive contains more than {0} files")]
    TooManyFiles(usize),
    #[error("the path `{0}` leaves the archive")]
    UnsafePath(String),
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    #[error("`{0}` is not a name of a policy file")]
    FileName(String),
    #[error("the archive contains `{0}` twice")]
    Duplicate(String),
    #[error("the archive contains no `policyd.yaml`, neither at the top nor in its only directory")]
    NoManifest,
    #[error("the archive contains several packs: {0}")]
    SeveralPacks(String),
}

/// An entry of an archive.
struct ArchiveEntry {
    /// Path from the top of the archive.
    path: Vec<String>,
    kind: EntryType,
    content: Vec<u8>,
}

impl ArchiveEntry {
    /// Returns the name of the entry, if it is directly in a directory.
    fn name_in(&self, folder: &[String]) -> Option<&str> {
        let (name, parents) = self.path.split_last()?;
        (parents == folder).then_some(name.as_str())
    }
}

/// Decompresses a `.tar.zst` archive.
///
/// # Errors
/// [`ArchiveError::Damaged`] or [`ArchiveError::TooLarge`].
pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let decoder = StreamingDecoder::new(bytes).map_err(io::Error::other)?;
    let limit = PACK_UNPACKED_BYTES_MAX;
    let mut tar = Vec::new();
    let limited = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(limited).read_to_end(&mut tar)?;
    if tar.len() > limit { Err(ArchiveError::TooLarge(limit)) } else { Ok(tar) }
}

/// Unpacks the pack in a tar archive.
///
/// # Errors
/// [`ArchiveError`] if the archive is damaged or unsafe, or contains no pack.
pub(super) fn unpack(tar: &[u8]) -> Result<UnpackedPack, ArchiveError> {
    let entries = entries(tar)?;
    let folder = pack_folder(&entries)?;
    let mut pack = UnpackedPack::default();
    for entry in entries {
        let Some(name) = entry.name_in(&folder).filter(|it| !it.starts_with('.')) else { continue };
        if !is_wanted(name) {
            continue;
        }
        let name = name.to_owned();
        if entry.kind != EntryType::Regular {
            return Err(ArchiveError::NotAFile(name));
        }
        let taken = match name.as_str() {
            LIST_FILE => pack.list.replace(entry.content),
            SIGNATURE_FILE => pack.signature.replace(entry.content),
            _ if !is_file_name(&name) => return Err(ArchiveError::FileName(name)),
            _ => pack.files.insert(name.clone(), entry.content),
        };
        if taken.is_some() {
            return Err(ArchiveError::Duplicate(name));
        }
        if pack.files.len() > POLICY_FILES_MAX {
            return Err(ArchiveError::TooManyFiles(POLICY_FILES_MAX));
        }
    }
    Ok(pack)
}

/// Whether a file of this name belongs to a pack.
fn is_wanted(name: &str) -> bool {
    name == LIST_FILE || name == SIGNATURE_FILE || is_yaml(name)
}

/// Reads all entries; only policy files have their content.
fn entries(tar: &[u8]) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let mut entries = Vec::new();
    for entry in Archive::new(tar).entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::Directory) {
            continue;
        }
        if entries.len() >= PACK_ARCHIVE_ENTRIES_MAX {
            return Err(ArchiveError::TooManyFiles(PACK_ARCHIVE_ENTRIES_MAX));
        }
        let path = safe_path(&entry.path()?)?;
        let name = path.last().map(String::as_str).unwrap_or_default();
        let limit = match name {
            LIST_FILE | SIGNATURE_FILE => PACK_LIST_BYTES_MAX,
            _ => POLICY_FILE_BYTES_MAX,
        };
        let mut content = Vec::new();
        if is_wanted(name) {
            let limited = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
            entry.by_ref().take(limited).read_to_end(&mut content)?;
            if content.len() > limit {
                return Err(ArchiveError::TooLarge(limit));
            }
        }
        entries.push(ArchiveEntry { path, kind, content });
    }
    Ok(entries)
}

/// Returns the names of a path, which must stay in the archive.
fn safe_path(path: &Path) -> Result<Vec<String>, ArchiveError> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(ArchiveError::UnsafePath(path.display().to_string()));
            }
        }
    }
    Ok(names)
}

/// Returns the directory of the pack: the top of the archive, or its only directory with a manifest.
fn pack_folder(entries: &[ArchiveEntry]) -> Result<Vec<String>, ArchiveError> {
    let manifests = entries.iter().filter(|it| it.path.last().is_some_and(|it| it == MANIFEST));
    let mut folders: Vec<&[String]> =
        manifests.filter_map(|it| it.path.split_last()).map(|(_, folder)| folder).collect();
    folders.retain(|it| it.len() <= 1);
    folders.sort_unstable();
    match folders.as_slice() {
        [] => Err(ArchiveError::NoManifest),
        [[], ..] => Ok(Vec::new()),
        [only] => Ok(only.to_vec()),
        several => {
            let names: Vec<String> = several.iter().map(|it| it.join("/")).collect();
            Err(ArchiveError::SeveralPacks(names.join(", ")))
        }
    }
}
