//! Whether the state directory in a project may be written to. A repository can contain a link instead, and a
//! shared directory can contain another user's: the state would be written to an unintended location.
//! May not live here: a root that the user names; it is where they say.

use std::path::Path;

use policyd_world::fenced::{ConfinedDir, WriteProtectedWorld, link_refusal, owner_refusal};
use policyd_world::{PathEntry, World};

/// A World that writes to a root in a project only where the root is the user's own: nothing if it, or a
/// folder above it in the project, is a link or belongs to another user; else nothing behind a link.
#[must_use]
pub fn fenced<'w>(
    world: &'w dyn World,
    roots: &[&Path],
    project: &Path,
) -> WriteProtectedWorld<'w> {
    let (mut fences, mut confined) = (Vec::new(), Vec::new());
    let owners = owners(world, project);
    for root in roots {
        match refusal(world, root, project, &owners) {
            Some(why) => fences.push((root.to_path_buf(), why)),
            None => {
                confined.push(ConfinedDir { root: root.to_path_buf(), owners: owners.clone() });
            }
        }
    }
    WriteProtectedWorld::new(world, fences, confined)
}

/// Returns why a root in a project is not used: it, or a folder above it in the project, is a link or belongs to
/// another user. `None` if it can be used.
#[must_use]
pub fn problem(world: &dyn World, root: &Path, project: &Path) -> Option<String> {
    refusal(world, root, project, &owners(world, project))
}

/// The trusted users of a project: the own one, root and, where root works, the owner of the
/// project; none where the machine has no owners.
fn owners(world: &dyn World, project: &Path) -> Vec<u32> {
    let Some(user) = world.user() else { return Vec::new() };
    let of_project = (user == 0).then(|| world.entry(project).ok()?.owner).flatten();
    [user, 0].into_iter().chain(of_project).collect()
}

/// Why nothing is to be written to a root in a project. A directory that does not exist is not a link.
fn refusal(world: &dyn World, root: &Path, project: &Path, owners: &[u32]) -> Option<String> {
    let refused = |path: &Path, entry: &PathEntry| match (&entry.link, entry.owner) {
        (Some(link), _) => Some(link_refusal(path, link)),
        (None, Some(owner)) if !owners.is_empty() && !owners.contains(&owner) => {
            Some(owner_refusal(path, owner))
        }
        (None, _) => None,
    };
    let below = |it: &&Path| *it != project && it.starts_with(project);
    let link_above = root.ancestors().skip(1).take_while(below).find_map(|it| {
        let entry = world.entry(it).ok().filter(|it| it.link.is_some())?;
        refused(it, &entry)
    });
    link_above.or_else(|| refused(root, &world.entry(root).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn told(change: impl FnOnce(&FakeWorld)) -> Option<String> {
        let world = FakeWorld::new();
        world.put("/work/.policyd/sessions/s/state.json", "{}");
        change(&world);
        refusal(
            &world,
            Path::new("/work/.policyd"),
            Path::new("/work"),
            &owners(&world, Path::new("/work")),
        )
    }

    #[test]
    fn a_link_on_the_way_to_a_root_is_refused() {
        let world = FakeWorld::new();
        world.put("/work/a/b/kept", "");
        let of = |root: &str| refusal(&world, Path::new(root), Path::new("/work"), &[]);
        assert_eq!(of("/work/a/b"), None);
        world.put_link("/work/way", "/home/dev");
        let why = of("/work/way/b").unwrap();
        assert!(why.contains("`/work/way` is a symbolic link to `/home/dev`"), "{why}");
        assert!(of("/work/way/../b").is_some());
        assert_eq!(of("/else/where"), None);
    }

    #[test]
    fn links_and_strangers_are_refused() {
        assert_eq!(told(|_| ()), None);
        let link = told(|it| it.put_link("/work/.policyd", "/home/dev/.ssh")).unwrap();
        assert!(link.contains("`/work/.policyd` is a symbolic link to `/home/dev/.ssh`"), "{link}");
        let other = told(|it| it.give_away("/work/.policyd", 1001)).unwrap();
        assert!(other.contains("belongs to another user (1001)"), "{other}");
        assert!(other.contains("POLICYD_STATE_DIR"), "{other}");
        assert_eq!(told(|it| it.give_away("/work/.policyd", 0)), None, "root is trusted");
        // Only root trusts the owner of the project.
        let owner = told(|it| {
            it.give_away("/work", 1001);
            it.give_away("/work/.policyd", 1001);
        });
        assert!(owner.is_some());
    }
}
