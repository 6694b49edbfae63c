//! What humans are asked: one markdown document each under `escalations/`, and `index.json` beside
//! them, which knows what is open. Documents are written before they are listed: a crash leaves one
//! that is found again, never a task that waits without a document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::decision_log;
use super::document::{DocumentError, Documents};
use super::escalation_record::EscalationRecord;
use super::file::Durability;
use super::shared::SharedStore;
use super::shared::action::{EscalationChange, SharedAction, TEXT};
use super::shared::settings::SharedSubject;
use policyd_base::limits::{ESCALATIONS_CLOSED_MAX, ESCALATIONS_FILE_BYTES_MAX};
use policyd_evaluation::dead_letter::fingerprint;
use policyd_record::notice::{Notice, NoticeKind};
use policyd_state::escalation::{self, Escalation, EscalationEffect, EscalationEvent, Resolution};
use policyd_state::stored::fields;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

pub use super::escalation_record::{escalation_of, record_of};

/// Paths below the state directory.
const FOLDER: &str = "escalations";
const ARCHIVE: &str = "escalations/archive";
const INDEX: &str = "escalations/index.json";
const LOCK: &str = "escalations/.index.lock";
const FOLDERS: [&str; 1] = [FOLDER];
/// Begins the decision at the end of a document.
const DECISION: &str = "\n### Decision\n";

/// The escalations under one root.
#[derive(Clone)]
pub struct EscalationStore<'a> {
    documents: Documents<'a>,
    /// Id of the answer of a human that the changes belong to.
    answer: Option<String>,
}

/// `escalations/index.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct IndexFile {
    /// Escalations, oldest first.
    #[schemars(with = "Vec<EscalationRecord>")]
    escalations: Vec<Value>,
}

/// Parts of the file name of a document.
#[derive(Debug, Clone, Copy)]
pub enum EscalationSubject<'a> {
    /// `{timestamp}-{task_id}.md`, as loki-mode names it.
    Task(&'a str),
    /// `handoff-{timestamp}-{process}-{number}-{gate}.md`, as loki-mode names what its gates ask.
    Gate(&'a str),
}

impl<'a> EscalationStore<'a> {
    /// Returns the store of a state directory.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        root: &Path,
        durability: Durability,
        lock_wait: Duration,
    ) -> Self {
        Self {
            documents: Documents::new(
                world,
                root,
                durability,
                lock_wait,
                ESCALATIONS_FILE_BYTES_MAX,
            ),
            answer: None,
        }
    }

    /// Returns the store for changes that belong to an answer of a human.
    #[must_use]
    pub fn in_answer(self, answer: &str) -> Self {
        Self { answer: Some(answer.to_owned()), ..self }
    }

    /// Why a change may not survive a loss of power; told once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.documents.degraded()
    }

    /// The document of an escalation.
    #[must_use]
    pub fn path(&self, id: &str) -> PathBuf {
        self.documents.path(&name(id))
    }

    /// Returns the text of a document; empty if it cannot be read.
    #[must_use]
    pub fn text(&self, id: &str) -> String {
        let bytes = self.documents.world.read(&self.path(id), ESCALATIONS_FILE_BYTES_MAX);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    /// Returns the question of a document, without the decision at its end. This part never changes.
    #[must_use]
    pub fn question(&self, id: &str) -> String {
        let mut text = self.text(id);
        if let Some(end) = text.find(DECISION) {
            text.truncate(end);
        }
        text
    }

    /// Returns every escalation, oldest first. An unlisted document is open: a user wrote it, or the power
    /// failed after it was written.
    ///
    /// # Errors
    /// The index cannot be read. That does not make its documents unlisted.
    pub fn all(&self) -> Result<Vec<Escalation>, DocumentError> {
        let fields = self.documents.fields(INDEX)?.unwrap_or_default();
        Ok(self.with_unlisted(read(&fields)))
    }

    /// Returns why some escalations are unknown.
    #[must_use]
    pub fn problem(&self) -> Option<DocumentError> {
        self.documents.problem(INDEX)
    }

    fn with_unlisted(&self, mut known: Vec<Escalation>) -> Vec<Escalation> {
        let names = self.documents.world.list(&self.documents.path(FOLDER)).unwrap_or_default();
        let listed: BTreeSet<String> = known.iter().map(|it| it.id.clone()).collect();
        for id in names.iter().filter_map(|it| it.strip_suffix(".md")) {
            if !id.starts_with('.') && !listed.contains(id) {
                let created = self.documents.world.stat(&self.path(id)).map(|it| it.modified);
                known.push(Escalation {
                    id: id.to_owned(),
                    title: id.to_owned(),
                    severity: "high".to_owned(),
                    created: created.unwrap_or_default(),
                    ..Escalation::default()
                });
            }
        }
        known.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        known
    }

    /// Opens an escalation: `make` gets the id that its document will have. Where the same is
    /// asked already, that one stands.
    ///
    /// # Errors
    /// The lock was not free, or something was not saved; nothing is listed then.
    pub fn open(
        &self,
        named: EscalationSubject<'_>,
        now: Timestamp,
        make: impl FnOnce(&str) -> (Escalation, String),
    ) -> Result<Escalation, WorldError> {
        let _held = self.lock()?;
        let (mut known, fields) = self.to_change()?;
        let id = self.free_id(named, known.len(), now);
        let (new, text) = make(&id);
        let same = |it: &&Escalation| {
            it.closed.is_none()
                && it.trigger == new.trigger
                && it.task_id == new.task_id
                && it.title == new.title
                && fingerprint(&it.reason) == fingerprint(&new.reason)
        };
        if let Some(known) = known.iter().find(same) {
            return Ok(known.clone());
        }
        let (record, text) = (record_of(&new, None), text);
        self.share(&new.id, EscalationChange::Opened { record, text: text.clone() }, now)?;
        self.documents.save(&name(&new.id), &text)?;
        known.push(new.clone());
        self.archive(&mut known);
        self.write(&known, &fields)?;
        let Documents { world, root, .. } = &self.documents;
        let notice = Notice::of_escalation(&new);
        // The question is asked even if the log cannot be written.
        let _unlogged = decision_log::notify(*world, root, NoticeKind::Escalation, notice);
        Ok(new)
    }

    /// Moves the documents of what was answered longest ago out of the way, beyond a number of them.
    fn archive(&self, known: &mut Vec<Escalation>) {
        let closed = known.iter().filter(|it| it.closed.is_some()).count();
        let mut over = closed.saturating_sub(ESCALATIONS_CLOSED_MAX);
        let archive = self.documents.path(ARCHIVE);
        if over == 0 || self.documents.world.create_folder(&archive).is_err() {
            return;
        }
        known.retain(|it| {
            if over == 0 || it.closed.is_none() {
                return true;
            }
            over = over.saturating_sub(1);
            let moved = archive.join(format!("{}.md", it.id));
            // One that cannot be moved stays listed: unlisted, it would be open again.
            self.documents.world.rename(&self.path(&it.id), &moved).is_err()
        });
    }

    /// One step of an escalation.
    ///
    /// # Errors
    /// `Missing` if no escalation has this id; the lock was not free, or the index was not saved.
    pub fn step(
        &self,
        id: &str,
        event: EscalationEvent,
        now: Timestamp,
    ) -> Result<(Escalation, EscalationEffect), WorldError> {
        let _held = self.lock()?;
        let (known, fields) = self.to_change()?;
        let mut known = self.with_unlisted(known);
        let at = known.iter().position(|it| it.id == id).ok_or(WorldError::NotFound)?;
        let found = known.get_mut(at).ok_or(WorldError::NotFound)?;
        let (next, answer) = escalation::step(found, event.clone(), now);
        if next != *found {
            match event {
                EscalationEvent::Told => self.share(id, EscalationChange::Notified, now)?,
                EscalationEvent::Closed { approved, decision, by } => {
                    self.share(id, EscalationChange::Answered { approved, decision, by }, now)?;
                }
                EscalationEvent::Looked => {}
            }
            *found = next.clone();
            self.write(&known, &fields)?;
        }
        self.complete(&next);
        Ok((next, answer))
    }

    /// Writes the decision at the end of the document, so that a human who opens it sees the answer. The index is the
    /// record: a document that cannot be written does not change the answer, and the next answer to it tries again.
    fn complete(&self, it: &Escalation) {
        let Some(closed) = &it.closed else { return };
        let text = self.text(&it.id);
        if text.is_empty() || text.contains(DECISION) {
            return;
        }
        let verdict = if closed.approved { "Approved" } else { "Rejected" };
        let by = if closed.by.is_empty() { "a human" } else { &closed.by };
        let reason = if closed.decision.is_empty() { "" } else { ": " };
        let text = format!(
            "{text}{DECISION}{verdict} by {by} at {}{reason}{}\n",
            closed.at, closed.decision
        );
        let _unwritten = self.documents.save(&name(&it.id), &text);
    }

    /// Saves a change for the server, before the local files change.
    fn share(&self, id: &str, change: EscalationChange, now: Timestamp) -> Result<(), WorldError> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let action = SharedAction::Escalation { id: id.to_owned(), change };
        shared.push_in_answer(self.answer.as_deref(), action, now)
    }

    /// The shared store, if it has escalations.
    fn shared(&self) -> Option<SharedStore<'a>> {
        let documents = &self.documents;
        // An invalid configuration shares nothing. The next synchronization reports it.
        let found = SharedStore::find(documents.world, &documents.root, &documents.durability);
        let shared = found.ok().flatten()?;
        shared.settings().shares(SharedSubject::Escalations).then_some(shared)
    }

    /// Adds or replaces escalations by those of the shared store. `current` returns them under the lock.
    ///
    /// `is_restored`: the server can have lost changes. The answers among them are final, and are sent again. Returns what a human
    /// should know: the server has another answer than this host.
    ///
    /// # Errors
    /// The lock was not free, or something was not saved.
    pub fn adopt(
        &self,
        current: impl FnOnce() -> Vec<(String, Option<Value>)>,
        is_restored: bool,
    ) -> Result<Vec<String>, WorldError> {
        let mut problems = Vec::new();
        let _held = self.lock()?;
        let (mut known, fields) = self.to_change()?;
        for (id, document) in current() {
            let Some(document) = document else { continue };
            let Some(escalation) = escalation_of(&document).filter(|it| it.id == id) else {
                continue;
            };
            if plain(&id) != id || id.starts_with('.') {
                continue; // The id becomes a file name.
            }
            let text = document.get(TEXT).and_then(Value::as_str).unwrap_or_default();
            if self.documents.world.stat(&self.path(&id)).is_err() {
                self.documents.save(&name(&id), text)?;
            }
            let before = known.iter().find(|it| it.id == id).and_then(|it| it.closed.as_ref());
            if let (Some(before), Some(closed)) = (before, &escalation.closed)
                && before.approved != closed.approved
            {
                let said = |it: &Resolution| if it.approved { "yes" } else { "no" };
                problems.push(format!(
                    "escalation `{id}`: {} answered {} before, and the server has the answer {} of {}, which counts now",
                    before.by,
                    said(before),
                    said(closed),
                    closed.by
                ));
                self.documents.save(&name(&id), &self.question(&id))?;
            }
            if before.is_some() && escalation.closed.is_none() && !is_restored {
                // The server refused the answer of this host, so the document is a question again.
                self.documents.save(&name(&id), &self.question(&id))?;
            }
            self.complete(&escalation);
            match known.iter_mut().find(|it| it.id == id) {
                Some(Escalation { closed: Some(closed), .. })
                    if is_restored && escalation.closed.is_none() =>
                {
                    let Resolution { at, approved, decision, by } = closed.clone();
                    let change = EscalationChange::Answered { approved, decision, by };
                    if let Some(shared) = self.shared() {
                        shared.push_again(SharedAction::Escalation { id, change }, at)?;
                    }
                }
                Some(it) => *it = escalation,
                None => known.push(escalation),
            }
        }
        known.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        self.write(&known, &fields)?;
        Ok(problems)
    }

    fn lock(&self) -> Result<Box<dyn policyd_world::HeldLock>, WorldError> {
        self.documents.lock(LOCK, &FOLDERS)
    }

    fn to_change(&self) -> Result<(Vec<Escalation>, Map<String, Value>), WorldError> {
        let fields = self.documents.read_to_change(INDEX)?.unwrap_or_default();
        Ok((read(&fields), fields))
    }

    fn write(&self, all: &[Escalation], known: &Map<String, Value>) -> Result<(), WorldError> {
        let of = |id: &str| {
            items(known).iter().find(|it| it.get("id").and_then(Value::as_str) == Some(id))
        };
        let records: Vec<Value> = all.iter().map(|it| record_of(it, of(&it.id))).collect();
        let mut whole = known.clone();
        whole.extend(fields(&IndexFile { escalations: records }));
        let text = format!("{:#}\n", Value::Object(whole));
        self.documents.save(INDEX, &text)
    }

    /// A name that no document has.
    fn free_id(&self, named: EscalationSubject<'_>, known: usize, now: Timestamp) -> String {
        let mut number = known.saturating_add(1);
        let mut id = document_id(named, now, self.documents.world.process_id(), number);
        while self.documents.world.stat(&self.path(&id)).is_ok() {
            number = number.saturating_add(1);
            let next = document_id(named, now, self.documents.world.process_id(), number);
            id = if matches!(named, EscalationSubject::Task(_)) {
                format!("{next}-{number}")
            } else {
                next
            };
        }
        id
    }
}

/// The id of a document, which is its name without `.md`.
#[must_use]
pub fn document_id(
    named: EscalationSubject<'_>,
    now: Timestamp,
    process: u32,
    number: usize,
) -> String {
    let moment = DateTime::from_timestamp_millis(now.millis()).unwrap_or_default();
    let moment = moment.format("%Y%m%dT%H%M%S%3fZ");
    match named {
        EscalationSubject::Task(task) => format!("{moment}-{}", plain(task)),
        EscalationSubject::Gate(gate) => {
            format!("handoff-{moment}-{process}-{number}-{}", plain(gate))
        }
    }
}

/// The file of a document.
fn name(id: &str) -> String {
    format!("{FOLDER}/{id}.md")
}

/// A name that is one part of a path on every system.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "task".to_owned() } else { name }
}

/// Longest part of a document's name that a task gives it.
const NAME_CHARS_MAX: usize = 100;

fn items(fields: &Map<String, Value>) -> &[Value] {
    let all = fields.get("escalations").and_then(Value::as_array);
    all.map(Vec::as_slice).unwrap_or_default()
}

fn read(fields: &Map<String, Value>) -> Vec<Escalation> {
    items(fields).iter().filter_map(escalation_of).collect()
}
