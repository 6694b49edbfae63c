//! A change of the files of an own pack. Files keep their order and their comments; a trusted pack stays trusted, because
//! a human confirmed exactly this change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FoundPack, trust_record, trust_store};
use policyd_policy::load::Pack;
use policyd_store::document::DocumentError;
use policyd_store::foreign_choices;
use policyd_store::trust::TrustedPack;
use policyd_world::{World, WorldError};
use policyd_yaml::Source;

/// Manifest of a pack that does not exist yet.
pub(super) const USER_MANIFEST: (&str, &str) =
    ("policyd.yaml", "# The user's own additions to the built-in pack.\nversion: 1\nname: user\n");

/// Why the files of a pack could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum PackChangeError {
    #[error("{path}: {error}\nhelp: make the file writable, and run the command again", path = path.display())]
    File { path: PathBuf, error: WorldError },
    #[error(transparent)]
    Trust(#[from] DocumentError),
}

/// New texts of files of a pack.
#[derive(Debug)]
pub struct PackChange {
    /// Directory of the pack.
    pub folder: PathBuf,
    /// Files with their new texts, in the order in which they are written. A file without a text is removed.
    pub files: Vec<(PathBuf, String)>,
    /// The pack as it is afterwards.
    pub(super) after: FoundPack,
    /// Whether a pack that was not there before is trusted.
    pub(super) trusts_new: bool,
}

impl PackChange {
    /// Writes the files, and keeps a trusted pack trusted.
    pub fn write(&self, world: &dyn World) -> Result<(), PackChangeError> {
        let trusted = self.trusted(world)?;
        for (path, text) in &self.files {
            let folder = path.parent().unwrap_or(path);
            let made = match text.is_empty() {
                true => world.remove(path),
                false => {
                    world.create_folder(folder).and_then(|()| world.write(path, text.as_bytes()))
                }
            };
            made.map_err(|error| PackChangeError::File { path: path.clone(), error })?;
        }
        if let Some(trusted) = trusted {
            let hash = Some(self.after.content_hash());
            let trusted = TrustedPack { hash, since: world.now(), ..trusted };
            trust_record::add(world, &self.after, trusted)?;
        }
        if let Some((folder, hash)) = self.after.of_user(world).filter(|it| it.0 == self.folder) {
            foreign_choices::record_pack(world, &folder, &hash);
        }
        super::compile_ahead(world, &self.after);
        Ok(())
    }

    /// Returns the trust in the content of the pack. `None` if the pack needs no trust, or is trusted with every change.
    fn trusted(&self, world: &dyn World) -> Result<Option<TrustedPack>, DocumentError> {
        let Some(store) = trust_store(world) else { return Ok(None) };
        if self.trusts_new {
            let folder = self.folder.display().to_string();
            return Ok(Some(TrustedPack { folder, hash: None, since: world.now() }));
        }
        let all = store.all()?;
        let mut own = all.into_iter().filter(|it| Path::new(&it.folder) == self.folder);
        Ok(own.next().filter(|it| it.hash.is_some()))
    }
}

/// Returns a pack with changed files. A file without a text is left out.
pub(super) fn with_files(pack: Option<&Pack>, folder: &Path, changed: &[(String, String)]) -> Pack {
    let name = folder.display().to_string();
    let mut pack = pack.cloned().unwrap_or(Pack { name, ..Pack::default() });
    for (file, text) in changed {
        let name = folder.join(file).display().to_string();
        let source = Arc::new(Source { name, text: text.clone() });
        match pack.files.iter_mut().find(|(name, _)| name == file) {
            Some((_, known)) => *known = source,
            None => pack.files.push((file.clone(), source)),
        }
    }
    pack.files.retain(|(_, source)| !source.text.is_empty());
    pack.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    pack
}

/// Returns the end of the line of a byte.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at.saturating_add(rest.find('\n').unwrap_or(rest.len()))
}
