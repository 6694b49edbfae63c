//! Circuit breakers of a project, shared by all its processes: `state/circuit-breakers.json` in the
//! seed's format, with a few keys more. Looked at without a lock, changed under one. Version 1 of the format is written
//! without a version, because programs that share the file take each key for a breaker.
//!
//! Lives here: the file and its lock. `record` says how a breaker is written.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::decision_log;
use super::document::{self, DamageAction, DocumentError, StoredDocument};
use super::file::Durability;
use super::layout;
use super::shared::SharedStore;
use super::shared::action::SharedAction;
use super::shared::settings::SharedStoreSettings;
use super::user_choices::UserChoiceStore;
use policyd_base::limits::{BREAKER_FILE_BYTES_MAX, HOOK_LOCK_WAIT};
use policyd_record::notice::Notice;
use policyd_state::breaker::{
    self, Breaker, BreakerEvent, BreakerMode, BreakerPhase, BreakerResponse, BreakerSettings,
};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;
use record::{FORCED, breaker_of, known_breaker, whole_seconds};

pub mod record;

/// Path below the state directory.
const FILE: &str = "state/circuit-breakers.json";
const LOCK: &str = "state/.circuit-breakers.lock";
/// The seed's log of recoveries.
const RECOVERY_LOG: &str = "logs/circuit-recovery.log";

/// The breakers under one root.
#[derive(Clone)]
pub struct BreakerStore<'a> {
    world: &'a dyn World,
    root: PathBuf,
    durability: Durability,
    lock_wait: Duration,
    /// Why the last change might not survive a loss of power. Clones share it.
    degraded: Rc<RefCell<Option<String>>>,
    /// Id of the answer of a human that the changes belong to.
    answer: Option<String>,
}

impl<'a> BreakerStore<'a> {
    /// Returns the store of a state directory.
    #[must_use]
    pub fn new(world: &'a dyn World, root: &Path, durability: Durability) -> Self {
        let (root, degraded) = (root.to_owned(), Rc::default());
        Self { world, root, durability, lock_wait: HOOK_LOCK_WAIT, degraded, answer: None }
    }

    /// The same for a caller that has that long to wait for the lock.
    #[must_use]
    pub fn patient(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }

    /// Returns the store for changes that belong to an answer of a human.
    #[must_use]
    pub fn in_answer(self, answer: &str) -> Self {
        Self { answer: Some(answer.to_owned()), ..self }
    }

    /// Why a change may not survive a loss of power. Returned once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.degraded.take()
    }

    /// Returns the state directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns how the file is written.
    #[must_use]
    pub const fn durability(&self) -> &Durability {
        &self.durability
    }

    /// A breaker as it stands, without a lock.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn peek(&self, key: &str) -> Result<Breaker, DocumentError> {
        Ok(self.record_at(key)?.as_ref().map(breaker_of).unwrap_or_default())
    }

    /// Whether the file has a record of this name.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn knows(&self, key: &str) -> Result<bool, DocumentError> {
        Ok(self.record_at(key)?.is_some())
    }

    /// The record of one breaker; of the others nothing is kept in memory. A damaged file says nothing.
    fn record_at(&self, key: &str) -> Result<Option<Value>, DocumentError> {
        let document = self.document();
        let Some(bytes) = document.bytes()? else { return Ok(None) };
        let Some((record, version)) = record::one(&bytes, key) else { return Ok(None) };
        document::check_version(document.path(), version)?;
        let Some(mut record) = record else { return Ok(None) };
        let is_forced = record.get(FORCED).is_some_and(|it| !it.is_null());
        if is_forced
            && !self.choices().load().unwrap_or_default().forced_breakers.contains(key)
            && let Some(fields) = record.as_object_mut()
        {
            fields.shift_remove(FORCED);
        }
        Ok(Some(record))
    }

    /// Whether there is a file of breakers: without one nothing ever failed.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.world.stat(&self.root.join(FILE)).is_ok()
    }

    /// Returns the records by key, as they are stored.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn records_for_copy(&self) -> Result<Vec<(String, Value)>, DocumentError> {
        Ok(self.records()?.into_iter().collect())
    }

    /// All breakers by key.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn all(&self) -> Result<Vec<(String, Breaker)>, DocumentError> {
        let records = self.records()?;
        let known = records.iter().filter_map(|(key, it)| Some((key.clone(), known_breaker(it)?)));
        Ok(known.collect())
    }

    /// Whether a call may be made now, and the breaker that says so. The lock is taken only where
    /// the answer moves the breaker; one that cannot be moved admits.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn request(
        &self,
        key: &str,
        settings: &BreakerSettings,
        now: Timestamp,
    ) -> Result<(Breaker, BreakerResponse), DocumentError> {
        let known = self.peek(key)?;
        let (next, answer) = breaker::step(&known, BreakerEvent::Request, settings, now);
        if next == known {
            return Ok((known, answer));
        }
        let moved = self.step(key, BreakerEvent::Request, settings, now);
        Ok(moved.unwrap_or((next, BreakerResponse::Permitted)))
    }

    /// Records the result of a call, or a change by the user. Nothing is written if nothing changes.
    ///
    /// # Errors
    /// The lock was not free, or the file could not be written.
    pub fn record(
        &self,
        key: &str,
        event: BreakerEvent<'_>,
        settings: &BreakerSettings,
        now: Timestamp,
    ) -> Result<Breaker, WorldError> {
        let known = self.peek(key)?;
        let choose = |change: fn(&mut BTreeSet<String>, &str) -> bool| {
            let changed = self.choices().change(|it| change(&mut it.forced_breakers, key));
            changed.map_err(WorldError::from)
        };
        if matches!(event, BreakerEvent::Trip { .. }) {
            choose(|forced, key| forced.insert(key.to_owned()))?;
        }
        if breaker::step(&known, event, settings, now).0 == known {
            return Ok(known);
        }
        let (breaker, _) = self.step(key, event, settings, now)?;
        if known.forced.is_some() && breaker.forced.is_none() {
            choose(|forced, key| forced.remove(key))?;
        }
        Ok(breaker)
    }

    /// One step on fresh state, under the lock.
    fn step(
        &self,
        key: &str,
        event: BreakerEvent<'_>,
        settings: &BreakerSettings,
        now: Timestamp,
    ) -> Result<(Breaker, BreakerResponse), WorldError> {
        let _held = self.lock()?;
        let mut records = self.records_to_change()?;
        let known = records.get(key).map(breaker_of).unwrap_or_default();
        let (next, record, answer) = record::step(records.get(key), event, settings, now);
        if let Some(record) = record {
            let shared = self.share(key, event, settings, now);
            records.insert(key.to_owned(), record);
            self.write(records)?;
            // What could not be shared counts on this host.
            shared?;
        }
        if settings.mode == BreakerMode::Enforce && known.phase != next.phase {
            let (kind, notice) = Notice::of_breaker(key, known.phase, &next);
            // The state changed even if the log cannot be written.
            let _unlogged = decision_log::notify(self.world, &self.root, kind, notice);
        }
        if known.phase == BreakerPhase::HalfOpen && next.recovered_at.is_some() {
            let line = format!("{} Circuit recovered: {key}\n", whole_seconds(now));
            // The recovery counts even if the log cannot be written.
            let _refused = self.world.append(&self.root.join(RECOVERY_LOG), line.as_bytes());
        }
        Ok((next, answer))
    }

    /// Saves an event of a shared breaker for the server, before the local change.
    fn share(
        &self,
        key: &str,
        event: BreakerEvent<'_>,
        settings: &BreakerSettings,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        if !SharedStoreSettings::shares_breaker(key) {
            return Ok(());
        }
        // An invalid configuration shares nothing. The next synchronization reports it.
        let Ok(Some(shared)) = SharedStore::find(self.world, &self.root, &self.durability) else {
            return Ok(());
        };
        let (key, settings) = (key.to_owned(), Box::new(settings.clone()));
        let action = SharedAction::Breaker { key, event: event.into(), settings };
        shared.push_in_answer(self.answer.as_deref(), action, now)
    }

    /// Replaces records by those of the shared store. `current` returns them under the lock; `None` removes one.
    /// `ahead_ms` is subtracted from their times, which are those of the server.
    ///
    /// # Errors
    /// The lock was not free, or the file could not be written.
    pub fn adopt(
        &self,
        current: impl FnOnce() -> Vec<(String, Option<Value>)>,
        ahead_ms: i64,
    ) -> Result<(), WorldError> {
        let _held = self.lock()?;
        let mut records = self.records_to_change()?;
        let before = records.clone();
        let mut forced = BTreeMap::new();
        for (key, record) in current() {
            let record = record.map(|it| record::moved(&it, ahead_ms));
            forced.insert(key.clone(), record.as_ref().is_some_and(|it| it.get(FORCED).is_some()));
            match record {
                Some(record) => drop(records.insert(key, record)),
                None => drop(records.shift_remove(&key)),
            }
        }
        let known = self.choices().load().unwrap_or_default().forced_breakers;
        if forced.iter().any(|(key, is_forced)| *is_forced != known.contains(key)) {
            // A human of another host forced the breaker open, or ended that.
            let changed = self.choices().change(|it| {
                for (key, is_forced) in forced {
                    match is_forced {
                        true => it.forced_breakers.insert(key),
                        false => it.forced_breakers.remove(&key),
                    };
                }
            });
            changed?;
        }
        if records != before { self.write(records) } else { Ok(()) }
    }

    fn lock(&self) -> Result<Box<dyn policyd_world::HeldLock>, WorldError> {
        let path = self.root.join(LOCK);
        match self.world.lock(&path, self.lock_wait) {
            Err(WorldError::NotFound) => {
                for folder in ["state", "logs"] {
                    self.world.create_folder(&self.root.join(folder))?;
                }
                layout::hide(self.world, &self.root);
                self.world.lock(&path, self.lock_wait)
            }
            answer => answer,
        }
    }

    /// Returns the records by key. A damaged file has none.
    fn records(&self) -> Result<Map<String, Value>, DocumentError> {
        let mut records = match self.document().load() {
            Err(DocumentError::Damaged { .. }) => Map::new(),
            loaded => loaded?.unwrap_or_default(),
        };
        self.drop_foreign_force(&mut records);
        Ok(records)
    }

    fn document(&self) -> StoredDocument<'a> {
        let (path, if_damaged) = (self.root.join(FILE), DamageAction::Quarantine);
        StoredDocument::new(self.world, path, BREAKER_FILE_BYTES_MAX, if_damaged)
            .saved_as(&self.durability)
    }

    /// Removes from records that the user forced a breaker open, unless the user did on this machine.
    fn drop_foreign_force(&self, records: &mut Map<String, Value>) {
        if records.values().all(|it| it.get(FORCED).is_none_or(Value::is_null)) {
            return;
        }
        let chosen = self.choices().load().unwrap_or_default().forced_breakers;
        for (_, record) in records.iter_mut().filter(|(key, _)| !chosen.contains(*key)) {
            if let Some(fields) = record.as_object_mut() {
                fields.shift_remove(FORCED);
            }
        }
    }

    fn choices(&self) -> UserChoiceStore<'a> {
        UserChoiceStore::new(self.world, &self.root)
    }

    /// Returns the records to change, under the lock. A damaged file is quarantined; a file that cannot be
    /// read now is not changed.
    fn records_to_change(&self) -> Result<Map<String, Value>, DocumentError> {
        let mut records = self.document().open()?.value.unwrap_or_default();
        self.drop_foreign_force(&mut records);
        Ok(records)
    }

    /// Returns the warning about a file that cannot be used. `None` if the file is valid.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let error = self.document().load::<Map<String, Value>>().err()?;
        let DocumentError::Damaged { path, .. } = &error else {
            return Some(self.unreadable(&error));
        };
        Some(format!(
            "{} is damaged, so every breaker counts as closed; the next change moves it to \
             `{FILE}.corrupt-…`",
            path.display()
        ))
    }

    /// Describes that the file cannot be read.
    #[must_use]
    pub fn unreadable(&self, error: &DocumentError) -> String {
        format!("the breakers are unknown, so no call is permitted: {}", error.note())
    }

    /// Returns whether the file is damaged; the next change quarantines it.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        let loaded = self.document().load::<Map<String, Value>>();
        matches!(loaded, Err(DocumentError::Damaged { .. }))
    }

    fn write(&self, mut records: Map<String, Value>) -> Result<(), WorldError> {
        let mut text = format!("{:#}\n", Value::Object(records.clone()));
        if text.len() > BREAKER_FILE_BYTES_MAX {
            // A closed breaker without failures is as good as none.
            records.retain(|_, it| known_breaker(it).is_none_or(|it| !it.is_idle()));
            text = format!("{:#}\n", Value::Object(records));
        }
        if let Some(why) = self.document().create(&text)? {
            self.degraded.replace(Some(why));
        }
        Ok(())
    }
}
