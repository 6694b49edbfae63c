//! The state directory of a project: the usual one, or one of the user if the usual one cannot be used.
//!
//! A repository can contain anything under the name of the state directory: files that fill policyd's queues and
//! counters, a link, a submodule, or a regular file. In each case, policyd has a usable state directory.

use std::path::{Path, PathBuf};

use super::checkout::{self, TrackedState};
use super::project::STATE_DIR_NAME;
use policyd_shell::path::normal;
use policyd_store::{root, user};
use policyd_world::{FileKind, World, WorldError};

/// Why the usual state directory of a project is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateProblem {
    #[error(
        "git tracks `{0}`, so the repository can contain foreign state; it is not used. To use it again: git rm -r \
         --cached {0}"
    )]
    Tracked(String),
    #[error(
        "{0}, so git may track the state directory; it is not used. Shrink or repair `.git/index`, for example with `git reset`"
    )]
    UnknownIndex(&'static str),
    /// A link, or a directory of another user.
    #[error("{0}")]
    Foreign(String),
    #[error("`{}` is not a directory; move it away", .0.display())]
    NotADirectory(PathBuf),
    #[error("`{}` cannot be used: {error}", path.display())]
    Unreadable { path: PathBuf, error: WorldError },
    #[error("`{}` is read-only, so no state can be saved in it", .0.display())]
    ReadOnly(PathBuf),
}

/// Finds the state directory of a project, and the reason if it is not the usual one.
pub(super) fn find(world: &dyn World, main: &Path) -> (PathBuf, Option<StateProblem>) {
    let usual = world
        .env("POLICYD_STATE_DIR")
        .map_or_else(|| main.join(STATE_DIR_NAME), |it| normal(&main.join(it)));
    let problem = problem(world, main, &usual);
    let elsewhere = problem.as_ref().and_then(|_| user::state_folder(world, &usual));
    (elsewhere.unwrap_or(usual), problem)
}

/// Returns why a state directory cannot be used. `None` if it can, or if it does not exist and can be created.
fn problem(world: &dyn World, main: &Path, state: &Path) -> Option<StateProblem> {
    match checkout::tracked_state(world, main, state) {
        Some(TrackedState::Path(path)) => return Some(StateProblem::Tracked(path)),
        Some(TrackedState::Unknown(why)) => return Some(StateProblem::UnknownIndex(why)),
        None => {}
    }
    // A directory that the user's environment names is where they say.
    if state == main.join(STATE_DIR_NAME)
        && let Some(why) = root::problem(world, state, main)
    {
        return Some(StateProblem::Foreign(why));
    }
    match world.stat(state) {
        Ok(stat) if stat.kind != FileKind::Folder => {
            Some(StateProblem::NotADirectory(state.to_owned()))
        }
        Ok(_) => (!world.is_writable(state)).then(|| StateProblem::ReadOnly(state.to_owned())),
        Err(WorldError::NotFound) => {
            let above = state.ancestors().skip(1).find(|it| world.stat(it).is_ok())?;
            (!world.is_writable(above)).then(|| StateProblem::ReadOnly(above.to_owned()))
        }
        Err(error) => Some(StateProblem::Unreadable { path: state.to_owned(), error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn found(change: impl FnOnce(&FakeWorld)) -> (PathBuf, Option<StateProblem>) {
        let world = FakeWorld::new();
        world.put("/work/readme", "");
        world.set_env("HOME", "/home/dev");
        change(&world);
        find(&world, Path::new("/work"))
    }

    #[test]
    fn what_is_no_directory_of_the_user_is_replaced_by_one() {
        let usual = (PathBuf::from("/work/.policyd"), None);
        assert_eq!(found(|_| ()), usual);
        assert_eq!(found(|it| it.put_folder("/work/.policyd")), usual);
        let cases: [fn(&FakeWorld); 4] = [
            |it| it.put("/work/.policyd", ""),
            |it| it.put_link("/work/.policyd", "/work/data"),
            |it| it.put_link("/work/.policyd", "/nowhere"),
            |it| {
                it.put_folder("/work/.policyd");
                it.give_away("/work/.policyd", 1001);
            },
        ];
        for (at, case) in cases.into_iter().enumerate() {
            let (state, problem) = found(case);
            assert!(state.starts_with("/home/dev/.local/state/policyd"), "{at}: {state:?}");
            let name = state.file_name().unwrap_or_default().to_string_lossy();
            assert!(name.starts_with("work-"), "{at}: {state:?}");
            assert!(problem.is_some(), "{at}");
        }
    }

    #[test]
    fn without_a_home_the_usual_directory_stays() {
        let world = FakeWorld::new();
        world.put("/work/.policyd", "");
        let (state, problem) = find(&world, Path::new("/work"));
        assert_eq!(state, Path::new("/work/.policyd"));
        assert_eq!(problem, Some(StateProblem::NotADirectory(state)));
    }
}
