//! Where the agent works: the project's folder, its main checkout, and the switches that turn
//! the gate off. Reads a few small files, runs nothing.

use std::path::{Path, PathBuf};

use crate::facts::call::Surroundings;
use crate::facts::event::Event;
use crate::limits;
use crate::path::normal;
use crate::policy::{self, Settings};
use crate::state::context::Overrides;
use crate::store::file::Durability;
use crate::store::prune::Retention;
use crate::store::root;
use crate::store::session::{Layout, SessionStore};
use crate::world::fenced::FencedWorld;
use crate::world::{FileKind, World};

/// Folder of policyd's files in a project.
pub(super) const OWN_FOLDER: &str = ".policyd";
/// Folder of amplihack's power steering in a project.
const AMPLIHACK_FOLDER: &str = ".claude/runtime/power-steering";

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Project {
    /// The folder the agent works in now.
    pub(super) folder: PathBuf,
    /// The project: as the client says, else the git checkout around the folder.
    pub(super) root: PathBuf,
    /// Its main checkout: worktrees of one repository share their state.
    pub(super) main: PathBuf,
}

/// Finds the project of an event.
pub(super) fn find(world: &dyn World, event: Option<&Event>) -> Project {
    let exists = |path: &PathBuf| world.stat(path).is_ok_and(|it| it.kind == FileKind::Folder);
    let said = event.and_then(|it| it.folder.clone()).filter(exists);
    let folder = said.unwrap_or_else(|| world.working_folder());
    let named = world.env("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(exists);
    let checkout = || folder.ancestors().find(|it| world.stat(&it.join(".git")).is_ok());
    let root =
        named.or_else(|| checkout().map(Path::to_path_buf)).unwrap_or_else(|| folder.clone());
    let main = main_checkout(world, &root).unwrap_or_else(|| root.clone());
    Project { folder, root, main }
}

/// The main checkout of a worktree: `.git` is a file that leads into the main `.git` folder.
fn main_checkout(world: &dyn World, root: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(world.read(&root.join(".git"), 4096).ok()?).ok()?;
    let own = root.join(text.strip_prefix("gitdir:")?.trim());
    let common = world.read(&own.join("commondir"), 4096).ok()?;
    let common = own.join(String::from_utf8(common).ok()?.trim());
    let common = normal(&common);
    let main = common.parent()?.to_path_buf();
    (common.file_name()? == ".git").then_some(main)
}

/// Host of the remote that the project is published to, in small letters: of `origin`, else of the
/// first remote; nothing for a folder of this machine.
pub(super) fn remote_host(world: &dyn World, project: &Project) -> Option<String> {
    let config = project.main.ancestors().find_map(|it| git_config(world, &it.join(".git")))?;
    host(remote_address(&config)?).map(|it| it.to_ascii_lowercase())
}

/// The text of a checkout's git configuration; `.git` may be a file that leads to it.
fn git_config(world: &dyn World, git: &Path) -> Option<String> {
    let read = |path: &Path| {
        let bytes = world.read(path, limits::GIT_CONFIG_BYTES_MAX).ok()?;
        String::from_utf8(bytes).ok()
    };
    read(&git.join("config")).or_else(|| {
        let leads_to = read(git)?;
        let folder = git.parent()?.join(leads_to.strip_prefix("gitdir:")?.trim());
        let shared = read(&folder.join("commondir"));
        let shared = shared.map_or_else(|| folder.clone(), |it| folder.join(it.trim()));
        read(&normal(&shared).join("config"))
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

/// The root of our own where no manifest can be asked.
pub(super) fn own_root(world: &dyn World, project: &Project) -> PathBuf {
    folder_of(world, project, "POLICYD_STATE_DIR").unwrap_or_else(|| project.main.join(OWN_FOLDER))
}

/// A World that writes to the project's own root as `root::fenced` says; nothing where the user names
/// another root.
pub(super) fn fenced<'w>(world: &'w dyn World, project: &Project) -> Option<FencedWorld<'w>> {
    let root = project.main.join(OWN_FOLDER);
    let is_own = own_root(world, project) == root;
    is_own.then(|| root::fenced(world, &[&root], &project.main))
}

/// A World in which nothing is written to the folders that the manifest names, as for the project's own
/// root; nothing where all is well. Folders that the user's environment names are where they say, and one
/// beside the project comes with no repository.
pub(super) fn fenced_by_pack<'w>(
    world: &'w dyn World,
    project: &Project,
    settings: &Settings,
) -> Option<FencedWorld<'w>> {
    let paths = &settings.paths;
    let is_named = |variable: &str| world.env(variable).is_some();
    let root = match paths.layout {
        _ if is_named("POLICYD_STATE_DIR") => "",
        _ if !paths.root.is_empty() => paths.root.as_str(),
        policy::Layout::Amplihack if !is_named("AMPLIHACK_PS_STATE_DIR") => AMPLIHACK_FOLDER,
        policy::Layout::Amplihack | policy::Layout::Policyd => "",
    };
    let named = [root, paths.diagnostics.as_str()].into_iter().filter(|it| !it.is_empty());
    let within = |it: &PathBuf| normal(it).starts_with(&project.main);
    let within = named.map(|it| project.main.join(it)).filter(within);
    let within: Vec<PathBuf> = within.collect();
    let roots: Vec<&Path> = within.iter().map(PathBuf::as_path).collect();
    (!roots.is_empty()).then(|| root::fenced(world, &roots, &project.main))
}

/// The folder that a variable names, relative to the project.
fn folder_of(world: &dyn World, project: &Project, variable: &str) -> Option<PathBuf> {
    world.env(variable).map(|it| project.main.join(it))
}

/// Where a project's sessions are kept, and the root of our own with the logs: environment,
/// manifest, layout.
pub(super) fn sessions<'w>(
    world: &'w dyn World,
    project: &Project,
    settings: &Settings,
) -> (SessionStore<'w>, PathBuf) {
    let paths = &settings.paths;
    let own_variable = folder_of(world, project, "POLICYD_STATE_DIR");
    let seed_variable = folder_of(world, project, "AMPLIHACK_PS_STATE_DIR");
    let manifest = (!paths.root.is_empty()).then(|| project.main.join(&paths.root));
    let named = own_variable.or(manifest);
    let own = named.clone().unwrap_or_else(|| project.main.join(OWN_FOLDER));
    let (root, layout) = match (named, seed_variable, paths.layout) {
        (Some(root), _, _) => (root, Layout::policyd()),
        // The seed's variable names the folder of the session folders.
        (None, Some(root), _) => (root, Layout::bare()),
        (None, None, policy::Layout::Policyd) => (own.clone(), Layout::policyd()),
        (None, None, policy::Layout::Amplihack) => (project.main.clone(), Layout::power_steering()),
    };
    let mut store = SessionStore::new(world, root, layout);
    store.durability = durability(world, &settings.durability);
    store.debug = debug(world);
    if !paths.diagnostics.is_empty() {
        store.diagnostics = Some(project.main.join(&paths.diagnostics));
    }
    store.retention = Some(Retention {
        age_max: settings.sessions_max_age,
        sessions_max: settings.sessions_max_count,
    });
    (store, own)
}

/// The manifest's numbers, changed by the environment (`POLICYD_*`, the seed's as aliases).
fn durability(world: &dyn World, settings: &policy::Durability) -> Durability {
    let get = |name: &str| {
        world.env(&format!("POLICYD_{name}")).or_else(|| world.env(&format!("AMPLIHACK_PS_{name}")))
    };
    let no_fsync = is_on(world, "POLICYD_NO_FSYNC") || is_on(world, "AMPLIHACK_PS_NO_FSYNC");
    Durability {
        fsync: settings.fsync && !no_fsync,
        verify: settings.verify,
        retry_delays: settings.retry_delays.clone(),
        attempts: get("MAX_RETRIES").and_then(|it| it.parse().ok()).unwrap_or(settings.attempts),
    }
}

/// Temporary folders of this machine besides the usual ones, and the client's own: what an agent
/// leaves there is nobody's work.
pub(super) fn scratch_folders(world: &dyn World) -> Vec<PathBuf> {
    let home = world.env("HOME").map(|it| Path::new(&it).join(".claude"));
    world.env("TMPDIR").map(PathBuf::from).into_iter().chain(home).collect()
}

/// Folders of this machine in which a tool call may leave what it likes.
pub(super) fn temporary_folders(world: &dyn World) -> Vec<String> {
    let own = ["TMPDIR", "TEMP"].iter().filter_map(|it| world.env(it));
    // macOS and Windows write it with a slash at its end.
    let own = own.map(|it| it.trim_end_matches(['/', '\\']).to_owned()).filter(|it| !it.is_empty());
    Surroundings::TEMPORARY.map(str::to_owned).into_iter().chain(own).collect()
}

/// Whether a variable switches something on: set, and none of the usual words for no.
pub(super) fn is_on(world: &dyn World, name: &str) -> bool {
    let off = ["0", "false", "no", "off"];
    world.env(name).is_some_and(|it| !off.contains(&it.to_ascii_lowercase().as_str()))
}

/// What the environment says of the context's window, and what is wrong with it.
pub(super) fn overrides(world: &dyn World) -> (Overrides, Vec<String>) {
    Overrides::read(|name| world.env(name))
}

/// Whether the debug log is kept.
pub(super) fn debug(world: &dyn World) -> bool {
    is_on(world, "POLICYD_DEBUG") || is_on(world, "AMPLIHACK_PS_DEBUG")
}

/// Why the gate is switched off, if it is: a variable or a `.disabled` file, found from worktrees.
pub(super) fn switched_off(world: &dyn World, project: &Project) -> Option<String> {
    if is_on(world, "POLICYD_DISABLED") {
        return Some("POLICYD_DISABLED is set".to_owned());
    }
    // amplihack: any text disables, even `0`.
    if world.env("AMPLIHACK_SKIP_POWER_STEERING").is_some() {
        return Some("AMPLIHACK_SKIP_POWER_STEERING is set".to_owned());
    }
    // Mostly they are one folder.
    let mut roots = vec![&project.folder, &project.root, &project.main];
    roots.dedup();
    let files = roots.iter().flat_map(|root| {
        ["", OWN_FOLDER, AMPLIHACK_FOLDER].map(|folder| root.join(folder).join(".disabled"))
    });
    let found = files.into_iter().find(|it| world.stat(it).is_ok());
    found.map(|it| format!("{} exists", it.display()))
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
