//! The user's own directories of policyd on this machine: configuration, cache, remote packs, and state. A project
//! cannot reach them, so what they hold is the user's.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use policyd_world::World;
use policyd_yaml::checksum::hex;

/// Hexadecimal digits that tell two projects of one name apart.
const KEY_DIGITS: usize = 16;

/// A directory of the XDG base directory specification with policyd's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserDirectory {
    Configuration,
    Cache,
    Data,
    State,
}

impl UserDirectory {
    /// Every directory.
    pub const ALL: [Self; 4] = [Self::Configuration, Self::Cache, Self::Data, Self::State];

    /// Returns what the directory contains.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Cache => "cache",
            Self::Data => "remote packs",
            Self::State => "state",
        }
    }

    /// Returns the environment variable that names the directory.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Configuration => "XDG_CONFIG_HOME",
            Self::Cache => "XDG_CACHE_HOME",
            Self::Data => "XDG_DATA_HOME",
            Self::State => "XDG_STATE_HOME",
        }
    }

    /// Returns the path: where the variable says, else below the home directory. `None` if neither is set. A relative
    /// path is ignored, as the specification asks: it would name another directory in each project.
    #[must_use]
    pub fn path(self, world: &dyn World) -> Option<PathBuf> {
        let below_home = match self {
            Self::Configuration => ".config",
            Self::Cache => ".cache",
            Self::Data => ".local/share",
            Self::State => ".local/state",
        };
        let absolute = |name: &str| world.env(name).map(PathBuf::from).filter(|it| it.has_root());
        let base =
            absolute(self.variable()).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
        Some(base.join("policyd"))
    }
}

/// The user's configuration: `$XDG_CONFIG_HOME/policyd`, by default `~/.config/policyd`.
#[must_use]
pub fn config_folder(world: &dyn World) -> Option<PathBuf> {
    UserDirectory::Configuration.path(world)
}

/// Where state is kept that cannot be kept at `root`: a directory of its own below
/// `$XDG_STATE_HOME/policyd`, by default `~/.local/state/policyd`.
#[must_use]
pub fn state_folder(world: &dyn World, root: &Path) -> Option<PathBuf> {
    // Several projects can have a link to one place as their root.
    let is_link = world.entry(root).is_ok_and(|it| it.link.is_some());
    let own = || Some(world.real_path(root.parent()?).ok()?.join(root.file_name()?));
    let key = match is_link.then(own).flatten() {
        Some(own) => key_of(&own),
        None => key(world, root),
    };
    Some(UserDirectory::State.path(world)?.join(key))
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
    key_of(&resolved.unwrap_or_else(|| root.to_path_buf()))
}

fn key_of(resolved: &Path) -> String {
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
    use policyd_world::fake::FakeWorld;

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

    #[test]
    fn a_relative_directory_is_ignored() {
        let world = FakeWorld::new();
        world.set_env("HOME", "relative");
        assert_eq!(config_folder(&world), None);
        world.set_env("HOME", "/home/me");
        world.set_env("XDG_CONFIG_HOME", "./config");
        assert_eq!(config_folder(&world), Some("/home/me/.config/policyd".into()));
    }
}
