//! Whether the root of our own in a project may be written to. A repository can bring a link in its
//! place, and a shared folder somebody else's: what is written there would land where nobody meant it.
//! May not live here: a root that the user names; it is where they say.

use std::path::Path;

use crate::world::{Entry, World};

/// Folders of a root in which files are written, by names that are known beforehand.
const FOLDERS: [&str; 13] = [
    "sessions",
    "state",
    "queue",
    "queue/late",
    "escalations",
    "escalations/archive",
    "signals",
    "signals/quarantine",
    "logs",
    "memory",
    "memory/ledgers",
    "memory/handoffs",
    "runs",
];

/// Why nothing is to be written to a root in a project: it, a folder on the way to it or one of its
/// folders is a link, or it or one of its folders belongs to another user. Root and, where root works,
/// the owner of the project are no strangers. What does not exist is no link.
#[must_use]
pub fn refusal(world: &dyn World, root: &Path, project: &Path) -> Option<String> {
    let user = world.user();
    let strange = |entry: &Entry| {
        let (Some(user), Some(owner)) = (user, entry.owner) else { return false };
        let of_project = || world.entry(project).ok().and_then(|it| it.owner) == Some(owner);
        owner != user && owner != 0 && !(user == 0 && of_project())
    };
    let cure = "nothing is written there; move it away, or name a folder in POLICYD_STATE_DIR";
    let refused = |path: &Path, entry: &Entry| {
        let path = path.display();
        match (&entry.link, entry.owner) {
            (Some(link), _) => {
                Some(format!("`{path}` is a symbolic link to `{}`; {cure}", link.display()))
            }
            (None, Some(owner)) if strange(entry) => {
                Some(format!("`{path}` belongs to another user ({owner}); {cure}"))
            }
            (None, _) => None,
        }
    };
    let below = |it: &&Path| *it != project && it.starts_with(project);
    let link_above = root.ancestors().skip(1).take_while(below).find_map(|it| {
        let entry = world.entry(it).ok().filter(|it| it.link.is_some())?;
        refused(it, &entry)
    });
    if link_above.is_some() {
        return link_above;
    }
    refused(root, &world.entry(root).ok()?).or_else(|| {
        FOLDERS.iter().map(|it| root.join(it)).find_map(|it| refused(&it, &world.entry(&it).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::fake::FakeWorld;

    fn told(change: impl FnOnce(&FakeWorld)) -> Option<String> {
        let world = FakeWorld::new();
        world.put("/work/.policyd/sessions/s/state.json", "{}");
        change(&world);
        refusal(&world, Path::new("/work/.policyd"), Path::new("/work"))
    }

    #[test]
    fn a_link_on_the_way_to_a_root_is_refused() {
        let world = FakeWorld::new();
        world.put("/work/a/b/kept", "");
        let of = |root: &str| refusal(&world, Path::new(root), Path::new("/work"));
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
        let inner = told(|it| it.put_link("/work/.policyd/sessions", "..")).unwrap();
        assert!(inner.contains("`/work/.policyd/sessions` is a symbolic link"), "{inner}");
        let runs = told(|it| it.put_link("/work/.policyd/runs", "/home/dev")).unwrap();
        assert!(runs.contains("`/work/.policyd/runs` is a symbolic link"), "{runs}");
        let other = told(|it| it.give_away("/work/.policyd/logs", 1001)).unwrap();
        assert!(other.contains("belongs to another user (1001)"), "{other}");
        assert!(other.contains("POLICYD_STATE_DIR"), "{other}");
        assert_eq!(told(|it| it.give_away("/work/.policyd", 0)), None, "root is no stranger");
        // The project's owner is one to everybody but root.
        let owner = told(|it| {
            it.give_away("/work", 1001);
            it.give_away("/work/.policyd", 1001);
        });
        assert!(owner.is_some());
    }
}
