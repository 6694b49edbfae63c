//! The real machine: the only module that accesses files, clocks, processes and the environment.
//! Does not contain: decisions.
#![expect(clippy::disallowed_methods, reason = "this is the World that everything else must use")]

mod file;
mod process;
mod program;
mod system;
mod terminal;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use super::{
    Ancestry, CommandOutput, Confirmation, CrashAnswer, DirectoryWatch, ExternalCommand, FileStat,
    HeldLock, HttpRequest, HttpResponse, OpenFile, PathEntry, ProjectVariable, RunningProgram,
    World, WorldError,
};
use crate::network::{Network, NoNetwork};
use crate::server::{DocumentServer, ServerAddress, ServerError};
use file::{Links, RealFile, file_stat, open_regular, timestamp, world_error};
use policyd_yaml::time::Timestamp;

/// The machine that runs this process.
#[derive(Debug)]
pub struct RealWorld {
    started: Instant,
    interrupted: Arc<AtomicBool>,
    announces_waits: bool,
    /// Whether every process below this one belongs to the program.
    owns_process: bool,
    /// Whether the user named the working directory.
    entered: bool,
    network: &'static dyn Network,
    /// The program that users call, if it is not the one of this process.
    program: Option<PathBuf>,
    /// Variables that are left out.
    ignored: Vec<ProjectVariable>,
}

/// The directory of the client's project.
const CLIENT_PROJECT: &str = "CLAUDE_PROJECT_DIR";

impl RealWorld {
    /// Creates the machine, without a network. `elapsed` starts now.
    #[must_use]
    pub fn new() -> Self {
        system::outlive_file_limits();
        let (started, interrupted) = (Instant::now(), Arc::default());
        Self {
            started,
            interrupted,
            announces_waits: false,
            owns_process: false,
            entered: false,
            network: &NoNetwork,
            program: None,
            ignored: Vec::new(),
        }
    }

    /// Gives the machine a network.
    #[must_use]
    pub fn with_network(self, network: &'static dyn Network) -> Self {
        Self { network, ..self }
    }

    /// Leaves out variables of the environment.
    #[must_use]
    pub fn without_variables(self, ignored: Vec<ProjectVariable>) -> Self {
        Self { ignored, ..self }
    }

    /// Sets the program that users and clients call.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { program: Some(program), ..self }
    }

    /// Makes a directory the working directory of the process. What the client said about its project does not count any
    /// more: the user named another one.
    ///
    /// # Errors
    /// The directory does not exist or cannot be entered.
    pub fn enter(self, folder: &Path) -> std::io::Result<Self> {
        std::env::set_current_dir(folder)?;
        Ok(Self { entered: true, ..self })
    }

    /// Sets whether a long wait for a lock is announced on standard error, with the name of the
    /// lock.
    #[must_use]
    pub fn announcing_waits(self, announces_waits: bool) -> Self {
        Self { announces_waits, ..self }
    }

    /// States that every process below this one belongs to the program, which may then adopt and end them. A library, such as
    /// a test, shares its process with other code, whose processes it must not end.
    #[must_use]
    pub fn owning_process(self) -> Self {
        Self { owns_process: true, ..self }
    }
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        timestamp(SystemTime::now())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn env(&self, name: &str) -> Option<String> {
        let is_ignored = self.ignored.iter().any(|it| it.name == name);
        if is_ignored || (self.entered && name == CLIENT_PROJECT) {
            return None;
        }
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        value.or_else(|| self.env(system::other_name(name)?))
    }

    fn variables(&self) -> Vec<String> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        names.filter(|name| self.ignored.iter().all(|it| it.name != *name)).collect()
    }

    fn ignored_variables(&self) -> Vec<ProjectVariable> {
        self.ignored.clone()
    }

    fn program(&self) -> Option<PathBuf> {
        self.program.clone().or_else(|| std::env::current_exe().ok())
    }

    fn working_folder(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn user(&self) -> Option<u32> {
        system::user()
    }

    fn ancestry(&self) -> Ancestry {
        system::ancestry()
    }

    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError> {
        getrandom::fill(buffer).map_err(|error| WorldError::Io(error.to_string()))
    }

    fn confirm(&self, question: &str, word: &str) -> Confirmation {
        terminal::confirm(question, word)
    }

    fn input_comes(&self, within: Duration) -> bool {
        system::input_comes(within)
    }

    fn is_writable(&self, folder: &Path) -> bool {
        system::is_writable(folder)
    }

    fn prepare_crash_answer(&self, answer: Option<CrashAnswer<'_>>) {
        match answer {
            Some(answer) => policyd_crash::prepare(answer),
            None => policyd_crash::withdraw(),
        }
    }

    fn cores(&self) -> usize {
        // The number is read from several files, and needed before each piece of work.
        static CORES: LazyLock<usize> = LazyLock::new(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        *CORES
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        fs::metadata(system::native(path))
            .map(|meta| file_stat(&meta))
            .map_err(|error| world_error(&error))
    }

    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError> {
        let path = &*system::native(path);
        let meta = fs::symlink_metadata(path).map_err(|error| world_error(&error))?;
        let link = match meta.is_symlink() {
            true => Some(fs::read_link(path).map_err(|error| world_error(&error))?),
            false => None,
        };
        Ok(PathEntry {
            link,
            owner: system::owner(&meta),
            shared_write: system::shared_write(&meta),
        })
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        let resolved = fs::canonicalize(system::native(path));
        resolved.map(system::usual).map_err(|error| world_error(&error))
    }

    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
        file::owner_on_way(root, path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        Ok(Box::new(RealFile(open_regular(OpenOptions::new().read(true), path, Links::Follow)?)))
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        file::read(path, bytes_max)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(system::native(folder)).map_err(|error| world_error(&error))? {
            let name = entry.map_err(|error| world_error(&error))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn look_into(&self, path: &Path) -> Result<(u64, Vec<String>), WorldError> {
        system::look_into(path).map_err(|error| world_error(&error))
    }

    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        system::make_private(&mut builder);
        builder.create(system::native(path)).map_err(|error| world_error(&error))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let mut file =
            open_regular(OpenOptions::new().write(true).create(true), path, Links::Refuse)?;
        // Truncated first, so that a power loss leaves a beginning of the new content, and never a
        // mixture with the old content, which could pass for a value.
        file.set_len(0).and_then(|()| file.write_all(bytes)).map_err(|error| world_error(&error))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let mut file =
            open_regular(OpenOptions::new().append(true).create(true), path, Links::Refuse)?;
        file.write_all(bytes).map_err(|error| world_error(&error))
    }

    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        system::publish(path).map_err(|error| world_error(&error))
    }

    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        system::copy_rights(from, to)
    }

    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        let file = open_regular(OpenOptions::new().write(true), path, Links::Refuse)?;
        file.sync_all().map_err(|error| sync_error(&error))
    }

    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        system::sync_folder(path).map_err(|error| sync_error(&error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        fs::rename(system::native(from), system::native(to)).map_err(|error| world_error(&error))
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        system::exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        fs::remove_file(system::native(path)).map_err(|error| world_error(&error))
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        fs::remove_dir_all(system::native(path)).map_err(|error| world_error(&error))
    }

    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        file::lock(path, wait_max, |held| {
            if self.announces_waits {
                drop(writeln!(io::stderr(), "policyd: waiting: {held}"));
            }
        })
    }

    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
        process::run(command)
    }

    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError> {
        if self.owns_process {
            system::adopt_orphans(true);
        }
        Ok(Box::new(program::RunningProcess::start(command)?))
    }

    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        self.network.request(request)
    }

    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        self.network.watch(folders)
    }

    fn note_interrupts(&self) {
        program::note_interrupts(&self.interrupted);
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        system::kill_marked(&format!("{variable}={value}"))
    }

    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        self.network.connect(address, limit)
    }
}

/// Returns why something could not be synced. Some file systems do not support it; the value is written all the same.
fn sync_error(error: &io::Error) -> WorldError {
    let kind = error.kind();
    let unsupported = matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported);
    match unsupported || error.raw_os_error().is_some_and(system::is_unsupported) {
        true => WorldError::Unsupported,
        false => world_error(error),
    }
}
