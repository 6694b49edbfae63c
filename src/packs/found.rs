//! A pack as found on this machine: its files, its hashes, and whose it is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::directory::of_project;
use super::folder::Folder;
use super::untrusted::UntrustedPack;
use policyd_policy::builtin;
use policyd_policy::load::Pack;
use policyd_policy::remote::RemotePack;
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_store::user;
use policyd_workspace::project::Project;
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::hex;

/// Who decides about a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Layer {
    /// The user, or the project with the user's trust.
    Project,
    /// The administrator of the machine: only its own rules count, and nothing below changes them.
    Organization,
}

/// A pack as found on this machine.
#[derive(Debug)]
pub struct FoundPack {
    /// Who decides about it.
    pub(super) layer: Layer,
    /// Its files, read; `None`: the built-in pack.
    pub(super) folder: Option<Pack>,
    /// The pack of the user beneath the pack of a project.
    pub(super) beneath: Option<Pack>,
    /// SHA-256 over the names and contents of all source files.
    pub(super) content: [u8; 32],
    /// The same with its name and the built-in pack.
    pub(super) hash: [u8; 32],
    /// What lay nearer and is not trusted.
    pub untrusted: Vec<UntrustedPack>,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

impl FoundPack {
    pub(super) fn new(folder: Option<Pack>, unreadable: Vec<String>) -> Self {
        let content = content(folder.as_ref());
        let hash = hash(folder.as_ref(), &content);
        let (layer, untrusted, beneath) = (Layer::Project, Vec::new(), None);
        Self { layer, folder, beneath, content, hash, untrusted, unreadable }
    }

    /// The same pack over the pack of the user. The user trusts only the pack itself, so its content stays.
    pub(super) fn over(self, beneath: Option<Pack>) -> Self {
        let Some(pack) = beneath else { return self };
        let hash = Sha256::new().chain_update(self.hash).chain_update(content(Some(&pack)));
        Self { hash: hash.finalize().into(), beneath: Some(pack), ..self }
    }

    /// The same place with other files.
    #[must_use]
    pub fn with_pack(&self, pack: Pack) -> Self {
        Self { layer: self.layer, ..Self::new(Some(pack), Vec::new()) }
    }

    /// Its files; `None` for the built-in pack.
    pub fn own_files(&self) -> Option<&Pack> {
        self.folder.as_ref()
    }

    /// The beginning of `hash`, as it is logged.
    pub fn short_hash(&self) -> &[u8] {
        self.hash.get(..8).unwrap_or_default()
    }

    /// Hash of its files, as trust keeps it.
    pub fn content_hash(&self) -> String {
        hex(&self.content)
    }

    /// Its folder as shown to people; none for the built-in pack.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_ref().map(|it| it.name.as_str())
    }

    /// The remote packs that it names.
    pub fn remote(&self) -> &[RemotePack] {
        self.folder.as_ref().map(|it| it.remote.as_slice()).unwrap_or_default()
    }

    /// The user's pack beneath it.
    pub fn beneath_files(&self) -> Option<&Pack> {
        self.beneath.as_ref()
    }

    /// The directory of the user's pack beneath it.
    pub fn beneath(&self) -> Option<&str> {
        self.beneath.as_ref().map(|it| it.name.as_str())
    }

    /// Returns the directory of the user's pack, and the hash of its content as trust keeps it; empty without a pack. `None` if
    /// another pack was named, or if the user's pack does not count here.
    pub fn of_user(&self, world: &dyn World) -> Option<(PathBuf, String)> {
        let folder = user::config_folder(world)?.join("policies");
        let hash = match (&self.beneath, self.folder().map(Path::new)) {
            (Some(pack), _) => hex(&content(Some(pack))),
            (None, Some(own)) if own == folder => self.content_hash(),
            (None, _) if world.stat(&folder) == Err(WorldError::NotFound) => String::new(),
            (None, _) => return None,
        };
        Some((folder, hash))
    }

    /// Whose packs its rules come from.
    pub fn layers(&self, world: &dyn World, project: &Project) -> PackLayers {
        let user = self.beneath().map(str::to_owned);
        PackLayers { own: self.owner(world, project), user }
    }

    /// Its name: the directory, or the name of the built-in pack.
    pub(super) fn name(&self) -> &str {
        self.folder().unwrap_or(builtin::NAME)
    }

    /// Whose pack it is.
    pub fn owner(&self, world: &dyn World, project: &Project) -> PackLayer {
        let Some(folder) = self.folder().map(Path::new) else { return PackLayer::BuiltIn };
        let of_user = user::config_folder(world).map(|it| it.join("policies"));
        if self.layer == Layer::Organization {
            PackLayer::Organization
        } else if of_project(project).iter().any(|it| it == folder) {
            PackLayer::Project
        } else if of_user.is_some_and(|it| it == folder) {
            PackLayer::User
        } else {
            PackLayer::Named
        }
    }

    /// The pack; the text of the built-in one is copied only when it is asked for.
    pub fn pack(&self) -> Cow<'_, Pack> {
        self.folder.as_ref().map_or_else(|| Cow::Owned(builtin::pack()), Cow::Borrowed)
    }
}

/// Reads the YAML files of a folder; for a file, of the folder it is in.
pub(super) fn read(world: &dyn World, named: &Path) -> FoundPack {
    let (pack, unreadable) = Folder::of(world, named).read(world, |it| it.display().to_string());
    FoundPack::new(Some(pack), unreadable)
}

/// Returns the SHA-256 over the names and contents of a pack's source files, and the hashes of its remote packs.
fn content(pack: Option<&Pack>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (file, source) in pack.iter().flat_map(|it| &it.files) {
        hash.update(file);
        hash.update([0]);
        hash.update(source.text.len().to_le_bytes());
        hash.update(&source.text);
    }
    for remote in pack.iter().flat_map(|it| &it.remote) {
        hash.update(&remote.source);
        hash.update([0]);
        hash.update(remote.sha256.as_deref().unwrap_or_default());
    }
    hash.finalize().into()
}

/// The same with the name of the pack and the built-in pack.
fn hash(pack: Option<&Pack>, content: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(builtin::FINGERPRINT.to_le_bytes());
    hash.update(pack.map_or(builtin::NAME, |it| it.name.as_str()));
    hash.update(content);
    hash.finalize().into()
}
