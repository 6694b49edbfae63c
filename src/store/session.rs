//! The state of a session: looked at without a lock, changed under one. Lives here: the order
//! lock, load, repair, commit, log. May not live here: what the state means.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::diagnostic::{Code, DiagnosticContext};
use super::file::{self, Durability, SaveOutcome};
use super::layout::{self, LOG_FILE, STATE_FILE};
pub use super::layout::{Layout, SessionPaths};
use super::prune::{Retention, prune};
use super::recovery::{Damage, RecoveredState, find};
pub use super::recovery::{RecoverySource, StateOrigin};
use super::{log, session_file};
use policyd_base::id::SessionId;
use policyd_base::limits::{QUARANTINE_FILES_MAX, STATE_FILE_BYTES_MAX};
use policyd_state::SessionState;
use policyd_world::{FileKind, HeldLock, World, WorldError};

/// Result of looking up a session by the beginning of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionLookup {
    /// The one that it is, or the only one that begins so.
    One(SessionId),
    /// Several begin so.
    Several(Vec<String>),
    /// None begins so; the id that it may be as a whole.
    Unknown(Option<SessionId>),
}

/// The sessions under one root.
#[derive(Clone)]
pub struct SessionStore<'a> {
    /// Where it all happens.
    pub world: &'a dyn World,
    /// `.policyd`, or the project for the seed's layout.
    pub root: PathBuf,
    /// Where sessions live under it.
    pub layout: Layout,
    /// How much is done for a state to survive.
    pub durability: Durability,
    /// How long sessions are kept; `None`: for ever.
    pub retention: Option<Retention>,
    /// Folder of the diagnostic logs, one folder per session in it; `None`: beside the state
    /// (amplihack: `DIAGNOSTIC_LOG_DIR`).
    pub diagnostics: Option<PathBuf>,
    /// Whether loads are logged that are followed by no save (amplihack: `AMPLIHACK_PS_DEBUG=1`).
    pub debug: bool,
}

/// Why a session cannot be locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockError {
    /// Another process held it all the time: which file, and who.
    Busy(String),
    /// The folder or the lock file cannot be made.
    Refused(WorldError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(by) => f.write_str(by),
            Self::Refused(error) => write!(f, "the session folder cannot be used: {error}"),
        }
    }
}

impl std::error::Error for LockError {}

/// A state as found.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSession {
    /// The state; its id is always the one asked for.
    pub state: SessionState,
    /// Where it comes from.
    pub origin: StateOrigin,
    /// The id in the file, where it is another one.
    pub foreign_id: Option<String>,
}

impl<'a> SessionStore<'a> {
    /// The sessions under `root` with the defaults of the seed.
    #[must_use]
    pub fn new(world: &'a dyn World, root: impl Into<PathBuf>, layout: Layout) -> Self {
        Self {
            world,
            root: root.into(),
            layout,
            durability: Durability::default(),
            retention: Some(Retention::default()),
            diagnostics: None,
            debug: false,
        }
    }

    /// Sessions that have a folder, by id.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        let folder = self.paths(&SessionId::sanitize("any")).folder;
        let names = self.world.list(folder.parent().unwrap_or(&self.root)).unwrap_or_default();
        names.iter().filter_map(|it| SessionId::parse(it)).collect()
    }

    /// The session whose id is, or begins like, a text.
    #[must_use]
    pub fn named(&self, text: &str) -> SessionLookup {
        let whole = SessionId::parse(text);
        let mut known = self.sessions();
        if let Some(id) = whole.as_ref().filter(|it| known.contains(it)) {
            return SessionLookup::One(id.clone());
        }
        known.retain(|it| !text.is_empty() && it.as_str().starts_with(text));
        match known.as_slice() {
            [] => SessionLookup::Unknown(whole),
            [only] => SessionLookup::One(only.clone()),
            several => {
                SessionLookup::Several(several.iter().map(|it| it.as_str().to_owned()).collect())
            }
        }
    }

    /// The files of a session.
    #[must_use]
    pub fn paths(&self, session: &SessionId) -> SessionPaths {
        let paths = self.layout.paths(&self.root, session);
        match &self.diagnostics {
            Some(folder) => {
                SessionPaths { log: folder.join(session.as_str()).join(LOG_FILE), ..paths }
            }
            None => paths,
        }
    }

    /// The state of a session, without a lock and without any write; a corrupt file is left as it
    /// is. Only good for planning: decide on what `LockedSession::load` gives.
    #[must_use]
    pub fn peek(&self, session: &SessionId) -> LoadedSession {
        loaded(&find(self.world, &self.paths(session), session))
    }

    /// Locks a session, waiting at most `wait_max`; creates its directory if it does not exist, and then
    /// deletes old sessions.
    ///
    /// # Errors
    /// `Busy`, or the error of the operating system.
    pub fn lock(
        &self,
        session: &SessionId,
        wait_max: Duration,
    ) -> Result<LockedSession<'_>, LockError> {
        let paths = self.paths(session);
        let is_new = match self.world.stat(&paths.folder) {
            Ok(stat) if stat.kind == FileKind::Folder => false,
            Ok(_) => return Err(LockError::Refused(WorldError::AlreadyExists)),
            Err(_) => true,
        };
        if is_new {
            self.world.create_folder(&paths.folder).map_err(LockError::Refused)?;
            if self.layout.owns_root() {
                layout::hide(self.world, &self.root);
            }
            if let (Some(_), Some(folder)) = (&self.diagnostics, paths.log.parent()) {
                // Without it the log is not written, which is not an error.
                self.world.create_folder(folder).ok();
            }
        }
        let mut answer = self.world.lock(&paths.lock, wait_max);
        if matches!(answer, Err(WorldError::NotFound)) {
            // Another process deleted the folder as an old session in between.
            self.world.create_folder(&paths.folder).map_err(LockError::Refused)?;
            answer = self.world.lock(&paths.lock, wait_max);
        }
        let held = match answer {
            Err(WorldError::Locked(by)) => return Err(LockError::Busy(by)),
            answer => answer.map_err(LockError::Refused)?,
        };
        if let (true, Some(retention), Some(folder)) =
            (is_new, self.retention, paths.folder.parent())
        {
            prune(self.world, folder, retention, session);
        }
        let session = session.clone();
        Ok(LockedSession { store: self, session, paths, found: None, unlogged: None, _held: held })
    }
}

fn loaded(found: &RecoveredState) -> LoadedSession {
    LoadedSession {
        state: found.state.clone(),
        origin: found.origin,
        foreign_id: found.foreign_id.clone(),
    }
}

/// A locked session; dropping it releases the lock. Only a locked session can be saved.
pub struct LockedSession<'a> {
    store: &'a SessionStore<'a>,
    session: SessionId,
    paths: SessionPaths,
    found: Option<RecoveredState>,
    /// The entry of a load, which is logged with the save that follows it.
    unlogged: Option<Value>,
    _held: Box<dyn HeldLock>,
}

impl LockedSession<'_> {
    /// The files of the session.
    #[must_use]
    pub fn paths(&self) -> &SessionPaths {
        &self.paths
    }

    /// Returns the state. A corrupt file is quarantined, logged, and replaced by the recovered state, so
    /// that the loop guard never starts again because of it.
    pub fn load(&mut self) -> LoadedSession {
        loaded(self.found())
    }

    /// Makes `state` the state of the session, with the next revision and our id. An unchanged
    /// state is not written. The save is logged; whether that succeeds does not matter.
    pub fn commit(&mut self, state: &SessionState) -> SaveOutcome {
        let found = self.found().clone();
        if let StateOrigin::Newer { version } = found.origin {
            let ours = session_file::FORMAT_VERSION;
            return self
                .refuse(format!("the file has version {version}, this program knows {ours}"));
        }
        let mut next = state.clone();
        next.session_id = self.session.clone();
        next.revision = found.state.revision;
        if next == found.state && matches!(found.origin, StateOrigin::File | StateOrigin::Fresh) {
            return SaveOutcome::Durable { retries: 0 };
        }
        next.revision = found.state.revision.max(state.revision).saturating_add(1);
        let bytes = session_file::write(&next, &found.raw);
        if bytes.len() > STATE_FILE_BYTES_MAX {
            return self.refuse(format!("the state has {} bytes", bytes.len()));
        }
        let in_danger = found.damage.as_ref().is_some_and(|it| it.backed_up);
        if in_danger && !self.put_back(&found, None) {
            return self.refuse("the corrupt file cannot be replaced".to_owned());
        }
        let names = match found.origin {
            // A state that cannot be read might never have existed.
            StateOrigin::Fresh | StateOrigin::Recovered { .. } => self.sync_folders(),
            StateOrigin::File | StateOrigin::Newer { .. } => Ok(()),
        };
        let saved = self.save(found.state.main.consecutive_blocks, &next, &bytes);
        if !matches!(saved, SaveOutcome::NotSaved { .. }) {
            self.found = Some(RecoveredState {
                state: next,
                origin: StateOrigin::File,
                damage: None,
                ..found
            });
        }
        match (names, saved) {
            (Err(error), SaveOutcome::Durable { retries }) => {
                SaveOutcome::Degraded { retries, why: format!("sync folder: {error}") }
            }
            (_, saved) => saved,
        }
    }

    fn refuse(&self, why: String) -> SaveOutcome {
        let saved = SaveOutcome::NotSaved { retries: 0, why, code: Code::SaveFailed };
        if let Some(found) = &self.found {
            let before = found.state.main.consecutive_blocks;
            let entries = self.scene(|scene| scene.state_save(before, &found.state, &[], &saved));
            log::append(self.store.world, &self.paths.log, &entries);
        }
        saved
    }

    /// Saves and logs one state.
    fn save(&mut self, before: u32, state: &SessionState, bytes: &[u8]) -> SaveOutcome {
        let (world, mut failures) = (self.store.world, Vec::new());
        let path = &self.paths.state;
        let saved = file::save_noting(world, path, bytes, &self.store.durability, &mut failures);
        let mut entries: Vec<Value> = self.unlogged.take().into_iter().collect();
        entries.extend(self.scene(|scene| scene.state_save(before, state, &failures, &saved)));
        log::append(world, &self.paths.log, &entries);
        saved
    }

    /// Makes the folders of a new session durable, up to the root. They may have been made by a
    /// process that was killed, so that it is not enough to do it when they are made.
    fn sync_folders(&self) -> Result<(), WorldError> {
        let root = &self.store.root;
        let above = root.parent().filter(|_| self.store.layout.owns_root());
        let inside = self.paths.folder.ancestors().skip(1).take_while(|it| it.starts_with(root));
        let synced = |folder: &Path| match self.store.world.sync_folder(folder) {
            Err(WorldError::Unsupported) => Ok(()),
            answer => answer,
        };
        if !self.store.durability.fsync {
            return Ok(());
        }
        inside.chain(above.filter(|it| !it.as_os_str().is_empty())).try_for_each(synced)
    }

    fn found(&mut self) -> &RecoveredState {
        let found = match self.found.take() {
            Some(found) => found,
            None => self.read(),
        };
        self.found.insert(found)
    }

    fn read(&mut self) -> RecoveredState {
        let mut found = find(self.store.world, &self.paths, &self.session);
        let counter = found.state.main.consecutive_blocks;
        match (found.origin, found.damage.take()) {
            (StateOrigin::Recovered { reason, from }, Some(damage)) => {
                let entries = self.scene(|scene| {
                    vec![
                        scene.state_load(counter, Some(reason)),
                        scene.validation(reason, &damage.quote),
                        scene.state_reset(counter, from.as_str()),
                    ]
                });
                log::append(self.store.world, &self.paths.log, &entries);
                if !self.repair(&found, &damage) {
                    found.damage = Some(damage);
                }
            }
            (StateOrigin::Fresh, _) => {}
            (StateOrigin::File | StateOrigin::Newer { .. } | StateOrigin::Recovered { .. }, _) => {
                let mut entry = self.scene(|scene| scene.state_load(counter, None));
                if let (Some(id), Some(entry)) = (&found.foreign_id, entry.as_object_mut()) {
                    entry.insert("foreign_session_id".to_owned(), Value::from(id.as_str()));
                }
                if self.store.debug {
                    log::append(self.store.world, &self.paths.log, &[entry]);
                } else {
                    self.unlogged = Some(entry);
                }
            }
        }
        found
    }

    /// Puts a corrupt file aside and what was recovered in its place. Where a step is refused, the
    /// next load finds the same again.
    /// False: it is not in place.
    fn repair(&self, found: &RecoveredState, damage: &Damage) -> bool {
        let aside = format!("{STATE_FILE}.corrupt-{}", self.store.world.now().millis());
        let aside = self.paths.folder.join(aside);
        let done = match &damage.bytes {
            Some(bytes) => {
                // The value counts more than the copy.
                self.store.world.write(&aside, bytes).ok();
                self.put_back(found, None)
            }
            None => self.put_back(found, Some(&aside)),
        };
        self.forget_quarantined();
        done
    }

    /// Replaces the corrupt file by the recovered state.
    fn put_back(&self, found: &RecoveredState, aside: Option<&Path>) -> bool {
        let bytes = session_file::write(&found.state, &found.raw);
        let (world, durability) = (self.store.world, &self.store.durability);
        let failure = file::replace(world, &self.paths.state, &bytes, durability, aside).err();
        let saved = match &failure {
            None => SaveOutcome::Durable { retries: 0 },
            Some(failure) => {
                let (why, code) = (failure.why.clone(), Code::SaveFailed);
                SaveOutcome::NotSaved { retries: 0, why, code }
            }
        };
        let counter = found.state.main.consecutive_blocks;
        let entries = self.scene(|scene| scene.state_save(counter, &found.state, &[], &saved));
        log::append(world, &self.paths.log, &entries);
        failure.is_none()
    }

    fn forget_quarantined(&self) {
        let world = self.store.world;
        let prefix = format!("{STATE_FILE}.corrupt-");
        let names = world.list(&self.paths.folder).unwrap_or_default();
        let quarantined = names.iter().filter(|name| name.starts_with(&prefix));
        // Names end in a time of equal length: sorted, the oldest come first.
        for name in quarantined.rev().skip(QUARANTINE_FILES_MAX) {
            world.remove(&self.paths.folder.join(name)).ok();
        }
    }

    fn scene<T>(&self, tell: impl FnOnce(&DiagnosticContext<'_>) -> T) -> T {
        tell(&DiagnosticContext {
            now: self.store.world.now(),
            session_id: self.session.as_str(),
            file_path: &self.paths.state.to_string_lossy(),
        })
    }
}

#[cfg(test)]
mod tests;
