//! The user's own directories of policyd on this machine: configuration, cache and state. A project
//! cannot reach them, so what they hold is the user's.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::checksum::hex;
use crate::world::World;

/// Hexadecimal digits that tell two projects of one name apart.
const KEY_DIGITS: usize = 16;

/// A directory of the XDG base directory specification with policyd's name: where the variable says,
/// else below the home directory. Nothing if neither is set.
#[must_use]
pub fn folder(world: &dyn World, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = world.env(variable).map(PathBuf::from);
    let base = named.or_else(|| Some(Path::new(&world.env("HOME")?).join(below_home)))?;
    Some(base.join("policyd"))
}

/// The user's configuration: `$XDG_CONFIG_HOME/policyd`, by default `~/.config/policyd`.
#[must_use]
pub fn config_folder(world: &dyn World) -> Option<PathBuf> {
    folder(world, "XDG_CONFIG_HOME", ".config")
}

/// Where state is kept that cannot be kept at `root`: a directory of its own below
/// `$XDG_STATE_HOME/policyd`, by default `~/.local/state/policyd`.
#[must_use]
pub fn state_folder(world: &dyn World, root: &Path) -> Option<PathBuf> {
    Some(folder(world, "XDG_STATE_HOME", ".local/state")?.join(key(world, root)))
}

/// A file name for a state directory: the name of its project, and a hash of the path that it has
/// once every link is followed.
#[must_use]
pub fn key(world: &dyn World, root: &Path) -> String {
    // The directory itself might not exist yet; its key is the same then.
    let resolved = root.ancestors().find_map(|it| {
        let real = world.real_path(it).ok()?;
        Some(root.strip_prefix(it).ok()?.iter().fold(real, |path, name| path.join(name)))
    });
    let resolved = resolved.unwrap_or_else(|| root.to_path_buf());
    let mut digits = hex(&Sha256::digest(resolved.as_os_str().as_encoded_bytes()));
    digits.truncate(KEY_DIGITS);
    let name = resolved.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("{name}-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::fake::FakeWorld;

    #[test]
    fn a_key_is_the_same_before_and_after_its_directory_exists() {
        let world = FakeWorld::new();
        let root = Path::new("/work/.policyd");
        let before = key(&world, root);
        world.put_folder(root);
        assert_eq!(key(&world, root), before);
        assert!(before.starts_with("work-"), "{before}");
        assert_ne!(key(&world, Path::new("/other/work/.policyd")), before);
    }
}
