//! A World with folders in which nothing is to be changed: whatever would is refused, with the
//! reason. Everything else reaches the World beneath.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{
    Ancestor, Command, CommandOutput, Confirmation, Entry, FileStat, HeldLock, OpenFile,
    RunningProgram, World, WorldError,
};
use crate::time::Timestamp;

/// A World with folders in which nothing is to be changed.
pub struct FencedWorld<'a> {
    beneath: &'a dyn World,
    fences: Vec<(PathBuf, String)>,
}

impl<'a> FencedWorld<'a> {
    /// Lets nobody change anything in these folders; the text beside each is the error they get.
    #[must_use]
    pub fn new(beneath: &'a dyn World, fences: Vec<(PathBuf, String)>) -> Self {
        Self { beneath, fences }
    }

    fn beyond(&self, path: &Path) -> Result<&'a dyn World, WorldError> {
        match self.fences.iter().find(|(folder, _)| path.starts_with(folder)) {
            Some((_, why)) => Err(WorldError::Refused(why.clone())),
            None => Ok(self.beneath),
        }
    }
}

impl World for FencedWorld<'_> {
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

    fn working_folder(&self) -> PathBuf {
        self.beneath.working_folder()
    }

    fn process_id(&self) -> u32 {
        self.beneath.process_id()
    }

    fn user(&self) -> Option<u32> {
        self.beneath.user()
    }

    fn ancestors(&self) -> Vec<Ancestor> {
        self.beneath.ancestors()
    }

    fn confirm(&self, question: &str) -> Confirmation {
        self.beneath.confirm(question)
    }

    fn input_comes(&self, within: Duration) -> bool {
        self.beneath.input_comes(within)
    }

    fn cores(&self) -> usize {
        self.beneath.cores()
    }

    fn entry(&self, path: &Path) -> Result<Entry, WorldError> {
        self.beneath.entry(path)
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        self.beneath.stat(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        self.beneath.real_path(path)
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
        self.beyond(path)?.create_folder(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.beyond(path)?.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.beyond(path)?.append(path, bytes)
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

    fn run(&self, command: &Command) -> Result<CommandOutput, WorldError> {
        self.beneath.run(command)
    }

    fn start(&self, command: &Command) -> Result<Box<dyn RunningProgram>, WorldError> {
        self.beneath.start(command)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::fake::FakeWorld;

    #[test]
    fn nothing_is_changed_in_the_folder_and_everything_else_can_be() {
        let world = FakeWorld::new();
        world.put("/work/.policyd/state", "kept");
        world.put("/work/.policyd-notes", "mine");
        let fenced =
            FencedWorld::new(&world, vec![("/work/.policyd".into(), "is a link".to_owned())]);
        let inside = Path::new("/work/.policyd/state");
        let refused = || WorldError::Refused("is a link".to_owned());
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
}
