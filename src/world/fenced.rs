//! A World that protects directories: changes in them, or behind a symbolic link, fail with the
//! reason. Every other operation passes through.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{
    Ancestry, CommandOutput, Confirmation, CrashAnswer, DirectoryWatch, ExternalCommand, FileStat,
    HeldLock, HttpRequest, HttpResponse, OpenFile, PathEntry, ProjectVariable, RunningProgram,
    World, WorldError,
};
use crate::server::{DocumentServer, ServerAddress, ServerError};
use policyd_yaml::time::Timestamp;

/// Remedy for a directory that is not written to.
const CURE: &str = "nothing is written there; move it away, or name a folder in POLICYD_STATE_DIR";

/// Formats the error of a write behind a link.
#[must_use]
pub fn link_refusal(path: &Path, leads_to: &Path) -> String {
    format!("`{}` is a symbolic link to `{}`; {CURE}", path.display(), leads_to.display())
}

/// Formats the error of a write into a directory of another user.
#[must_use]
pub fn owner_refusal(path: &Path, owner: u32) -> String {
    format!("`{}` belongs to another user ({owner}); {CURE}", path.display())
}

/// A directory below which changes follow no link and write into no directory of another user.
#[derive(Debug, Clone)]
pub struct ConfinedDir {
    pub root: PathBuf,
    /// Users whose directories may be written to. Empty if the machine has no owners.
    pub owners: Vec<u32>,
}

/// A World with write-protected and confined directories.
pub struct WriteProtectedWorld<'a> {
    beneath: &'a dyn World,
    fences: Vec<(PathBuf, String)>,
    confined: Vec<ConfinedDir>,
}

impl<'a> WriteProtectedWorld<'a> {
    /// Protects directories, each with the error of a change. Changes below the `confined`
    /// directories follow no link.
    #[must_use]
    pub fn new(
        beneath: &'a dyn World,
        fences: Vec<(PathBuf, String)>,
        confined: Vec<ConfinedDir>,
    ) -> Self {
        Self { beneath, fences, confined }
    }

    /// Returns the World for a change of `path`.
    fn beyond(&self, path: &Path) -> Result<&'a dyn World, WorldError> {
        if let Some((_, why)) = self.fences.iter().find(|(folder, _)| path.starts_with(folder)) {
            return Err(WorldError::Io(why.clone()));
        }
        let within = |it: &&ConfinedDir| path != it.root && path.starts_with(&it.root);
        for it in self.confined.iter().filter(within) {
            match self.beneath.owner_on_way(&it.root, path) {
                Ok(Some(owner)) if !it.owners.is_empty() && !it.owners.contains(&owner) => {
                    let folder = path.parent().unwrap_or(path);
                    return Err(WorldError::Io(owner_refusal(folder, owner)));
                }
                Ok(_) => {}
                Err(error) => return Err(self.link_on_way(&it.root, path).unwrap_or(error)),
            }
        }
        Ok(self.beneath)
    }

    /// Returns the error that names the first link on the way to a path.
    fn link_on_way(&self, root: &Path, path: &Path) -> Option<WorldError> {
        let above = path.ancestors().skip(1).take_while(|it| *it != root);
        let links = above.filter_map(|it| Some((it, self.beneath.entry(it).ok()?.link?)));
        let (folder, leads_to) = links.last()?;
        Some(WorldError::Io(link_refusal(folder, &leads_to)))
    }
}

impl World for WriteProtectedWorld<'_> {
    fn now(&self) -> Timestamp {
        self.beneath.now()
    }

    fn elapsed(&self) -> Duration {
        self.beneath.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        self.beneath.sleep(duration);
    }

    fn program(&self) -> Option<PathBuf> {
        self.beneath.program()
    }

    fn env(&self, name: &str) -> Option<String> {
        self.beneath.env(name)
    }

    fn variables(&self) -> Vec<String> {
        self.beneath.variables()
    }

    fn ignored_variables(&self) -> Vec<ProjectVariable> {
        self.beneath.ignored_variables()
    }

    fn working_folder(&self) -> PathBuf {
        self.beneath.working_folder()
    }

    fn process_id(&self) -> u32 {
        self.beneath.process_id()
    }

    fn user(&self) -> Option<u32> {
        self.beneath.user()
    }

    fn ancestry(&self) -> Ancestry {
        self.beneath.ancestry()
    }

    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError> {
        self.beneath.random(buffer)
    }

    fn confirm(&self, question: &str, word: &str) -> Confirmation {
        self.beneath.confirm(question, word)
    }

    fn input_comes(&self, within: Duration) -> bool {
        self.beneath.input_comes(within)
    }

    fn is_writable(&self, folder: &Path) -> bool {
        self.beneath.is_writable(folder)
    }

    fn prepare_crash_answer(&self, answer: Option<CrashAnswer<'_>>) {
        self.beneath.prepare_crash_answer(answer);
    }

    fn cores(&self) -> usize {
        self.beneath.cores()
    }

    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError> {
        self.beneath.entry(path)
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        self.beneath.stat(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        self.beneath.real_path(path)
    }

    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
        self.beneath.owner_on_way(root, path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        self.beneath.open(path)
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        self.beneath.read(path, bytes_max)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        self.beneath.list(folder)
    }

    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        // The directory itself is on the way to its future content.
        self.beyond(&path.join("_"))?;
        self.beyond(path)?.create_folder(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.beyond(path)?.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.beyond(path)?.append(path, bytes)
    }

    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        self.beyond(path)?.publish(path)
    }

    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.beyond(to)?.copy_rights(from, to)
    }

    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        self.beyond(path)?.sync_file(path)
    }

    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.beyond(path)?.sync_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.beyond(from)?;
        self.beyond(to)?.rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        self.beyond(one)?;
        self.beyond(other)?.exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        self.beyond(path)?.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.beyond(path)?.remove_folder(path)
    }

    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        self.beyond(path)?.lock(path, wait_max)
    }

    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
        self.beneath.run(command)
    }

    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError> {
        self.beneath.start(command)
    }

    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        self.beneath.request(request)
    }

    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        self.beneath.watch(folders)
    }

    fn note_interrupts(&self) {
        self.beneath.note_interrupts();
    }

    fn interrupted(&self) -> bool {
        self.beneath.interrupted()
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        self.beneath.kill_marked(variable, value)
    }
    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        self.beneath.connect(address, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWorld;

    #[test]
    fn nothing_is_changed_in_the_folder_and_everything_else_can_be() {
        let world = FakeWorld::new();
        world.put("/work/.policyd/state", "kept");
        world.put("/work/.policyd-notes", "mine");
        let fenced = WriteProtectedWorld::new(
            &world,
            vec![("/work/.policyd".into(), "is a link".to_owned())],
            vec![],
        );
        let inside = Path::new("/work/.policyd/state");
        let refused = || WorldError::Io("is a link".to_owned());
        let notes = Path::new("/work/.policyd-notes");
        assert_eq!(fenced.write(inside, b"x"), Err(refused()));
        assert_eq!(fenced.append(inside, b"x"), Err(refused()));
        assert_eq!(fenced.remove(inside), Err(refused()));
        assert_eq!(fenced.remove_folder(Path::new("/work/.policyd")), Err(refused()));
        assert_eq!(fenced.create_folder(Path::new("/work/.policyd/logs")), Err(refused()));
        assert_eq!(fenced.rename(notes, inside), Err(refused()));
        assert_eq!(fenced.exchange(inside, notes), Err(refused()));
        assert!(fenced.lock(inside, Duration::ZERO).is_err());
        assert_eq!(fenced.read(inside, 99), Ok(b"kept".to_vec()));
        assert_eq!(fenced.append(notes, b" too"), Ok(()));
        assert_eq!(world.get(notes), Some(b"mine too".to_vec()));
    }

    #[test]
    fn nothing_is_changed_behind_a_link_below_a_confined_folder() {
        let world = FakeWorld::new();
        world.put("/work/.policyd/memory/episodic/x", "");
        world.put("/work/.policyd/sessions/s/state.json", "{}");
        world.put_link("/work/.policyd/memory/episodic", "/home/dev");
        world.give_away("/work/.policyd/sessions/s", 1001);
        let confined = ConfinedDir { root: "/work/.policyd".into(), owners: vec![1000, 0] };
        let fenced = WriteProtectedWorld::new(&world, vec![], vec![confined]);
        let refused = |path: &str| match fenced.append(Path::new(path), b"x") {
            Err(WorldError::Io(why)) => why,
            other => format!("{other:?}"),
        };
        let why = refused("/work/.policyd/memory/episodic/deep/r.jsonl");
        assert!(
            why.starts_with("`/work/.policyd/memory/episodic` is a symbolic link to `/home/dev`")
        );
        let why = refused("/work/.policyd/sessions/s/state.json");
        assert!(why.contains("belongs to another user (1001)"), "{why}");
        let folder = Path::new("/work/.policyd/memory/episodic");
        assert!(fenced.create_folder(folder).is_err());
        assert!(fenced.remove(&folder.join("x")).is_err());
        assert_eq!(fenced.append(Path::new("/work/.policyd/memory/r.jsonl"), b"x"), Ok(()));
        assert_eq!(fenced.append(Path::new("/work/.policyd/r"), b"x"), Ok(()));
    }
}
