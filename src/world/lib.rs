//! The World: a trait with every effect of the program.
//!
//! Contains: the trait, its values and its error; the real machine, a simulated one, a dry run, and a write-protected one.
//! Does not contain: decisions, and the network (`policyd-net`).
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_world::World;
//! use policyd_world::fake::FakeWorld;
//!
//! let world = FakeWorld::new();
//! world.write(Path::new("/work/note"), b"text").unwrap();
//! assert_eq!(world.stat(Path::new("/work/note")).unwrap().length, 4);
//! ```

pub mod fake;
pub mod fenced;
pub mod network;
pub mod overlay;
pub mod real;
pub mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use policyd_crash::CrashAnswer;

use policyd_yaml::time::Timestamp;
use server::{DocumentServer, ServerAddress, ServerError};

/// Type of a file, after links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A pipe, a socket, a device or another file whose opening can block.
    Special,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub kind: FileKind,
    /// Length in bytes.
    pub length: u64,
    /// Time of the last modification.
    pub modified: Timestamp,
    /// Time of the creation, if the file system keeps it.
    pub created: Option<Timestamp>,
    /// Id of the file on its device, which detects a replaced file; 0 if unknown.
    pub identity: u64,
}

/// Entry at a path, without following a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEntry {
    /// Target as written, if the entry is a symbolic link.
    pub link: Option<PathBuf>,
    /// User id of the owner. `None` if the machine has no owners.
    pub owner: Option<u32>,
    /// Whether the group or all users may write to it.
    pub shared_write: bool,
}

/// Error of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldError {
    /// The file or directory does not exist.
    NotFound,
    /// The file already exists (exclusive creation).
    AlreadyExists,
    /// Any other error, such as a full disk or a missing permission, with the operating system's
    /// message.
    Io(String),
    /// The operation is not supported, such as an exchange on some file systems.
    Unsupported,
    /// The time limit was reached.
    TimedOut,
    /// Another process holds the lock. Contains the lock and the process.
    Locked(String),
    /// The file exceeds this limit, in bytes.
    TooLarge(u64),
    /// The path is not a regular file.
    NotAFile,
    /// The simulated machine lost power.
    PowerLoss,
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file or folder"),
            Self::AlreadyExists => f.write_str("exists already"),
            Self::Io(why) => f.write_str(why),
            Self::Unsupported => f.write_str("not supported by this file system"),
            Self::TimedOut => f.write_str("took too long"),
            Self::Locked(by) => f.write_str(by),
            Self::TooLarge(bytes) => write!(f, "too large ({bytes} bytes)"),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::PowerLoss => f.write_str("power lost"),
        }
    }
}

impl std::error::Error for WorldError {}

/// An external command: a program with arguments, never a shell line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory.
    pub folder: PathBuf,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// Environment variables that are not inherited.
    pub env_removed: Vec<String>,
    /// Time limit. The whole process group is then killed.
    pub deadline: Duration,
    /// Maximum stored bytes of each output stream. The rest is dropped.
    pub output_max: usize,
    /// Directories whose programs are not run by name. If set, a program name without a slash is
    /// only searched in the absolute entries of PATH outside of these directories.
    pub not_from: Option<Vec<PathBuf>>,
    /// Whether PATH of the program is also reduced to those entries, for a program that starts
    /// others.
    pub path_reduced: bool,
}

/// Result of an external command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit code. `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Standard output, cut at `output_max`.
    pub stdout: Vec<u8>,
    /// Standard error, cut at `output_max`.
    pub stderr: Vec<u8>,
    /// Whether a stream was cut.
    pub truncated: bool,
}

/// Method of an HTTP request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpMethod {
    #[default]
    Get,
    Head,
    Post,
    Put,
}

impl HttpMethod {
    /// Returns the method as HTTP writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// Whether requests of the method have a body, so that they change something.
    #[must_use]
    pub const fn has_body(self) -> bool {
        match self {
            Self::Get | Self::Head => false,
            Self::Post | Self::Put => true,
        }
    }
}

/// An HTTP request. Redirects are followed, but not from TLS to a connection without it, and not
/// with the `Authorization` header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Time limit of the whole request.
    pub deadline: Duration,
    /// Maximum bytes of the response body.
    pub bytes_max: usize,
    /// Accepted certificate authorities in PEM format. `None`: those of the machine.
    pub roots: Option<Vec<u8>>,
}

/// Response to an HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// Names are lowercase.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns the first header of a lowercase name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// Event of a running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// Output on standard output.
    Stdout(Vec<u8>),
    /// Output on standard error.
    Stderr(Vec<u8>),
    /// The program ended with this exit code, or by a signal. Its process group is dead.
    Exited(Option<i32>),
    /// Nothing happened during the wait.
    Nothing,
}

/// A running program in its own process group. Dropping it kills the whole group.
pub trait RunningProgram {
    /// Waits at most `wait_max` for the next event. No event follows `Ended`.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the program cannot be waited for.
    fn wait(&mut self, wait_max: Duration) -> Result<ProcessEvent, WorldError>;
    /// Asks the group to end, and kills the rest of it after `grace`. Passes the output until then
    /// to `hear`.
    fn end(&mut self, grace: Duration, hear: &mut dyn FnMut(&ProcessEvent));
}

/// Watches directories. Dropping it ends the watch.
pub trait DirectoryWatch {
    /// Waits at most `wait_max` for a change of a file. Returns whether a file changed since the last call.
    fn wait(&mut self, wait_max: Duration) -> bool;
}

/// A file that is open for reading. Dropping it closes the file.
pub trait OpenFile {
    /// Returns the current metadata.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the metadata cannot be read.
    fn stat(&self) -> Result<FileStat, WorldError>;
    /// Reads from `offset` into `buffer`. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the file cannot be read.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError>;
}

/// An ancestor process of this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ancestor {
    /// Process id.
    pub pid: u32,
    /// Path of the program file. Only its short name if the machine does not list the path.
    pub program: String,
    /// Arguments, beginning with the program name. Empty if they cannot be read.
    pub arguments: Vec<String>,
    /// Names of its environment variables. Empty if they cannot be read.
    pub variables: Vec<String>,
}

/// Maximum number of ancestors.
pub const ANCESTORS_MAX: usize = 64;

/// The processes that started this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// The ancestors, the nearest first, and the leader of the terminal's session with its
    /// ancestors. At most [`ANCESTORS_MAX`].
    pub processes: Vec<Ancestor>,
    /// Why processes are missing. `None` if each chain ends at the first process of the machine, or
    /// if the system does not list processes.
    pub gap: Option<AncestryGap>,
}

/// Why the ancestors of a process are not all known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AncestryGap {
    /// There are more than [`ANCESTORS_MAX`] ancestors.
    TooMany,
    /// The process with this id cannot be inspected.
    Unreadable(u32),
    /// This process has its own PID namespace, as in a container. Processes outside of it are not
    /// listed.
    Namespace,
}

/// Answer of the user at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The word that the question contains.
    Yes,
    /// Any other answer.
    No,
    /// This process has no terminal.
    NoTerminal,
}

/// A held lock. Dropping it releases the lock. The lock file is never deleted.
pub trait HeldLock {}

/// A variable of the environment that a file of the project sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectVariable {
    /// Name of the variable.
    pub name: String,
    /// The file.
    pub file: PathBuf,
}

/// Effects of the program. `&self`: implementations use interior mutability, so that threads share
/// one World.
pub trait World: Sync {
    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;
    /// Returns the time since this World was created. Never goes backward; deadlines use it.
    fn elapsed(&self) -> Duration;
    /// Waits for a duration.
    fn sleep(&self, duration: Duration);
    /// Returns the path of this program. `None` if it is unknown.
    fn program(&self) -> Option<PathBuf>;
    /// Returns an environment variable that is set and not empty. `HOME` is the home directory on Windows, too.
    fn env(&self, name: &str) -> Option<String>;
    /// Returns the names of the environment variables that are valid text, in any order.
    fn variables(&self) -> Vec<String>;
    /// Returns the variables that `env` and `variables` leave out.
    fn ignored_variables(&self) -> Vec<ProjectVariable> {
        Vec::new()
    }
    /// Returns the working directory of the process.
    fn working_folder(&self) -> PathBuf;
    /// Returns the id of this process.
    fn process_id(&self) -> u32;
    /// Returns the id of the effective user. `None` if the machine has no users.
    fn user(&self) -> Option<u32>;
    /// Returns the processes that started this process. Empty if the machine does not list
    /// processes.
    fn ancestry(&self) -> Ancestry;
    /// Returns the ancestors of this process that can be inspected, the nearest first.
    fn ancestors(&self) -> Vec<Ancestor> {
        self.ancestry().processes
    }
    /// Fills a buffer with random bytes that no other process can guess.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the machine has no source of random bytes.
    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError>;
    /// Asks the user at the terminal of this process (not standard input) for a word.
    fn confirm(&self, question: &str, word: &str) -> Confirmation;
    /// Returns whether standard input has data, or its end, within a duration.
    fn input_comes(&self, within: Duration) -> bool;
    /// Returns the number of threads that can run in parallel, at least 1.
    fn cores(&self) -> usize;

    /// Returns the metadata of a path, after links are followed.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the metadata cannot be read.
    fn stat(&self, path: &Path) -> Result<FileStat, WorldError>;
    /// Returns the entry at a path. Links in its parent directories are followed.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the entry cannot be read.
    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError>;
    /// Resolves every link in a path.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if a link cannot be read.
    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError>;
    /// Checks that no directory between `root` and `path` is a symbolic link. Returns the owner of
    /// the last existing directory.
    ///
    /// # Errors
    /// [`WorldError::Io`] if one of the directories is a symbolic link.
    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError>;
    /// Opens a regular file for reading. Never blocks on a pipe.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], [`WorldError::NotAFile`], or [`WorldError::Io`] if the file
    /// cannot be opened.
    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError>;
    /// Reads a regular file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], [`WorldError::NotAFile`], [`WorldError::TooLarge`], or
    /// [`WorldError::Io`] if the file cannot be read.
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError>;
    /// Lists the names in a directory, sorted.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the directory cannot be listed.
    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError>;
    /// Watches directories and everything below them for changes of files.
    ///
    /// # Errors
    /// [`WorldError::Io`] if a directory cannot be watched; [`WorldError::Unsupported`] on a simulated machine.
    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError>;
    /// Returns the identity of a directory, as in [`FileStat`], and the names in it, sorted.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], also if `path` is not a directory, or [`WorldError::Io`] if it
    /// cannot be listed.
    fn look_into(&self, path: &Path) -> Result<(u64, Vec<String>), WorldError> {
        let stat = self.stat(path)?;
        match stat.kind {
            FileKind::Folder => Ok((stat.identity, self.list(path)?)),
            FileKind::File | FileKind::Special => Err(WorldError::NotFound),
        }
    }

    /// Creates a directory and its parents, private to the user (0700).
    ///
    /// # Errors
    /// [`WorldError::Io`] if a directory cannot be created.
    fn create_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Replaces the content of a file in place, or creates the file, private to the user (0600).
    /// Neither durable nor atomic. Does not follow a link at `path`.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the file cannot be written.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError>;
    /// Appends to a file in one write, or creates the file, private to the user (0600).
    ///
    /// # Errors
    /// [`WorldError::Io`] if the file cannot be written.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError>;
    /// Lets every user read a file or enter a directory, and only its owner write.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the permissions cannot be changed.
    fn publish(&self, path: &Path) -> Result<(), WorldError>;
    /// Copies the permissions and the owner of the file at `from` to the file at `to`.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if they cannot be changed.
    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError>;
    /// Makes the content of a file durable.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the sync fails.
    fn sync_file(&self, path: &Path) -> Result<(), WorldError>;
    /// Makes the entries of a directory durable.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the sync fails.
    fn sync_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Renames a file. Replaces the target atomically.
    ///
    /// # Errors
    /// [`WorldError::Io`] if the rename fails.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError>;
    /// Exchanges two existing names atomically.
    ///
    /// # Errors
    /// [`WorldError::Unsupported`] by the file system, [`WorldError::NotFound`], or
    /// [`WorldError::Io`] if the exchange fails.
    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError>;
    /// Deletes a file.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the file cannot be deleted.
    fn remove(&self, path: &Path) -> Result<(), WorldError>;
    /// Deletes a directory with its content. Links in it are deleted, not followed.
    ///
    /// # Errors
    /// [`WorldError::NotFound`], or [`WorldError::Io`] if the directory cannot be deleted.
    fn remove_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Acquires an exclusive lock on the file at `path`, and creates the file if necessary. Waits
    /// at most `wait_max`.
    ///
    /// # Errors
    /// [`WorldError::Locked`], or [`WorldError::Io`] if the file cannot be opened or locked.
    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError>;
    /// Runs an external command until its end or its deadline.
    ///
    /// # Errors
    /// [`WorldError::NotFound`] if the program does not exist, [`WorldError::TimedOut`], or
    /// [`WorldError::Io`] if it cannot be started.
    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError>;
    /// Starts an external command, whose output is read incrementally. The caller must enforce its
    /// `deadline` and `output_max`.
    ///
    /// # Errors
    /// [`WorldError::NotFound`] if the program does not exist, or [`WorldError::Io`] if it
    /// cannot be started.
    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError>;
    /// Sends an HTTP request. A status such as 404 is not an error.
    ///
    /// # Errors
    /// [`WorldError::TimedOut`], [`WorldError::TooLarge`], or [`WorldError::Io`] if the server
    /// cannot be reached, or if its certificate is not accepted.
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError>;
    /// From now on, records an interruption of this process instead of ending the process.
    fn note_interrupts(&self);
    /// Returns whether this process was interrupted since then.
    fn interrupted(&self) -> bool;
    /// Kills every process whose environment contains this variable with this value: the remains of
    /// a killed process. Also kills what left it since `start`, where the system permits it. Returns their number.
    ///
    /// # Errors
    /// [`WorldError::Unsupported`] if the environment of processes cannot be read.
    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError>;
    /// Returns whether this user may create files in a directory. A simulated machine permits it.
    fn is_writable(&self, _folder: &Path) -> bool {
        true
    }
    /// Prepares what this process answers if a signal ends it, such as after a stack overflow. `None` withdraws
    /// it. A simulated machine has no signals.
    fn prepare_crash_answer(&self, _answer: Option<CrashAnswer<'_>>) {}
    /// Connects to a server of shared documents. The connection and each call end within `limit`.
    ///
    /// # Errors
    /// [`ServerError::Unreachable`], [`ServerError::SignIn`], [`ServerError::Address`], or
    /// [`ServerError::DryRun`].
    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError>;
}
