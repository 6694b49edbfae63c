//! The projects of each session, one small file per session in the user's state. A project cannot reach them, so what
//! an agent creates around its directory does not move the session to another project.
//!
//! The memory is an optimization of trust, not a source of failures: a file that is damaged, or that cannot be written,
//! means that the project is looked up again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::document::{DamageAction, DocumentError, StoredDocument, with_version};
use super::file::Durability;
use super::user::UserDirectory;
use policyd_base::id::SessionId;
use policyd_base::limits::{
    PRUNED_AT_ONCE_MAX, SESSION_DIRECTORIES_MAX, SESSION_PROJECTS_BYTES_MAX, SESSION_PROJECTS_MAX,
    SESSION_PROJECTS_MAX_AGE,
};
use policyd_world::World;
use policyd_yaml::checksum::hex;

/// Directory below the user's state directory.
const FOLDER: &str = "session-projects";
/// Hexadecimal digits of a file name.
const NAME_DIGITS: usize = 32;

/// The project of a session in one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionProject {
    /// Directory that the client reported: its project directory, else the directory of the event.
    pub directory: PathBuf,
    /// Root of the project.
    pub root: PathBuf,
    /// Main checkout of the project.
    pub main: PathBuf,
}

/// The content of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredProjects {
    projects: Vec<SessionProject>,
}

/// The remembered projects of one session, in the order in which they were decided.
pub struct SessionProjects<'a> {
    world: &'a dyn World,
    /// `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
    document: Option<StoredDocument<'a>>,
    projects: Vec<SessionProject>,
    /// Why nothing can be remembered.
    pub problem: Option<DocumentError>,
    /// Whether the file exists.
    is_stored: bool,
}

impl<'a> SessionProjects<'a> {
    /// Loads the projects of a session. A damaged file contains none.
    #[must_use]
    pub fn load(world: &'a dyn World, session: &SessionId) -> Self {
        let quick = Durability { fsync: false, ..Durability::default() };
        let document = UserDirectory::State.path(world).map(|state| {
            let mut name = hex(&Sha256::digest(session.as_str().as_bytes()));
            name.truncate(NAME_DIGITS);
            let path = state.join(FOLDER).join(format!("{name}.json"));
            let (bytes_max, if_damaged) = (SESSION_PROJECTS_BYTES_MAX, DamageAction::Quarantine);
            StoredDocument::new(world, path, bytes_max, if_damaged).saved_as(&quick)
        });
        let loaded = document.as_ref().map(StoredDocument::load::<StoredProjects>).transpose();
        let (stored, problem) = match loaded {
            Ok(stored) => (stored.flatten(), None),
            Err(DocumentError::Damaged { .. }) => (None, None),
            Err(problem) => (None, Some(problem)),
        };
        let is_stored = stored.is_some();
        let projects = stored.unwrap_or_default().projects;
        Self { world, document, projects, problem, is_stored }
    }

    /// The project that was decided for a directory.
    #[must_use]
    pub fn of(&self, directory: &Path) -> Option<&SessionProject> {
        self.projects.iter().find(|it| it.directory == directory)
    }

    /// The root of the innermost project of the session that contains a directory.
    #[must_use]
    pub fn around(&self, directory: &Path) -> Option<PathBuf> {
        let roots = self.projects.iter().map(|it| &it.root);
        let around = roots.filter(|it| directory.starts_with(it));
        around.max_by_key(|it| it.components().count()).cloned()
    }

    /// Remembers the project of a directory. The first decisions of a session stay, so that later ones cannot displace
    /// them. A path that is not UTF-8 is not remembered, because JSON cannot contain it.
    pub fn remember(&mut self, project: SessionProject) {
        let Some(document) = self.document.as_ref().filter(|_| self.problem.is_none()) else {
            return;
        };
        self.projects.retain(|it| it.directory != project.directory);
        if self.projects.len() >= SESSION_DIRECTORIES_MAX {
            return;
        }
        self.projects.push(project);
        let stored = StoredProjects { projects: self.projects.clone() };
        let text = format!("{}\n", with_version(&stored));
        if let Err(problem) = save(document, &text) {
            self.problem = Some(problem);
        } else if !self.is_stored {
            prune(self.world, document.path());
            self.is_stored = true;
        }
    }
}

fn save(document: &StoredDocument<'_>, text: &str) -> Result<(), DocumentError> {
    document.create_folder()?;
    document.open::<StoredProjects>()?.save(text).map(drop)
}

/// Removes the files of old sessions, and the oldest of too many, except for one. Removes some at a time, so that no
/// hook waits.
fn prune(world: &dyn World, kept: &Path) {
    let folder = kept.parent().unwrap_or(kept);
    let names = world.list(folder).unwrap_or_default();
    let paths = names.iter().filter(|it| it.contains(".json")).map(|it| folder.join(it));
    let dated = |it: PathBuf| Some((world.stat(&it).ok()?.modified, it));
    let mut files: Vec<_> = paths.filter(|it| it != kept).filter_map(dated).collect();
    files.sort();
    let surplus = files.len().saturating_add(1).saturating_sub(SESSION_PROJECTS_MAX);
    let now = world.now();
    let is_old = |at| now.since(at) > SESSION_PROJECTS_MAX_AGE;
    let old = files.iter().enumerate().filter(|(index, (at, _))| *index < surplus || is_old(*at));
    for (_, (_, path)) in old.take(PRUNED_AT_ONCE_MAX) {
        // A file that stays is removed later.
        drop(world.remove(path));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use policyd_world::fake::FakeWorld;

    fn machine() -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world
    }

    fn session(name: &str) -> SessionId {
        SessionId::parse(name).unwrap()
    }

    fn project(directory: &str, root: &str) -> SessionProject {
        SessionProject { directory: directory.into(), root: root.into(), main: root.into() }
    }

    fn path(world: &FakeWorld, name: &str) -> PathBuf {
        let document = SessionProjects::load(world, &session(name)).document;
        document.unwrap().path().to_owned()
    }

    #[test]
    fn a_project_is_remembered_for_its_session_and_directory() {
        let world = machine();
        let first = project("/src/app/lib", "/src/app");
        SessionProjects::load(&world, &session("one")).remember(first.clone());
        let one = SessionProjects::load(&world, &session("one"));
        assert_eq!(one.of(Path::new("/src/app/lib")), Some(&first));
        assert_eq!(one.of(Path::new("/src/app")), None);
        assert_eq!(one.around(Path::new("/src/app/x")), Some("/src/app".into()));
        assert_eq!(one.around(Path::new("/src")), None);
        let two = SessionProjects::load(&world, &session("two"));
        assert_eq!(two.of(Path::new("/src/app/lib")), None);
    }

    #[test]
    fn later_directories_do_not_displace_the_first() {
        let world = machine();
        for number in 0..SESSION_DIRECTORIES_MAX + 3 {
            let directory = format!("/src/{number}");
            SessionProjects::load(&world, &session("s")).remember(project(&directory, "/src"));
        }
        let known = SessionProjects::load(&world, &session("s"));
        assert_eq!(known.projects.len(), SESSION_DIRECTORIES_MAX);
        assert!(known.of(Path::new("/src/0")).is_some());
    }

    #[test]
    fn without_a_directory_nothing_is_remembered() {
        let world = FakeWorld::new();
        SessionProjects::load(&world, &session("s")).remember(project("/src", "/src"));
        assert!(SessionProjects::load(&world, &session("s")).of(Path::new("/src")).is_none());
    }

    #[test]
    fn old_sessions_and_the_oldest_of_too_many_are_forgotten() {
        let world = machine();
        let remember = |name: &str| {
            SessionProjects::load(&world, &session(name)).remember(project("/src", "/src"));
        };
        let is_known = |name: &str| world.get(path(&world, name)).is_some();
        remember("old");
        world.advance(SESSION_PROJECTS_MAX_AGE + Duration::from_secs(1));
        for number in 0..SESSION_PROJECTS_MAX {
            world.advance(Duration::from_secs(1));
            remember(&format!("s{number}"));
        }
        assert!(!is_known("old"));
        assert!(is_known("s0"));
        remember("new");
        assert!(!is_known("s0"));
        assert!(is_known("s1") && is_known("new"));
    }
}
