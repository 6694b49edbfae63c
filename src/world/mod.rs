//! The World: every effect the program can have, as one trait.
//! Lives here: the trait, its values and its error. May not live here: any decision.

pub mod fake;
pub mod fenced;
pub mod overlay;
pub mod real;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::time::Timestamp;

/// What kind of thing a path names, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, socket, device or anything else that must not be opened blindly.
    Special,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// File, folder or special.
    pub kind: FileKind,
    /// Length in bytes.
    pub length: u64,
    /// Last modification.
    pub modified: Timestamp,
    /// Identity of the file on its device, so that a replaced file is noticed (0 where unknown).
    pub identity: u64,
}

/// What stands at a path itself, before any link is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it leads, if it is a symbolic link, as it is written there.
    pub link: Option<PathBuf>,
    /// The number of the user whom it belongs to; nothing where the machine has no owners.
    pub owner: Option<u32>,
}

/// What the machine answered when it did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldError {
    /// No such file or folder.
    Missing,
    /// It exists already (exclusive creation).
    Exists,
    /// The machine said no: disk full, permission, input/output error. The text is the machine's.
    Refused(String),
    /// The operation is not supported here (exchange on some file systems).
    Unsupported,
    /// It took longer than allowed.
    TimedOut,
    /// Another process holds the lock: which lock, and who.
    Locked(String),
    /// It is larger than allowed, in bytes.
    TooLarge(u64),
    /// Not a regular file.
    NotAFile,
    /// The simulated machine lost power.
    Crashed,
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file or folder"),
            Self::Exists => f.write_str("exists already"),
            Self::Refused(why) => f.write_str(why),
            Self::Unsupported => f.write_str("not supported by this file system"),
            Self::TimedOut => f.write_str("took too long"),
            Self::Locked(by) => f.write_str(by),
            Self::TooLarge(bytes) => write!(f, "too large ({bytes} bytes)"),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::Crashed => f.write_str("power lost"),
        }
    }
}

impl std::error::Error for WorldError {}

/// An external command: program and arguments, never a shell line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Folder to run it in.
    pub folder: PathBuf,
    /// Text for its standard input.
    pub stdin: Vec<u8>,
    /// Variables set in addition to the inherited ones.
    pub env: Vec<(String, String)>,
    /// Variables that are not inherited.
    pub env_removed: Vec<String>,
    /// After this time its whole process group is killed.
    pub deadline: Duration,
    /// Bytes kept of each output stream; the rest is read and dropped.
    pub output_max: usize,
    /// Folders whose programs are not run by name. If given, a program that is named without a slash is
    /// looked up in the absolute entries of PATH outside of these folders alone.
    pub not_from: Option<Vec<PathBuf>>,
    /// Whether the PATH of the program itself is reduced to those entries, for one that starts others.
    pub path_reduced: bool,
}

/// What an external command answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output, cut at the bound.
    pub stdout: Vec<u8>,
    /// Standard error, cut at the bound.
    pub stderr: Vec<u8>,
    /// Whether a stream was cut at the bound.
    pub truncated: bool,
}

/// What a program that runs did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// It wrote to its standard output.
    Said(Vec<u8>),
    /// It wrote to its standard error.
    Complained(Vec<u8>),
    /// It ended with this exit code, or by a signal; its process group is dead.
    Ended(Option<i32>),
    /// Nothing in the time that was waited.
    Nothing,
}

/// A program that runs in a process group of its own; dropped, the whole group is killed.
pub trait RunningProgram {
    /// What it did next, waiting at most `wait_max` for it. After `Ended` there is nothing more.
    ///
    /// # Errors
    /// What the machine said.
    fn wait(&mut self, wait_max: Duration) -> Result<Sign, WorldError>;
    /// Asks the whole group to end, and kills what is left of it after `grace`. What it still says
    /// until then is heard, piece by piece.
    fn end(&mut self, grace: Duration, hear: &mut dyn FnMut(&Sign));
}

/// An open file for reading; dropped, it is closed.
pub trait OpenFile {
    /// Its kind, length and identity at this moment.
    ///
    /// # Errors
    /// What the machine said.
    fn stat(&self) -> Result<FileStat, WorldError>;
    /// Fills `buffer` from `offset`; returns the bytes read, 0 at the end.
    ///
    /// # Errors
    /// What the machine said.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError>;
}

/// A process that started this one, directly or through others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number.
    pub pid: u32,
    /// The program file that it runs; its short name where the machine does not show the file.
    pub program: String,
    /// Its arguments, the name that it was started by first; empty where they cannot be read.
    pub arguments: Vec<String>,
    /// Names of its environment's variables; empty where they cannot be read.
    pub variables: Vec<String>,
}

/// Most ancestors that are looked at.
pub const ANCESTORS_MAX: usize = 64;

/// What the user at the terminal answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The word `yes`.
    Yes,
    /// Anything else.
    No,
    /// This process has no terminal.
    NoTerminal,
}

/// A held lock; dropped, it is released. The lock file itself is never deleted.
pub trait HeldLock {}

/// Effects. `&self`: implementations use interior mutability, so one World is shared freely, by
/// threads too.
pub trait World: Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// Time since this World was made, never going backwards; deadlines are measured with it.
    fn elapsed(&self) -> Duration;
    /// Waits.
    fn sleep(&self, duration: Duration);
    /// Where this program lies; nothing where the machine does not say.
    fn program(&self) -> Option<PathBuf>;
    /// An environment variable that is set and not empty.
    fn env(&self, name: &str) -> Option<String>;
    /// Names of the environment's variables, in no order; those that are no text are left out.
    fn variables(&self) -> Vec<String>;
    /// The working folder of the process.
    fn working_folder(&self) -> PathBuf;
    /// The id of this process.
    fn process_id(&self) -> u32;
    /// The number of the user that this process acts for; nothing where the machine has none.
    fn user(&self) -> Option<u32>;
    /// The processes that started this one, the nearest first, and the process that leads the session of
    /// the terminal with those that started it. At most [`ANCESTORS_MAX`]; empty where the machine does
    /// not list them.
    fn ancestors(&self) -> Vec<Ancestor>;
    /// Asks the user at the terminal of this process, which is not standard input, for the word `yes`.
    fn confirm(&self, question: &str) -> Confirmation;
    /// Whether something to read comes on standard input within a time, its end included.
    fn input_comes(&self, within: Duration) -> bool;
    /// Threads that can run at the same time, at least 1.
    fn cores(&self) -> usize;

    /// What `path` is, links followed.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn stat(&self, path: &Path) -> Result<FileStat, WorldError>;
    /// What stands at `path` itself; the folders above it are followed.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn entry(&self, path: &Path) -> Result<Entry, WorldError>;
    /// Where a path leads, every link in it followed.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError>;
    /// Follows the folders below `root` on the way to `path`, and no link. The owner of the folder that
    /// holds `path`, as far as both exist.
    ///
    /// # Errors
    /// `Refused` if one of the folders is a symbolic link.
    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError>;
    /// Opens a regular file for reading; never blocks on a pipe.
    ///
    /// # Errors
    /// `Missing`, `NotAFile`, or what the machine said.
    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError>;
    /// The whole content of a regular file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// `Missing`, `NotAFile`, `TooLarge`, or what the machine said.
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError>;
    /// Names in a folder, sorted.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError>;
    /// Which folder `path` leads to (its identity, as [`FileStat`] has it), and the names in it, sorted.
    ///
    /// # Errors
    /// `Missing`, also where it is no folder, or what the machine said.
    fn look_into(&self, path: &Path) -> Result<(u64, Vec<String>), WorldError> {
        let stat = self.stat(path)?;
        match stat.kind {
            FileKind::Folder => Ok((stat.identity, self.list(path)?)),
            FileKind::File | FileKind::Special => Err(WorldError::Missing),
        }
    }

    /// Makes a folder and its parents, private to the user (0700).
    ///
    /// # Errors
    /// What the machine said.
    fn create_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Replaces the content of a file in place, creating it private to the user (0600). Not
    /// durable, not atomic. A link at `path` is refused.
    ///
    /// # Errors
    /// What the machine said.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError>;
    /// Appends to a file in one write, creating it private to the user (0600).
    ///
    /// # Errors
    /// What the machine said.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError>;
    /// Gives the file at `to` the permissions and the owner of the file at `from`.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError>;
    /// Makes the content of one file durable.
    ///
    /// # Errors
    /// What the machine said.
    fn sync_file(&self, path: &Path) -> Result<(), WorldError>;
    /// Makes the entries of a folder durable.
    ///
    /// # Errors
    /// What the machine said.
    fn sync_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Renames, replacing the target atomically.
    ///
    /// # Errors
    /// What the machine said.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError>;
    /// Exchanges two existing names atomically.
    ///
    /// # Errors
    /// `Unsupported` where the file system cannot, `Missing`, or what the machine said.
    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError>;
    /// Deletes a file.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn remove(&self, path: &Path) -> Result<(), WorldError>;
    /// Deletes a folder with all it holds; links inside are removed, not followed.
    ///
    /// # Errors
    /// `Missing`, or what the machine said.
    fn remove_folder(&self, path: &Path) -> Result<(), WorldError>;
    /// Takes an exclusive lock on the file at `path`, creating it, waiting at most `wait_max`.
    ///
    /// # Errors
    /// `Locked`, or what the machine said.
    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError>;
    /// Runs an external command to its end or its deadline.
    ///
    /// # Errors
    /// `Missing` when there is no such program, `TimedOut`, or what the machine said.
    fn run(&self, command: &Command) -> Result<CommandOutput, WorldError>;
    /// Starts an external command, whose output is taken as it comes. Its `deadline` and `output_max`
    /// are the caller's to keep.
    ///
    /// # Errors
    /// `Missing` when there is no such program, or what the machine said.
    fn start(&self, command: &Command) -> Result<Box<dyn RunningProgram>, WorldError>;
    /// From now on somebody who interrupts this process is noted instead of ending it.
    fn note_interrupts(&self);
    /// Whether somebody interrupted this process since then.
    fn interrupted(&self) -> bool;
    /// Kills every process whose environment has this variable with this value: what a process left
    /// behind that was killed itself. Returns how many there were.
    ///
    /// # Errors
    /// `Unsupported` where the environment of processes cannot be looked at.
    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError>;
}
