//! A World in memory for tests and simulations: its clock moves only when told, every effect is
//! logged, any operation can be refused, and power can be lost at any of them.
//! What a disk keeps is in `disk`; this file holds the switches, `effects` the trait.

mod disk;
mod effects;
mod program;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::disk::Disk;
pub use self::disk::{Content, Survival};
pub use self::program::Play;
use super::{Ancestor, Command, CommandOutput, Confirmation, Entry, WorldError};
use crate::time::Timestamp;

/// Kinds of operations that can be refused; each is one word of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method of World of that name")]
pub enum Op {
    Read,
    ReadAt,
    List,
    CreateFolder,
    Write,
    Append,
    CopyRights,
    SyncFile,
    SyncFolder,
    Rename,
    Exchange,
    Remove,
    RemoveFolder,
    Lock,
    Run,
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
            Self::CopyRights => "copy_rights",
            Self::SyncFile => "sync_file",
            Self::SyncFolder => "sync_folder",
            Self::Rename => "rename",
            Self::Exchange => "exchange",
            Self::Remove => "remove",
            Self::RemoveFolder => "remove_folder",
            Self::Lock => "lock",
            Self::Run => "run",
        }
    }
}

/// Refuses operations of one kind whose path ends like this.
#[derive(Debug)]
struct Refusal {
    op: Op,
    path_end: String,
    times: u32,
    error: WorldError,
}

/// What a scripted command answers, and how long it takes.
#[derive(Debug)]
struct Script {
    argv_start: Vec<String>,
    answers: VecDeque<(Result<CommandOutput, WorldError>, Duration)>,
}

#[derive(Debug, Default)]
struct Machine {
    disk: Disk,
    /// What stands at paths that are links, or somebody else's.
    entries: BTreeMap<PathBuf, Entry>,
    now: Timestamp,
    elapsed: Duration,
    tick: Duration,
    env: BTreeMap<String, String>,
    ancestors: Vec<Ancestor>,
    /// The answer of the user; yes where none is set.
    confirmation: Option<Confirmation>,
    questions: Vec<String>,
    scripts: Vec<Script>,
    ran: Vec<Command>,
    plays: Vec<program::Plays>,
    interrupt_at: Option<Timestamp>,
    log: Vec<String>,
    ops: u32,
    bytes_read: u64,
    crash_at: Option<u32>,
    refuse_at: Option<(u32, WorldError)>,
    refusals: Vec<Refusal>,
    no_exchange: bool,
    folds_case: bool,
    corrupt_reads: u32,
}

impl Machine {
    /// The error of a standing refusal that fits, which is used up by it.
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

/// The simulated machine. Its working folder is `/work`, which exists.
#[derive(Debug, Clone)]
pub struct FakeWorld {
    machine: Arc<Mutex<Machine>>,
    held: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// The working folder of the simulated process.
const WORK: &str = "/work";
/// The number of the simulated user.
const USER: u32 = 1000;

impl Default for FakeWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeWorld {
    /// An empty machine at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        let mut disk = Disk::default();
        disk.put_folder(Path::new(WORK));
        let now = Timestamp::from_millis(1_767_225_600_000);
        Self::with(Machine { disk, now, ..Machine::default() })
    }

    fn with(machine: Machine) -> Self {
        Self { machine: Arc::new(Mutex::new(machine)), held: Arc::default() }
    }

    /// Moves both clocks on.
    pub fn advance(&self, by: Duration) {
        let mut machine = open(&self.machine);
        machine.now = machine.now.plus(by);
        machine.elapsed = machine.elapsed.saturating_add(by);
    }

    /// Lets time pass before each look at the elapsed time.
    pub fn tick(&self, step: Duration) {
        open(&self.machine).tick = step;
    }

    /// Sets the wall clock, backwards too.
    pub fn set_now(&self, now: Timestamp) {
        open(&self.machine).now = now;
    }

    /// Sets a variable of the environment.
    pub fn set_env(&self, name: &str, value: &str) {
        open(&self.machine).env.insert(name.to_owned(), value.to_owned());
    }

    /// Sets the processes that started this one; there are none at first.
    pub fn set_ancestors(&self, ancestors: Vec<Ancestor>) {
        open(&self.machine).ancestors = ancestors;
    }

    /// Sets the answer to every question at the terminal, which is yes at first.
    pub fn set_confirmation(&self, confirmation: Confirmation) {
        open(&self.machine).confirmation = Some(confirmation);
    }

    /// The questions that the user was asked at the terminal.
    #[must_use]
    pub fn questions(&self) -> Vec<String> {
        open(&self.machine).questions.clone()
    }

    /// Puts a durable file and its folders there; not an operation.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let mut machine = open(&self.machine);
        let now = machine.now;
        machine.disk.put(path.as_ref(), bytes.as_ref(), now);
    }

    /// Puts a durable folder there; not an operation.
    pub fn put_folder(&self, path: impl AsRef<Path>) {
        open(&self.machine).disk.put_folder(path.as_ref());
    }

    /// Makes a path a link, for `World::entry` and `World::real_path` alone; not an operation.
    pub fn put_link(&self, path: impl Into<PathBuf>, leads_to: impl Into<PathBuf>) {
        let entry = Entry { link: Some(leads_to.into()), owner: Some(USER) };
        open(&self.machine).entries.insert(path.into(), entry);
    }

    /// Lets `World::stat` take letters of both cases for the same; not an operation.
    pub fn fold_case(&self) {
        open(&self.machine).folds_case = true;
    }

    /// Gives what stands at a path to another user.
    pub fn give_away(&self, path: impl Into<PathBuf>, owner: u32) {
        let entry = Entry { link: None, owner: Some(owner) };
        open(&self.machine).entries.insert(path.into(), entry);
    }

    /// Puts a pipe or device there; not an operation.
    pub fn put_special(&self, path: impl AsRef<Path>) {
        open(&self.machine).disk.put_special(path.as_ref());
    }

    /// The content of a file as processes see it; not an operation.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        open(&self.machine).disk.read(path.as_ref()).ok()
    }

    /// All files as processes see them, sorted; not an operation.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        open(&self.machine).disk.files()
    }

    /// Scripts the next answer of commands whose arguments start like this. Answers are given in
    /// order, the last one for ever; `takes` passes on both clocks.
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
            None => scripts.push(Script { argv_start, answers: VecDeque::from([(answer, takes)]) }),
        }
    }

    /// Forgets the answers of commands that were scripted with this start.
    pub fn unscript(&self, argv_start: &[&str]) {
        open(&self.machine).scripts.retain(|it| it.argv_start != argv_start);
    }

    /// What the next program does whose arguments start like this. Plays follow each other, the last
    /// one is played for ever.
    pub fn play(&self, argv_start: &[&str], play: Vec<Play>) {
        program::add(&mut open(&self.machine).plays, argv_start, play);
    }

    /// Lets somebody interrupt this process at a moment.
    pub fn interrupt_at(&self, at: Timestamp) {
        open(&self.machine).interrupt_at = Some(at);
    }

    /// The commands that were run so far.
    #[must_use]
    pub fn ran(&self) -> Vec<Command> {
        open(&self.machine).ran.clone()
    }

    /// Every operation so far, one line each: `write state.json 312`. Paths under the working
    /// folder are relative to it.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        open(&self.machine).log.clone()
    }

    /// Empties the log and counts operations from 0 again.
    pub fn clear_log(&self) {
        let mut machine = open(&self.machine);
        machine.log.clear();
        machine.ops = 0;
        machine.bytes_read = 0;
    }

    /// Bytes of files that were handed out since then.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        open(&self.machine).bytes_read
    }

    /// Operations since the machine was made or its log cleared.
    #[must_use]
    pub fn ops(&self) -> u32 {
        open(&self.machine).ops
    }

    /// Loses power instead of operation `op`, counted from 0 from here on.
    pub fn crash_at(&self, op: u32) {
        let mut machine = open(&self.machine);
        machine.ops = 0;
        machine.crash_at = Some(op);
    }

    /// Refuses operation `op` once, counted from 0 from here on.
    pub fn refuse_at(&self, op: u32, error: WorldError) {
        let mut machine = open(&self.machine);
        machine.ops = 0;
        machine.refuse_at = Some((op, error));
    }

    /// Refuses operations of one kind on paths that end with `path_end`, for ever.
    pub fn refuse_always(&self, op: Op, path_end: &str, error: WorldError) {
        self.refuse_times(op, path_end, u32::MAX, error);
    }

    /// Refuses the next `times` operations of one kind on paths that end with `path_end`.
    pub fn refuse_times(&self, op: Op, path_end: &str, times: u32, error: WorldError) {
        let refusal = Refusal { op, path_end: path_end.to_owned(), times, error };
        open(&self.machine).refusals.push(refusal);
    }

    /// Takes all refusals back.
    pub fn refuse_nothing(&self) {
        let mut machine = open(&self.machine);
        machine.refusals.clear();
        machine.refuse_at = None;
    }

    /// Makes the file system one that cannot exchange names.
    pub fn without_exchange(&self) {
        open(&self.machine).no_exchange = true;
    }

    /// Lets the next `times` reads of file contents answer with one wrong byte.
    pub fn corrupt_reads(&self, times: u32) {
        open(&self.machine).corrupt_reads = times;
    }

    /// The machine after power returns: what was not synced survives as told.
    #[must_use]
    pub fn reboot(&self, survival: Survival) -> Self {
        let machine = open(&self.machine);
        Self::with(Machine {
            disk: machine.disk.reboot(survival),
            entries: machine.entries.clone(),
            now: machine.now,
            env: machine.env.clone(),
            no_exchange: machine.no_exchange,
            ..Machine::default()
        })
    }

    /// The machine after the process was killed at the crash: nothing is lost, nothing more is
    /// durable than before, and locks are free.
    pub fn revive(&self) {
        open(&self.machine).crash_at = None;
        open(&self.held).clear();
    }

    /// Counts, logs and perhaps refuses one operation.
    fn op(&self, op: Op, path: &Path, rest: &str) -> Result<(), WorldError> {
        let machine = &mut *open(&self.machine);
        let number = machine.ops;
        machine.ops = number.saturating_add(1);
        if machine.crash_at.is_some_and(|at| number >= at) {
            return Err(WorldError::Crashed);
        }
        let shown = shown(path);
        let space = if rest.is_empty() { "" } else { " " };
        machine.log.push(format!("{} {shown}{space}{rest}", op.word()));
        if let Some((_, error)) = machine.refuse_at.take_if(|(at, _)| *at == number) {
            return Err(error);
        }
        machine.refused(op, &shown)
    }

    /// One operation on the disk, which is not reached when it is refused.
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

/// What a lock protects; a test that failed while it held it says so itself.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path as the log shows it.
fn shown(path: &Path) -> String {
    path.strip_prefix(WORK).unwrap_or(path).to_string_lossy().into_owned()
}
