//! Where the agent works: the project's folder, its main checkout, and its state directory. Reads a
//! few small files, runs nothing.

use std::path::{Path, PathBuf};

use super::checkout;
use super::state_root::{self, StateProblem};
use policyd_facts::call::CallEnvironment;
use policyd_facts::event::Event;
use policyd_policy::{self as policy, ManifestSettings};
use policyd_shell::path::normal;
use policyd_state::context::Overrides;
use policyd_store::document::DocumentError;
use policyd_store::file::Durability;
use policyd_store::prune::Retention;
use policyd_store::root;
use policyd_store::session::{Layout, SessionStore};
use policyd_store::session_projects::{SessionProject, SessionProjects};
use policyd_world::fenced::WriteProtectedWorld;
use policyd_world::{FileKind, World};

/// Folder of policyd's files in a project.
pub const STATE_DIR_NAME: &str = ".policyd";

/// Directory of amplihack's power steering in a project.
pub const AMPLIHACK_FOLDER: &str = ".claude/runtime/power-steering";

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder the agent works in now.
    pub folder: PathBuf,
    /// The project: as the client says, else the git checkout around the folder.
    pub root: PathBuf,
    /// Its main checkout: worktrees of one repository share their state.
    pub main: PathBuf,
    /// The state directory, if no manifest names another one.
    pub state: PathBuf,
    /// Why the usual state directory is not used, so that `state` is a directory of the user.
    pub state_problem: Option<StateProblem>,
    /// Why the project of the session could not be read or remembered.
    pub memory_problem: Option<DocumentError>,
}

/// Finds the project of an event, or of this process.
///
/// The first event of a session decides, and the user's state remembers it: an agent that creates a checkout around
/// its directory must not leave the rules and the state of its project.
pub fn find(world: &dyn World, event: Option<&Event>) -> Project {
    let exists = |path: &PathBuf| world.stat(path).is_ok_and(|it| it.kind == FileKind::Folder);
    let said = event.and_then(|it| it.folder.clone()).filter(exists);
    let folder = said.unwrap_or_else(|| world.working_folder());
    let named = world.env("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(exists);
    let directory = named.clone().unwrap_or_else(|| folder.clone());
    let session = event.filter(|it| it.session_known);
    let known = session.map(|it| SessionProjects::load(world, &it.session_id));
    let remembered = known.as_ref().and_then(|it| it.of(&directory)).filter(|it| exists(&it.root));
    if let Some(SessionProject { root, main, .. }) = remembered {
        let (root, main) = (root.clone(), main.clone());
        return with_state(world, folder, root, main);
    }
    let checkout = || checkout::around(world, &folder);
    let above = || known.as_ref().and_then(|it| it.around(&folder)).filter(|it| exists(it));
    let root = named.or_else(|| match (checkout(), above()) {
        // A checkout inside of the session's project is a project of its own.
        (Some(checkout), Some(above)) if !checkout.starts_with(&above) => Some(above),
        (checkout, above) => checkout.or(above),
    });
    let mut project = rooted(world, folder, root.unwrap_or_else(|| directory.clone()));
    if let Some(mut known) = known {
        let (root, main) = (project.root.clone(), project.main.clone());
        known.remember(SessionProject { directory, root, main });
        project.memory_problem = known.problem;
    }
    project
}

/// Finds the project of a directory, whatever the environment of this process says about its own project.
pub fn at(world: &dyn World, folder: &Path) -> Project {
    let root = checkout::around(world, folder).unwrap_or_else(|| folder.to_owned());
    rooted(world, folder.to_owned(), root)
}

fn rooted(world: &dyn World, folder: PathBuf, root: PathBuf) -> Project {
    let main = checkout::main_checkout(world, &root).unwrap_or_else(|| root.clone());
    with_state(world, folder, root, main)
}

fn with_state(world: &dyn World, folder: PathBuf, root: PathBuf, main: PathBuf) -> Project {
    let (state, state_problem) = state_root::find(world, &main);
    Project { folder, root, main, state, state_problem, memory_problem: None }
}

/// A World that writes to the project's own root as `root::fenced` says; nothing where the user names
/// another root.
pub fn fenced<'w>(world: &'w dyn World, project: &Project) -> Option<WriteProtectedWorld<'w>> {
    let root = project.main.join(STATE_DIR_NAME);
    (project.state == root).then(|| root::fenced(world, &[&root], &project.main))
}

/// A World in which nothing is written to the folders that the manifest names, as for the project's own
/// root; nothing where all is well. Folders that the user's environment names are where they say, and one
/// beside the project comes with no repository.
pub fn fenced_by_pack<'w>(
    world: &'w dyn World,
    project: &Project,
    settings: &ManifestSettings,
) -> Option<WriteProtectedWorld<'w>> {
    let paths = &settings.paths;
    let is_named = |variable: &str| world.env(variable).is_some();
    let root = match paths.layout {
        _ if is_named("POLICYD_STATE_DIR") => "",
        _ if !paths.root.is_empty() => paths.root.as_str(),
        policy::LayoutName::Amplihack if !is_named("AMPLIHACK_PS_STATE_DIR") => AMPLIHACK_FOLDER,
        policy::LayoutName::Amplihack | policy::LayoutName::Policyd => "",
    };
    let named = [root, paths.diagnostics.as_str()].into_iter().filter(|it| !it.is_empty());
    let within = |it: &PathBuf| normal(it).starts_with(&project.main);
    let within = named.map(|it| project.main.join(it)).filter(within);
    let within: Vec<PathBuf> = within.collect();
    let roots: Vec<&Path> = within.iter().map(PathBuf::as_path).collect();
    (!roots.is_empty()).then(|| root::fenced(world, &roots, &project.main))
}

/// The folder that a variable names, relative to the project.
fn dir_from_env(world: &dyn World, project: &Project, variable: &str) -> Option<PathBuf> {
    world.env(variable).map(|it| project.main.join(it))
}

/// The session store of a project, and its state directory with the logs, by environment,
/// manifest, layout.
pub fn sessions<'w>(
    world: &'w dyn World,
    project: &Project,
    settings: &ManifestSettings,
) -> (SessionStore<'w>, PathBuf) {
    let paths = &settings.paths;
    let own_variable = world.env("POLICYD_STATE_DIR").map(|_| project.state.clone());
    let seed_variable = dir_from_env(world, project, "AMPLIHACK_PS_STATE_DIR");
    let manifest = (!paths.root.is_empty()).then(|| project.main.join(&paths.root));
    let named = own_variable.or(manifest);
    let own = named.clone().unwrap_or_else(|| project.state.clone());
    let (root, layout) = match (named, seed_variable, paths.layout) {
        (Some(root), _, _) => (root, Layout::policyd()),
        // The seed's variable names the folder of the session folders.
        (None, Some(root), _) => (root, Layout::bare()),
        (None, None, policy::LayoutName::Policyd) => (own.clone(), Layout::policyd()),
        (None, None, policy::LayoutName::Amplihack) => {
            (project.main.clone(), Layout::power_steering())
        }
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
fn durability(world: &dyn World, settings: &Durability) -> Durability {
    let get = |name: &str| {
        world.env(&format!("POLICYD_{name}")).or_else(|| world.env(&format!("AMPLIHACK_PS_{name}")))
    };
    let no_fsync = is_on(world, "POLICYD_NO_FSYNC") || is_on(world, "AMPLIHACK_PS_NO_FSYNC");
    Durability {
        fsync: settings.fsync && !no_fsync,
        attempts: get("MAX_RETRIES").and_then(|it| it.parse().ok()).unwrap_or(settings.attempts),
        ..settings.clone()
    }
}

/// Returns the directories for temporary files besides the usual ones, and the client's own directory. Files there do
/// not count as work on the project.
pub fn scratch_folders(world: &dyn World) -> Vec<PathBuf> {
    let home = world.env("HOME").map(|it| Path::new(&it).join(".claude"));
    own_temporary_folders(world).map(PathBuf::from).chain(home).collect()
}

/// Folders of this machine in which a tool call may leave what it likes.
pub fn temporary_folders(world: &dyn World) -> Vec<String> {
    let usual = CallEnvironment::TEMPORARY.map(str::to_owned);
    usual.into_iter().chain(own_temporary_folders(world)).collect()
}

/// The folders for temporary files that the environment names.
fn own_temporary_folders(world: &dyn World) -> impl Iterator<Item = String> {
    let own = ["TMPDIR", "TEMP"].into_iter().filter_map(|it| world.env(it));
    // macOS and Windows write it with a slash at its end.
    own.map(|it| it.trim_end_matches(['/', '\\']).to_owned()).filter(|it| !it.is_empty())
}

/// Whether a variable switches something on: set, and none of the usual words for no.
pub fn is_on(world: &dyn World, name: &str) -> bool {
    let off = ["0", "false", "no", "off"];
    world.env(name).is_some_and(|it| !off.contains(&it.to_ascii_lowercase().as_str()))
}

/// What the environment says of the context's window, and what is wrong with it.
pub fn overrides(world: &dyn World) -> (Overrides, Vec<String>) {
    Overrides::read(|name| world.env(name))
}

/// Whether the debug log is kept.
pub fn debug(world: &dyn World) -> bool {
    is_on(world, "POLICYD_DEBUG") || is_on(world, "AMPLIHACK_PS_DEBUG")
}
