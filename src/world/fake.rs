//! A simulated machine in memory, for tests and simulations. Its clock moves only on request. Every
//! operation is logged and can fail, and power can be lost at any of them.
//!
//! Contains: the switches. Does not contain: the content of the disk (`disk`), the effects
//! (`effects`).

mod disk;
mod effects;
mod program;
mod server;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::disk::Disk;
pub use self::disk::{Content, Survival};
pub use self::program::Play;
pub use self::server::{FakeServer, ServerBackup, ServerFault};
use super::{
    Ancestor, AncestryGap, CommandOutput, Confirmation, ExternalCommand, HttpResponse, PathEntry,
    WorldError,
};
use policyd_yaml::time::Timestamp;

/// Kinds of operations that can fail. Each is one word in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Read,
    ReadAt,
    List,
    CreateFolder,
    Write,
    Append,
    Publish,
    CopyRights,
    SyncFile,
    SyncFolder,
    Rename,
    Exchange,
    Remove,
    RemoveFolder,
    Lock,
    Run,
    Request,
}

impl Op {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadAt => "read_at",
            Self::List => "list",
            Self::CreateFolder => "create_folder",
            Self::Write => "write",
            Self::Append => "append",
            Self::Publish => "publish",
            Self::CopyRights => "copy_rights",
            Self::SyncFile => "sync_file",
            Self::SyncFolder => "sync_folder",
            Self::Rename => "rename",
            Self::Exchange => "exchange",
            Self::Remove => "remove",
            Self::RemoveFolder => "remove_folder",
            Self::Lock => "lock",
            Self::Run => "run",
            Self::Request => "request",
        }
    }
}

/// An error for operations of one kind on paths with this end.
#[derive(Debug)]
struct InjectedError {
    op: Op,
    path_end: String,
    times: u32,
    error: WorldError,
}

/// Scripted result and duration of a command.
#[derive(Debug)]
struct ScriptedCommand {
    argv_start: Vec<String>,
    answers: VecDeque<(Result<CommandOutput, WorldError>, Duration)>,
}

#[derive(Debug, Default)]
struct SimulatedMachine {
    disk: Disk,
    /// User of the process. `None`: `USER`.
    user: Option<u32>,
    /// Links, and paths of another user.
    entries: BTreeMap<PathBuf, PathEntry>,
    now: Timestamp,
    elapsed: Duration,
    tick: Duration,
    env: BTreeMap<String, String>,
    ancestors: Vec<Ancestor>,
    ancestry_gap: Option<AncestryGap>,
    /// Answer of the user. `None`: yes.
    confirmation: Option<Confirmation>,
    questions: Vec<String>,
    /// Number of random bytes so far.
    random: u64,
    scripts: Vec<ScriptedCommand>,
    /// Responses to GET requests by their URL.
    responses: BTreeMap<String, HttpResponse>,
    ran: Vec<ExternalCommand>,
    plays: Vec<program::Plays>,
    interrupt_at: Option<Timestamp>,
    log: Vec<String>,
    ops: u32,
    bytes_read: u64,
    crash_at: Option<u32>,
    refuse_at: Option<(u32, WorldError)>,
    refusals: Vec<InjectedError>,
    no_exchange: bool,
    folds_case: bool,
    corrupt_reads: u32,
    server: Option<FakeServer>,
}

impl SimulatedMachine {
    /// Returns the error of a matching refusal and counts its use.
    fn refused(&mut self, op: Op, shown: &str) -> Result<(), WorldError> {
        let refusal = self
            .refusals
            .iter_mut()
            .find(|it| it.op == op && it.times > 0 && shown.ends_with(&it.path_end));
        let Some(refusal) = refusal else { return Ok(()) };
        if refusal.times != u32::MAX {
            refusal.times = refusal.times.saturating_sub(1);
        }
        Err(refusal.error.clone())
    }
}

/// A simulated machine. Its working directory `/work` exists.
#[derive(Debug, Clone)]
pub struct FakeWorld {
    machine: Arc<Mutex<SimulatedMachine>>,
    held: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// Working directory of the simulated process.
const WORK: &str = "/work";
/// Id of the simulated user.
const USER: u32 = 1000;

impl Default for FakeWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeWorld {
    /// Creates an empty machine at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        let mut disk = Disk::default();
        disk.put_folder(Path::new(WORK));
        let now = Timestamp::from_millis(1_767_225_600_000);
        Self::with(SimulatedMachine { disk, now, ..SimulatedMachine::default() })
    }

    fn with(machine: SimulatedMachine) -> Self {
        Self { machine: Arc::new(Mutex::new(machine)), held: Arc::default() }
    }

    /// Advances both clocks.
    pub fn advance(&self, by: Duration) {
        let mut machine = open(&self.machine);
        machine.now = machine.now.plus(by);
        machine.elapsed = machine.elapsed.saturating_add(by);
    }

    /// Advances the clocks before each read of the elapsed time.
    pub fn tick(&self, step: Duration) {
        open(&self.machine).tick = step;
    }

    /// Sets the wall clock, also backward.
    pub fn set_now(&self, now: Timestamp) {
        open(&self.machine).now = now;
    }

    /// Sets an environment variable.
    pub fn set_env(&self, name: &str, value: &str) {
        open(&self.machine).env.insert(name.to_owned(), value.to_owned());
    }

    /// Sets the user of the process, who also owns what the process creates.
    pub fn set_user(&self, user: u32) {
        open(&self.machine).user = Some(user);
    }

    /// Sets the ancestors of this process. Initially empty.
    pub fn set_ancestors(&self, ancestors: Vec<Ancestor>) {
        open(&self.machine).ancestors = ancestors;
    }

    /// Sets why ancestors are missing. Initially none is.
    pub fn set_ancestry_gap(&self, gap: Option<AncestryGap>) {
        open(&self.machine).ancestry_gap = gap;
    }

    /// Sets the answer to every question at the terminal. Initially it is yes.
    pub fn set_confirmation(&self, confirmation: Confirmation) {
        open(&self.machine).confirmation = Some(confirmation);
    }

    /// Returns the questions that the user saw at the terminal.
    #[must_use]
    pub fn questions(&self) -> Vec<String> {
        open(&self.machine).questions.clone()
    }

    /// Creates a durable file and its directories, without counting an operation.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let mut machine = open(&self.machine);
        let now = machine.now;
        machine.disk.put(path.as_ref(), bytes.as_ref(), now);
    }

    /// Creates a durable directory, without counting an operation.
    pub fn put_folder(&self, path: impl AsRef<Path>) {
        open(&self.machine).disk.put_folder(path.as_ref());
    }

    /// Makes a path a link, for `World::entry` and `World::real_path` only, without counting an
    /// operation.
    pub fn put_link(&self, path: impl Into<PathBuf>, leads_to: impl Into<PathBuf>) {
        let entry =
            PathEntry { link: Some(leads_to.into()), owner: Some(USER), shared_write: false };
        open(&self.machine).entries.insert(path.into(), entry);
    }

    /// Makes `World::stat` ignore case, without counting an operation.
    pub fn fold_case(&self) {
        open(&self.machine).folds_case = true;
    }

    /// Changes the owner of a path.
    pub fn give_away(&self, path: impl Into<PathBuf>, owner: u32) {
        let entry = PathEntry { link: None, owner: Some(owner), shared_write: false };
        open(&self.machine).entries.insert(path.into(), entry);
    }

    /// Makes a path writable for all users, and sets its owner.
    pub fn share_write(&self, path: impl Into<PathBuf>, owner: u32) {
        let entry = PathEntry { link: None, owner: Some(owner), shared_write: true };
        open(&self.machine).entries.insert(path.into(), entry);
    }

    /// Creates a pipe or device, without counting an operation.
    pub fn put_special(&self, path: impl AsRef<Path>) {
        open(&self.machine).disk.put_special(path.as_ref());
    }

    /// Returns the content of a file as processes see it, without counting an operation.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        open(&self.machine).disk.read(path.as_ref()).ok()
    }

    /// Returns all files as processes see them, sorted, without counting an operation.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        open(&self.machine).disk.files()
    }

    /// Scripts the next result of commands whose arguments start with `argv_start`. Results are
    /// used in order, and the last one repeats. `takes` advances both clocks.
    pub fn script(
        &self,
        argv_start: &[&str],
        answer: Result<CommandOutput, WorldError>,
        takes: Duration,
    ) {
        let argv_start: Vec<String> = argv_start.iter().map(|&it| it.to_owned()).collect();
        let scripts = &mut open(&self.machine).scripts;
        match scripts.iter_mut().find(|it| it.argv_start == argv_start) {
            Some(script) => script.answers.push_back((answer, takes)),
            None => scripts
                .push(ScriptedCommand { argv_start, answers: VecDeque::from([(answer, takes)]) }),
        }
    }

    /// Serves a body at a URL.
    pub fn serve(&self, url: &str, body: impl AsRef<[u8]>) {
        let response =
            HttpResponse { status: 200, headers: Vec::new(), body: body.as_ref().to_vec() };
        open(&self.machine).responses.insert(url.to_owned(), response);
    }

    /// Removes the scripted results of commands with this start.
    pub fn unscript(&self, argv_start: &[&str]) {
        open(&self.machine).scripts.retain(|it| it.argv_start != argv_start);
    }

    /// Scripts the next run of programs whose arguments start with `argv_start`. Scripts are used
    /// in order, and the last one repeats.
    pub fn play(&self, argv_start: &[&str], play: Vec<Play>) {
        program::add(&mut open(&self.machine).plays, argv_start, play);
    }

    /// Interrupts this process at a point in time.
    pub fn interrupt_at(&self, at: Timestamp) {
        open(&self.machine).interrupt_at = Some(at);
    }

    /// Returns the commands that ran.
    #[must_use]
    pub fn ran(&self) -> Vec<ExternalCommand> {
        open(&self.machine).ran.clone()
    }

    /// Returns the log, one line for each operation: `write state.json 312`. Paths in the working
    /// directory are relative to it.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        open(&self.machine).log.clone()
    }

    /// Empties the log and restarts the count of operations at 0.
    pub fn clear_log(&self) {
        let mut machine = open(&self.machine);
        machine.log.clear();
        machine.ops = 0;
        machine.bytes_read = 0;
    }

    /// Returns the bytes of files that were read since the log was cleared.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        open(&self.machine).bytes_read
    }

    /// Returns the number of operations since the log was cleared.
    #[must_use]
    pub fn ops(&self) -> u32 {
        open(&self.machine).ops
    }

    /// Loses power instead of operation `op`, counted from 0 from now on.
    pub fn crash_at(&self, op: u32) {
        let mut machine = open(&self.machine);
        machine.ops = 0;
        machine.crash_at = Some(op);
    }

    /// Makes operation `op` fail once, counted from 0 from now on.
    pub fn refuse_at(&self, op: u32, error: WorldError) {
        let mut machine = open(&self.machine);
        machine.ops = 0;
        machine.refuse_at = Some((op, error));
    }

    /// Makes all operations of one kind fail on paths that end with `path_end`.
    pub fn refuse_always(&self, op: Op, path_end: &str, error: WorldError) {
        self.refuse_times(op, path_end, u32::MAX, error);
    }

    /// Makes the next `times` operations of one kind fail on paths that end with `path_end`.
    pub fn refuse_times(&self, op: Op, path_end: &str, times: u32, error: WorldError) {
        let refusal = InjectedError { op, path_end: path_end.to_owned(), times, error };
        open(&self.machine).refusals.push(refusal);
    }

    /// Removes all refusals.
    pub fn refuse_nothing(&self) {
        let mut machine = open(&self.machine);
        machine.refusals.clear();
        machine.refuse_at = None;
    }

    /// Removes support for the exchange of names.
    pub fn without_exchange(&self) {
        open(&self.machine).no_exchange = true;
    }

    /// Makes the next `times` reads of files return one wrong byte.
    pub fn corrupt_reads(&self, times: u32) {
        open(&self.machine).corrupt_reads = times;
    }

    /// Returns the machine after a power loss. `survival` decides which unsynced changes remain.
    #[must_use]
    pub fn reboot(&self, survival: Survival) -> Self {
        let machine = open(&self.machine);
        Self::with(SimulatedMachine {
            disk: machine.disk.reboot(survival),
            entries: machine.entries.clone(),
            now: machine.now,
            env: machine.env.clone(),
            server: machine.server.clone(),
            no_exchange: machine.no_exchange,
            ..SimulatedMachine::default()
        })
    }

    /// Returns the machine after the process was killed: nothing is lost, nothing more is durable
    /// than before, and locks are free.
    pub fn revive(&self) {
        open(&self.machine).crash_at = None;
        open(&self.held).clear();
    }

    /// Counts and logs one operation, which can fail.
    fn op(&self, op: Op, path: &Path, rest: &str) -> Result<(), WorldError> {
        let machine = &mut *open(&self.machine);
        let number = machine.ops;
        machine.ops = number.saturating_add(1);
        if machine.crash_at.is_some_and(|at| number >= at) {
            return Err(WorldError::PowerLoss);
        }
        let shown = log_path(path);
        let space = if rest.is_empty() { "" } else { " " };
        machine.log.push(format!("{} {shown}{space}{rest}", op.word()));
        if let Some((_, error)) = machine.refuse_at.take_if(|(at, _)| *at == number) {
            return Err(error);
        }
        machine.refused(op, &shown)
    }

    /// Runs one operation on the disk, unless it fails before.
    fn on_disk<T>(
        &self,
        op: Op,
        path: &Path,
        rest: &str,
        work: impl FnOnce(&mut Disk, Timestamp) -> Result<T, WorldError>,
    ) -> Result<T, WorldError> {
        self.op(op, path, rest)?;
        let machine = &mut *open(&self.machine);
        work(&mut machine.disk, machine.now)
    }
}

/// Locks a mutex. A poisoned mutex is from a test that already failed.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats a path for the log, with `/` on every system.
fn log_path(path: &Path) -> String {
    path.strip_prefix(WORK).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
