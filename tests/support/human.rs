//! Commands that only a human may run, on the real machine: called in this process with a user who
//! confirms, because the tests have no terminal, and an agent may have started them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policyd::net::RealNetwork;
use policyd::time::Timestamp;
use policyd::world::real::RealWorld;
use policyd::world::server::{DocumentServer, ServerAddress, ServerError};
use policyd::world::{
    Ancestry, CommandOutput, Confirmation, DirectoryWatch, ExternalCommand, FileStat, HeldLock,
    HttpRequest, HttpResponse, OpenFile, PathEntry, RunningProgram, World, WorldError,
};

use super::console;

/// The machine with another environment and directory, and a human at its terminal.
pub(crate) struct HumanWorld {
    machine: RealWorld,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
    pub(crate) program: PathBuf,
    /// Whether the human pressed Ctrl-C.
    pub(crate) ended: AtomicBool,
}

impl HumanWorld {
    pub(crate) fn new(folder: &Path, environment: &[(&str, &Path)]) -> Self {
        let text = |it: &Path| it.to_str().unwrap().to_owned();
        let mut variables: BTreeMap<String, String> =
            environment.iter().map(|(name, it)| ((*name).to_owned(), text(it))).collect();
        variables.extend(std::env::var("PATH").map(|it| ("PATH".to_owned(), it)));
        Self {
            machine: RealWorld::new().with_network(&RealNetwork),
            environment: variables,
            folder: folder.to_owned(),
            program: env!("CARGO_BIN_EXE_policyd").into(),
            ended: AtomicBool::new(false),
        }
    }

    /// Calls the program: the exit code, and what it wrote to both streams.
    pub(crate) fn call(&self, words: &[&str]) -> (u8, String, String) {
        let said = console::call(self, words, b"");
        (said.code, said.out, said.err)
    }
}

impl World for HumanWorld {
    fn env(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|it| !it.is_empty()).cloned()
    }
    fn variables(&self) -> Vec<String> {
        self.environment.keys().cloned().collect()
    }
    fn working_folder(&self) -> PathBuf {
        self.folder.clone()
    }
    fn program(&self) -> Option<PathBuf> {
        Some(self.program.clone())
    }
    fn ancestry(&self) -> Ancestry {
        Ancestry::default()
    }
    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError> {
        self.machine.random(buffer)
    }
    fn confirm(&self, _question: &str, _word: &str) -> Confirmation {
        Confirmation::Yes
    }
    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
        self.machine.owner_on_way(root, path)
    }
    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.publish(path)
    }
    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.machine.copy_rights(from, to)
    }
    fn now(&self) -> Timestamp {
        self.machine.now()
    }
    fn elapsed(&self) -> Duration {
        self.machine.elapsed()
    }
    fn sleep(&self, duration: Duration) {
        self.machine.sleep(duration)
    }
    fn process_id(&self) -> u32 {
        self.machine.process_id()
    }
    fn user(&self) -> Option<u32> {
        self.machine.user()
    }
    fn input_comes(&self, within: Duration) -> bool {
        self.machine.input_comes(within)
    }
    fn cores(&self) -> usize {
        self.machine.cores()
    }
    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        self.machine.stat(path)
    }
    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError> {
        self.machine.entry(path)
    }
    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        self.machine.real_path(path)
    }
    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        self.machine.open(path)
    }
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        self.machine.read(path, bytes_max)
    }
    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        self.machine.watch(folders)
    }
    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        self.machine.list(folder)
    }
    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.create_folder(path)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.machine.write(path, bytes)
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        self.machine.append(path, bytes)
    }
    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.sync_file(path)
    }
    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.sync_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.machine.rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        self.machine.exchange(one, other)
    }
    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.remove(path)
    }
    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.machine.remove_folder(path)
    }
    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        self.machine.lock(path, wait_max)
    }
    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
        self.machine.run(command)
    }
    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError> {
        self.machine.start(command)
    }
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        self.machine.request(request)
    }
    fn note_interrupts(&self) {
        self.machine.note_interrupts()
    }
    fn interrupted(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.machine.interrupted()
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        self.machine.kill_marked(variable, value)
    }
    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        self.machine.connect(address, limit)
    }
}
