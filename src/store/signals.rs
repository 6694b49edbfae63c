//! Signals of a project: files in `signals/`, named as in the seed, that any process may create and
//! exactly one consumes. Looked at without a lock, changed under one.
//!
//! What ended is in `signals/history.jsonl`, what cannot be used in `signals/quarantine/`, what is
//! claimed in `state/signals.json`. The order of an ending is in `ledger`.

mod answers;
mod appended_drift;
mod creating;
mod drifts;
mod file_names;
mod follow_up;
pub(super) mod found;
pub(super) mod ledger;
mod process;
mod sharing;
mod steps;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::document::{DocumentError, Documents};
use super::file::Durability;
use super::log;
use super::user_choices::UserChoiceStore;
use found::{SignalFileBytes, SignalFileState};
use ledger::{ClaimEntry, Ledger, SignalEnd};
use policyd_base::limits::{
    DRIFT_LOG_BYTES_MAX, HOOK_LOCK_WAIT, SIGNAL_FILE_BYTES_MAX, SIGNALS_MAX,
};
use policyd_fact_table::signal_facts::SignalSnapshot;
use policyd_policy::signals::{SignalKind, SignalStorage, Signals};
use policyd_state::signal::{End, SignalPhase};
use policyd_world::{HeldLock, World, WorldError};
use policyd_yaml::deferred::Lazy;
use policyd_yaml::time::Timestamp;

pub use answers::{RequestAnswer, is_blocking};
pub use appended_drift::AppendedDrift;
pub use creating::Draft;
pub use follow_up::{FollowUpHandler, FollowUpResult, SignalFollowUp};
pub use found::StoredSignal;

/// Paths below the state directory.
const FOLDER: &str = "signals";
const STATE_FOLDER: &str = "state";
const FOLDERS: [&str; 2] = [FOLDER, STATE_FOLDER];
const LOCK: &str = "signals/.signals.lock";
const LEDGER: &str = "state/signals.json";
const LEDGER_BYTES_MAX: usize = 4 * 1024 * 1024;

const END_OF_TIME: Timestamp = Timestamp::from_millis(i64::MAX);

/// The signals under one root.
#[derive(Clone)]
pub struct SignalStore<'a> {
    world: &'a dyn World,
    documents: Documents<'a>,
    /// Which approvals the user gave.
    choices: UserChoiceStore<'a>,
    /// Decoded where something is asked of a signal: most calls ask nothing.
    kinds: &'a Lazy<Signals>,
}

/// Snapshot of the signal directory.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Signals that wait or are claimed, the oldest first.
    pub signals: Vec<StoredSignal>,
    /// Files named after no signal that is known.
    pub unknown: Vec<String>,
    /// Files that cannot be used, and why.
    pub unusable: Vec<(String, String)>,
    /// Whether there are more files than are looked at.
    pub cut: bool,
    /// Whether something could not be read now, or is being written.
    pub incomplete: bool,
    /// Why claims and endings, or all signals, are unknown.
    pub problem: Option<DocumentError>,
}

impl View {
    /// Signals that wait for a human at a moment.
    pub fn awaiting_human<'v>(
        &'v self,
        kinds: &'v Signals,
        now: Timestamp,
    ) -> impl Iterator<Item = &'v StoredSignal> {
        self.signals.iter().filter(move |it| {
            let kind = kinds.kind(&it.name);
            kind.is_some_and(|it| it.awaits_human(kinds)) && !it.signal.is_over(now)
        })
    }
}

/// Result of a state transition requested for a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalOutcome {
    /// No such signal is pending.
    Nothing,
    /// It is as it was, and why.
    Refused(Box<StoredSignal>, String),
    /// The signal is claimed until this time.
    Held(Box<StoredSignal>, Timestamp),
    /// It waits again.
    GivenBack(Box<StoredSignal>),
    /// It ended; with the request that it approved, where it approved one.
    Ended(Box<StoredSignal>, End, Option<Box<StoredSignal>>),
}

/// Details of the end of a signal; empty ones are not stored.
#[derive(Debug, Clone, Copy, Default)]
struct EndDetails<'a> {
    by: &'a str,
    decision: &'a str,
    reason: &'a str,
    /// Id of the approval.
    answer: &'a str,
}

/// Which signal is meant: its name (the oldest that waits), its id or the beginning of one.
fn is_meant(found: &StoredSignal, which: &str) -> bool {
    found.name == which || found.id == which || (which.len() >= 4 && found.id.starts_with(which))
}

/// Whether a line of a log is a drift after a moment.
fn counts(line: &Value, from: Option<Timestamp>) -> bool {
    let time = |it: &Value| Timestamp::parse(it.get("timestamp")?.as_str()?);
    line.is_object() && from.is_none_or(|from| time(line).is_some_and(|at| at > from))
}

/// The drifts of these lines.
fn counted_lines(bytes: &[u8], from: Option<Timestamp>) -> impl Iterator<Item = Value> {
    let lines = bytes.split(|it| *it == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
    lines.filter(move |it| counts(it, from))
}

/// The ledger and what is in the folder, under the lock.
struct LockedSignals {
    ledger: Ledger,
    view: View,
    _held: Box<dyn HeldLock>,
}

impl LockedSignals {
    fn find(&self, id: &str) -> Option<&StoredSignal> {
        self.view.signals.iter().find(|it| it.id == id)
    }
}

impl<'a> SignalStore<'a> {
    /// Returns the store of a state directory, for the signal types of a pack.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        root: &Path,
        kinds: &'a Lazy<Signals>,
        durability: Durability,
    ) -> Self {
        let documents = Documents::new(world, root, durability, HOOK_LOCK_WAIT, LEDGER_BYTES_MAX);
        Self { world, documents, choices: UserChoiceStore::new(world, root), kinds }
    }

    /// The same for a caller that has that long to wait for the lock.
    #[must_use]
    pub fn patient(mut self, lock_wait: Duration) -> Self {
        self.documents.lock_wait = lock_wait;
        self
    }

    /// Why something that was saved may not survive a loss of power; told once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.documents.degraded()
    }

    /// Whether there is a folder of signals: the cheapest thing to ask.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.world.stat(&self.folder()).is_ok()
    }

    fn folder(&self) -> PathBuf {
        self.documents.path(FOLDER)
    }

    fn history_path(&self) -> PathBuf {
        self.folder().join(file_names::HISTORY)
    }

    /// Reads the directory without a lock. If the ledger cannot be read, each signal of the directory waits: so a
    /// signal that stops a run still stops it.
    #[must_use]
    pub fn view(&self, now: Timestamp) -> View {
        let (ledger, problem) = match self.ledger() {
            Ok(ledger) => (ledger, None),
            Err(problem) => (Ledger::default(), Some(problem)),
        };
        let view = self.look(&ledger, now);
        View { problem: view.problem.or(problem), ..view }
    }

    /// Reads the ledger without a lock.
    fn ledger(&self) -> Result<Ledger, DocumentError> {
        Ok(Ledger::read(self.documents.fields(LEDGER)?))
    }

    /// Returns why claims and endings, or all signals, are unknown.
    #[must_use]
    pub fn problem(&self, now: Timestamp) -> Option<DocumentError> {
        self.documents.problem(LEDGER).or_else(|| self.view(now).problem)
    }

    /// Returns the pending signals, oldest first.
    #[must_use]
    pub fn pending(&self, now: Timestamp) -> Vec<StoredSignal> {
        let mut found = self.view(now).signals;
        found.retain(|it| it.signal.is_pending(now));
        found
    }

    /// Returns the pending signals, as expressions see them. `None` if they are unknown.
    #[must_use]
    pub fn waiting(&self, now: Timestamp) -> Option<SignalSnapshot> {
        let view = self.view(now);
        if view.problem.is_some() {
            return None;
        }
        let pending = view.signals.iter().filter(|it| it.signal.is_pending(now));
        Some(SignalSnapshot {
            pending: pending.map(|it| it.name.clone()).collect(),
            drifts: self.drifts(now).len(),
            awaiting_human: view.awaiting_human(self.kinds, now).count(),
        })
    }

    /// Returns the signals that ended, the oldest first.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn history(&self) -> Result<Vec<Value>, DocumentError> {
        let (mut told, path) = (BTreeSet::new(), self.history_path());
        let mut all = match log::read_certainly(self.world, &path) {
            Ok(all) => all,
            Err(source) => return Err(DocumentError::Io { path, source }),
        };
        // A process that died before it had told everything makes another one tell it again.
        all.retain(|it| {
            let id = it.get("id").and_then(Value::as_str);
            id.is_none_or(|id| told.insert(id.to_owned()))
        });
        Ok(all)
    }

    /// Drifts since the context was last cleared, oldest first. If the time is unknown, all count.
    #[must_use]
    pub fn drifts(&self, now: Timestamp) -> Vec<Value> {
        let from = self.ledger().ok().and_then(|it| it.drifts_from);
        self.drifts_since(from.filter(|it| *it <= now))
    }

    fn drifts_since(&self, from: Option<Timestamp>) -> Vec<Value> {
        let end = |path: PathBuf| log::read_end(self.world, &path, DRIFT_LOG_BYTES_MAX);
        self.logs().flat_map(|(_, path)| end(path)).filter(|it| counts(it, from)).collect()
    }

    fn look(&self, ledger: &Ledger, now: Timestamp) -> View {
        let mut view = View::default();
        let names = match self.world.list(&self.folder()) {
            Ok(names) => names,
            Err(WorldError::NotFound) => Vec::new(),
            Err(source) => {
                view.incomplete = true;
                view.problem = Some(DocumentError::Io { path: self.folder(), source });
                Vec::new()
            }
        };
        view.cut = names.len() > SIGNALS_MAX;
        let names = if view.cut { self.urgent_first(names) } else { names };
        for file in names.into_iter().take(SIGNALS_MAX) {
            let Some(name) = file_names::signal(&file) else { continue };
            let Some(kind) = self.kinds.kind(&name) else {
                view.unknown.push(file);
                continue;
            };
            if kind.form == SignalStorage::Log {
                continue;
            }
            match self.read(&file, &name, kind, now) {
                Ok(None) => {}
                Err(_) | Ok(Some(SignalFileState::Unsettled)) => view.incomplete = true,
                Ok(Some(SignalFileState::Unusable(why))) => {
                    view.unusable.push((file, why.to_owned()))
                }
                Ok(Some(SignalFileState::Signal(found))) => view.signals.push(*found),
            }
        }
        view.signals.retain(|it| !ledger.endings.contains_key(&it.id));
        for it in &mut view.signals {
            if let Some(ClaimEntry { by, until }) = ledger.claims.get(&it.id).cloned() {
                it.signal.phase = SignalPhase::Claimed { by, until };
            }
            it.signal.late_since = ledger.late.get(&it.id).copied();
        }
        view.signals.sort_by(|one, other| {
            (one.signal.created, &one.id).cmp(&(other.signal.created, &other.id))
        });
        // A copy of a signal file is not a second signal.
        view.signals.dedup_by(|one, other| one.id == other.id);
        view
    }

    /// The same names: first the plain file of each kind that interrupts a run or that a human answers, then
    /// further files of the kinds that stop or pause, then those that a human answers. So no number of files
    /// hides a stop.
    fn urgent_first(&self, mut names: Vec<String>) -> Vec<String> {
        let rank = |file: &String| {
            let name = file_names::signal(file);
            let Some(kind) = name.as_deref().and_then(|it| self.kinds.kind(it)) else { return 3 };
            let interrupts = !kind.interrupts.is_empty();
            let is_answer = kind.awaits_human(self.kinds) || !kind.approves.is_empty();
            // A glob can match any number of plain files.
            match file_names::plain(&kind.id) == *file {
                true if interrupts || is_answer => 0,
                _ if interrupts => 1,
                _ if is_answer => 2,
                _ => 3,
            }
        };
        names.sort_by_cached_key(rank);
        names
    }

    /// Whether a signal that was just created is hidden behind too many files: how many there are.
    #[must_use]
    pub fn files_hiding(&self, created: &StoredSignal, now: Timestamp) -> Option<usize> {
        let count = self.world.list(&self.folder()).ok()?.len();
        let is_log = self.kinds.kind(&created.name).is_some_and(|it| it.form == SignalStorage::Log);
        let hidden = count > SIGNALS_MAX && !is_log;
        let seen = || self.view(now).signals.iter().any(|it| it.id == created.id);
        (hidden && !seen()).then_some(count)
    }

    /// Classifies a file. `None` if it does not exist anymore.
    fn read(
        &self,
        file: &str,
        name: &str,
        kind: &SignalKind,
        now: Timestamp,
    ) -> Result<Option<SignalFileState>, WorldError> {
        let path = self.folder().join(file);
        match self.world.entry(&path) {
            Ok(entry) if entry.link.is_some() => {
                return Ok(Some(SignalFileState::Unusable("it is a symbolic link")));
            }
            Ok(_) => {}
            Err(WorldError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        }
        let bytes = match self.world.read(&path, SIGNAL_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(WorldError::TooLarge(_) | WorldError::NotAFile) => Vec::new(),
            // Another process consumed it meanwhile.
            Err(WorldError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = match self.world.stat(&path) {
            Ok(stat) => stat,
            Err(WorldError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(StoredSignal::read(
            &SignalFileBytes { name: file, stat, bytes: &bytes },
            name,
            kind,
            now,
        )))
    }

    /// Takes the lock, makes up for what others left half done, and looks.
    fn open(&self, now: Timestamp) -> Result<LockedSignals, WorldError> {
        let held = self.documents.lock(LOCK, &FOLDERS)?;
        // The user might have created the directory of signals, and the other one might not exist yet.
        let state = self.documents.path(STATE_FOLDER);
        if self.world.stat(&state) == Err(WorldError::NotFound) {
            self.world.create_folder(&state)?;
        }
        let known = self.documents.read_to_change(LEDGER)?;
        let mut ledger = Ledger::read(known);
        if !ledger.endings.is_empty() {
            self.make_up(&mut ledger);
        }
        let view = self.look(&ledger, now);
        Ok(LockedSignals { ledger, view, _held: held })
    }

    fn save(&self, ledger: &Ledger) -> Result<(), WorldError> {
        self.documents.save(LEDGER, &ledger.text())
    }

    /// Completes endings of processes that died. Their entries in the history might be lost if a sync failed, so
    /// the entries are written again.
    fn make_up(&self, ledger: &mut Ledger) {
        let endings: Vec<(String, Value)> =
            ledger.endings.iter().map(|(id, it)| (id.clone(), it.clone())).collect();
        // Endings that cannot be completed now stay in the ledger for the next process.
        let finished = endings.iter().filter(|(id, it)| self.finish(ledger, id, it).is_ok());
        if finished.count() > 0 {
            let _unsaved = self.save(ledger);
        }
    }

    /// Completes an ending: appends to the history, then removes the file. Does not save the ledger.
    fn finish(&self, ledger: &mut Ledger, id: &str, entry: &Value) -> Result<(), WorldError> {
        let path = self.history_path();
        if !log::append(self.world, &path, std::slice::from_ref(entry)) {
            return Err(WorldError::Io("the history could not be written".to_owned()));
        }
        self.sync(&path)?;
        let file = entry.get("file").and_then(Value::as_str).unwrap_or_default();
        let kind = file_names::signal(file).and_then(|name| Some((self.kinds.kind(&name)?, name)));
        if let Some((kind, name)) = kind
            // Neither a concurrent writer nor the clock matters any more.
            && let Some(SignalFileState::Signal(found)) = self.read(file, &name, kind, END_OF_TIME)?
            && found.id == id
        {
            match self.world.remove(&self.folder().join(file)) {
                Ok(()) | Err(WorldError::NotFound) => {}
                Err(error) => return Err(error),
            }
            self.sync_folder()?;
        }
        ledger.endings.remove(id);
        ledger.claims.remove(id);
        ledger.late.remove(id);
        Ok(())
    }

    fn sync(&self, path: &Path) -> Result<(), WorldError> {
        if self.documents.durability.fsync {
            match self.world.sync_file(path) {
                Ok(()) => {}
                Err(WorldError::Unsupported) => {
                    self.documents.note_degraded(&WorldError::Unsupported)
                }
                Err(error) => return Err(error),
            }
            self.sync_folder()?;
        }
        Ok(())
    }

    fn sync_folder(&self) -> Result<(), WorldError> {
        match self.documents.durability.fsync.then(|| self.world.sync_folder(&self.folder())) {
            Some(Err(WorldError::Unsupported)) | Some(Ok(())) | None => Ok(()),
            Some(Err(error)) => Err(error),
        }
    }

    /// Ends a signal: from here on it is over, whatever happens to this process.
    fn end(
        &self,
        ledger: &mut Ledger,
        found: &StoredSignal,
        end: End,
        details: EndDetails<'_>,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let entry = SignalEnd {
            time: now,
            signal: Some(found.name.clone()),
            id: Some(found.id.clone()),
            outcome: end.as_str().to_owned(),
            created: Some(found.signal.created),
            sender: Some(found.sender.clone()),
            request: Some(found.request.clone()),
            fields: Some(found.fields.clone()),
            file: Some(found.file.clone()),
            by: given(details.by),
            decision: given(details.decision),
            aside: None,
            reason: given(details.reason),
            answer: given(details.answer),
        };
        let entry = entry.to_json();
        ledger.endings.insert(found.id.clone(), entry.clone());
        let kind = self.kinds.kind(&found.name);
        if end == End::Consumed && kind.is_some_and(|it| it.ends_drift) {
            ledger.drifts_from = Some(now);
        }
        let asked = kind.is_some_and(|it| it.awaits_human(self.kinds));
        // While an approval is pending, the approval itself reports the answer.
        if asked && !matches!(end, End::Consumed | End::Approved) {
            ledger.answered(entry.clone());
        }
        if let Err(error) = self.save(ledger) {
            ledger.endings.remove(&found.id);
            return Err(error);
        }
        self.share_end(found, details.by, now);
        // If this fails, the next process completes it.
        if self.finish(ledger, &found.id, &entry).is_ok() {
            let _unsaved = self.save(ledger);
        }
        Ok(())
    }
}
