//! What git says of a project, read from the files of its `.git` directory: the main checkout of a
//! worktree, the remote, and whether git tracks files of the state directory. Starts no program.

use std::path::{Path, PathBuf};

use policyd_base::git_index::{self, Scan};
use policyd_base::limits;
use policyd_shell::path::normal;
use policyd_world::{FileKind, World, WorldError};

/// The checkout around a directory: the nearest directory at or above it with a `.git` that git uses.
///
/// git ignores a `.git` without `HEAD`: the sandbox of Codex creates empty ones in each directory that it may
/// write to. A `.git` of another user does not count, as in git itself: every user can put one into `/tmp`.
pub fn around(world: &dyn World, folder: &Path) -> Option<PathBuf> {
    let user = world.user();
    let is_own = |path: &Path| match (user, world.entry(path).map(|it| it.owner)) {
        (Some(user), Ok(Some(owner))) => user == 0 || owner == user || owner == 0,
        (_, Ok(_)) => true,
        (_, Err(_)) => false,
    };
    let is_checkout = |folder: &&Path| {
        let git = folder.join(".git");
        is_own(&git) && git_dir(world, &git).is_some_and(|it| has_head(world, &it))
    };
    folder.ancestors().find(is_checkout).map(Path::to_path_buf)
}

/// Whether a git directory has a `HEAD`. It can be a symbolic link to a branch that has no commit yet.
fn has_head(world: &dyn World, git_dir: &Path) -> bool {
    world.entry(&git_dir.join("HEAD")).is_ok()
}

/// The main checkout of a worktree: `.git` is a file that leads into the main `.git` directory, which
/// leads back to it. Without the way back, any directory could claim to be a worktree of another one.
pub fn main_checkout(world: &dyn World, root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let own = git_dir(world, &link).filter(|it| *it != link)?;
    let common = normal(&own.join(text(world, &own.join("commondir"))?.trim()));
    let back = text(world, &own.join("gitdir"))?;
    let is_listed = own.parent() == Some(common.join("worktrees").as_path());
    if !is_listed || !is_same(world, &own.join(back.trim()), &link) {
        return None;
    }
    let main = common.parent()?.to_path_buf();
    (common.file_name()? == ".git").then_some(main)
}

/// Whether two paths lead to one file.
fn is_same(world: &dyn World, one: &Path, other: &Path) -> bool {
    let (one, other) = (normal(one), normal(other));
    one == other || world.real_path(&one).is_ok_and(|it| world.real_path(&other) == Ok(it))
}

/// The git directory that a `.git` is, or that the file `.git` names.
fn git_dir(world: &dyn World, git: &Path) -> Option<PathBuf> {
    if world.stat(git).ok()?.kind == FileKind::Folder {
        return Some(git.to_path_buf());
    }
    let named = text(world, git)?;
    Some(normal(&git.parent()?.join(named.strip_prefix("gitdir:")?.trim())))
}

/// The text of a small file of git.
fn text(world: &dyn World, path: &Path) -> Option<String> {
    String::from_utf8(world.read(path, limits::GIT_CONFIG_BYTES_MAX).ok()?).ok()
}

/// What git tracks of a state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackedState {
    /// This path: the directory itself as a file, link, or submodule, or something below it.
    Path(String),
    /// The index of git does not say. Contains the reason.
    Unknown(&'static str),
}

/// What git tracks of a state directory in a checkout, if it tracks any of it. Policies and
/// policyd's own `.gitignore` may be tracked: trust decides about those.
///
/// An index that cannot be read, or of which too much stands before the state directory, counts as
/// one that tracks it: state is kept elsewhere then, which is safe in both cases.
pub fn tracked_state(world: &dyn World, main: &Path, state: &Path) -> Option<TrackedState> {
    // A link that leads nowhere exists, too.
    world.entry(state).ok()?;
    let top = around(world, main)?;
    let below = state.strip_prefix(&top).ok()?.to_str()?;
    let git = git_dir(world, &top.join(".git"))?;
    let prefix = format!("{}/", below.replace('\\', "/"));
    // The directory of policies can be a submodule.
    let own_policies = format!("{prefix}policies").to_ascii_lowercase();
    let policies = format!("{own_policies}/");
    let ignore = format!("{prefix}.gitignore").to_ascii_lowercase();
    let is_exempt = |name: &[u8]| {
        let name = name.to_ascii_lowercase();
        name.starts_with(policies.as_bytes())
            || name == own_policies.as_bytes()
            || name == ignore.as_bytes()
    };
    let mut file = world.open(&git.join("index")).ok()?;
    let mut bytes = Vec::new();
    let mut id_bytes = None;
    for size in [limits::GIT_INDEX_BYTES_FIRST, limits::GIT_INDEX_BYTES_MAX] {
        let begun = bytes.len();
        bytes.resize(size, 0);
        let mut length = begun;
        while let Some(rest) = bytes.get_mut(length..).filter(|it| !it.is_empty()) {
            match file.read_at(length as u64, rest) {
                Ok(0) => break,
                Ok(read) => length = length.saturating_add(read),
                Err(_) => return Some(TrackedState::Unknown("the index of git could not be read")),
            }
        }
        bytes.truncate(length);
        let id_bytes = *id_bytes.get_or_insert_with(|| object_id_bytes(world, &git));
        match git_index::scan(&bytes, id_bytes, prefix.as_bytes(), is_exempt) {
            Scan::Tracked(path) => return Some(TrackedState::Path(path)),
            Scan::Untracked => return None,
            Scan::Malformed => {
                return Some(TrackedState::Unknown("the index of git has an unknown format"));
            }
            Scan::Incomplete => {}
        }
    }
    Some(TrackedState::Unknown("the index of git is too large to search"))
}

/// Length of an object id in bytes: 20, or 32 in the SHA-256 format.
fn object_id_bytes(world: &dyn World, git: &Path) -> usize {
    let config = text(world, &git.join("config")).unwrap_or_default().to_ascii_lowercase();
    let is_sha256 = config.lines().any(|it| it.trim().replace(' ', "") == "objectformat=sha256");
    if is_sha256 { 32 } else { 20 }
}

/// Paths that git tracks in the checkout around `folder`, relative to `folder`, in order, at most
/// `most`. `None` without a checkout, or if its index cannot be read.
pub fn tracked_files(world: &dyn World, folder: &Path, most: usize) -> Option<Vec<String>> {
    let top = around(world, folder)?;
    let git = git_dir(world, &top.join(".git"))?;
    let bytes = world.read(&git.join("index"), limits::GIT_INDEX_BYTES_MAX).ok()?;
    let names = git_index::names(&bytes, object_id_bytes(world, &git), most)?;
    let below = folder.strip_prefix(&top).ok()?;
    let own = names.iter().filter_map(|it| Path::new(it).strip_prefix(below).ok()?.to_str());
    Some(own.map(str::to_owned).collect())
}

/// Which of some paths git tracks in the checkout `top`, as files or as directories of files. `None` if its index cannot
/// be read.
pub fn tracked(world: &dyn World, top: &Path, paths: &[&str]) -> Option<Vec<bool>> {
    let git = git_dir(world, &top.join(".git"))?;
    match world.read(&git.join("index"), limits::GIT_INDEX_BYTES_MAX) {
        Ok(bytes) => git_index::contains(&bytes, object_id_bytes(world, &git), paths),
        // A new repository has no index.
        Err(WorldError::NotFound) => Some(vec![false; paths.len()]),
        Err(_) => None,
    }
}

/// Host of the remote that the project is published to, in small letters: of `origin`, else of the
/// first remote; nothing for a folder of this machine.
pub fn remote_host(world: &dyn World, main: &Path) -> Option<String> {
    let config = main.ancestors().find_map(|it| git_config(world, &it.join(".git")))?;
    host(remote_address(&config)?).map(|it| it.to_ascii_lowercase())
}

/// The text of a checkout's git configuration; a worktree shares that of its main checkout.
fn git_config(world: &dyn World, git: &Path) -> Option<String> {
    let own = git_dir(world, git)?;
    text(world, &own.join("config")).or_else(|| {
        let shared = text(world, &own.join("commondir"))?;
        text(world, &normal(&own.join(shared.trim())).join("config"))
    })
}

fn remote_address(config: &str) -> Option<&str> {
    let mut remote = None;
    let mut first = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            remote = section.strip_prefix("remote \"").and_then(|it| it.split('"').next());
        } else if let (Some(name), Some((key, address))) = (remote, line.split_once('='))
            && key.trim().eq_ignore_ascii_case("url")
        {
            let address = address.trim().trim_matches('"');
            if name == "origin" {
                return Some(address);
            }
            first = first.or(Some(address));
        }
    }
    first
}

/// The host in `https://user@host:1/path`, `ssh://host/path` or `user@host:path`.
fn host(address: &str) -> Option<&str> {
    let (authority, is_url) = match address.split_once("://") {
        Some((_, rest)) => (rest.split('/').next()?, true),
        None => (address.split_once(':')?.0, false),
    };
    let host = authority.rsplit('@').next()?;
    let host = if is_url { host.split(':').next()? } else { host };
    (!host.is_empty() && !host.contains(['/', '\\'])).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::{host, remote_address};

    #[test]
    fn a_project_is_published_to_origin_or_to_the_first_remote() {
        let core = "[core]\n\tbare = false\n\turl = x\n";
        let other = "[remote \"fork\"]\n\turl = git@codeberg.org:me/it.git\n\tfetch = +refs/*\n";
        let origin = "[remote \"origin\"]\n\turl = https://gitlab.com/a/b.git\n";
        let address = |texts: &[&str]| remote_address(&texts.concat()).map(str::to_owned);
        assert_eq!(address(&[core]), None);
        assert_eq!(address(&[core, other]).as_deref(), Some("git@codeberg.org:me/it.git"));
        assert_eq!(address(&[other, core, origin]).as_deref(), Some("https://gitlab.com/a/b.git"));
        assert_eq!(address(&["[remote \"origin\"]\n\tURL = \"a:b\"\n"]).as_deref(), Some("a:b"));
        assert_eq!(address(&["[branch \"main\"]\n\tremote = origin\n"]), None);
    }

    #[test]
    fn the_host_alone_names_the_forge() {
        for (address, expected) in [
            ("https://github.com/a/b.git", Some("github.com")),
            ("https://me:github_pat_x@git.corp.com:8443/x", Some("git.corp.com")),
            ("ssh://git@gitlab.com/acme/github-sync", Some("gitlab.com")),
            ("git@github.com:go-gitea/gitea.git", Some("github.com")),
            ("codeberg.org:a/b", Some("codeberg.org")),
            ("/srv/github/backup.git", None),
            ("../github/b", None),
            ("./a:b", None),
            ("file:///srv/github.git", None),
            ("", None),
        ] {
            assert_eq!(host(address), expected, "{address}");
        }
    }
}
