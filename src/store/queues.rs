//! The task queues: `queue/{pending,in-progress,dead-letter,abandoned}.json` in loki-mode's format, with a few
//! more keys. Read without a lock, changed under one.
//!
//! `[]`, `{"tasks":[]}`, and the full object are valid. Foreign content is kept: items that are not tasks, keys
//! of tasks, and keys beside them. A task that moves is written to its new queue before it is removed from the
//! old one, so that a crash leaves two copies and never none. Of two copies, the one with the higher `revision`
//! counts.

mod late;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{DocumentError, Documents, StoredDocument};
use super::file::Durability;
use super::log;
use super::shared::SharedStore;
use super::shared::action::{SharedAction, TaskChange, shared_task};
use super::shared::settings::SharedSubject;
use super::task_record::{TaskRecord, id_of, record_of, task_of};
use policyd_base::limits::{QUEUE_FILE_BYTES_MAX, RESOLVED_TASKS_MAX};
use policyd_state::dead_letter::{Task, TaskClaim, TaskEffect, TaskQueue};
use policyd_state::stored::{fields, items, or_default};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

/// Paths below the state directory.
const FOLDERS: [&str; 3] = ["queue", "logs", "escalations"];
const LOCK: &str = "queue/.queue.lock";
/// Tasks that loki-mode completed. policyd only reads this file.
const COMPLETED: &str = "queue/completed.json";
/// Log entry of an action on a task: actor, action, and task.
const AUDIT_LOG: &str = "logs/dead-letter.jsonl";

/// The lists under one root.
#[derive(Clone)]
pub struct QueueStore<'a> {
    documents: Documents<'a>,
    /// The answer of a human that changes of its tasks belong to.
    answer: Option<TaskAnswer>,
}

/// An answer of a human, and the tasks that it moves.
#[derive(Debug, Clone)]
struct TaskAnswer {
    id: String,
    tasks: Vec<String>,
}

impl TaskAnswer {
    /// Returns the id of the answer for a change that belongs to it. `before`: that of the change before.
    fn of<'i>(&'i self, action: &SharedAction, before: Option<&'i str>) -> Option<&'i str> {
        match action {
            // A part is created with the change of its task.
            SharedAction::Task { change: TaskChange::Created { .. }, .. } => before,
            SharedAction::Task { id, .. } if self.tasks.contains(id) => Some(&self.id),
            SharedAction::Task { .. }
            | SharedAction::Breaker { .. }
            | SharedAction::Escalation { .. }
            | SharedAction::Approval { .. }
            | SharedAction::Run { .. }
            | SharedAction::Signal { .. }
            | SharedAction::Void(_) => None,
        }
    }
}

/// One file as it was read.
#[derive(Debug, Clone, Default)]
struct LoadedQueue {
    /// Keys beside `tasks`.
    beside: Map<String, Value>,
    /// Its items, as they were read.
    items: Vec<Value>,
    /// Whether it was there.
    exists: bool,
}

/// Totals of the dead-letter queue (loki-mode: `metadata`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metadata {
    /// When all tasks of the queue were last reviewed.
    #[serde(deserialize_with = "or_default")]
    pub last_reviewed: Option<Timestamp>,
    /// Total number of abandoned tasks.
    #[serde(deserialize_with = "or_default")]
    pub total_abandoned: u64,
    /// Total number of requeued tasks.
    #[serde(deserialize_with = "or_default")]
    pub total_recovered: u64,
}

/// Stored metadata of the dead-letter queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct MetadataRecord {
    #[serde(flatten)]
    totals: Metadata,
    /// The task with which an unfinished review continues; absent if none is unfinished.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    review_from: String,
    /// Ids of tasks that left the queues because they were done, the last one last. Tasks can depend on them.
    #[serde(default, deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    resolved: Vec<String>,
}

/// `queue/{pending,in-progress,dead-letter,abandoned}.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueFile<'a> {
    /// Tasks, and items that are not tasks.
    #[schemars(with = "Vec<TaskRecord>")]
    tasks: &'a [Cow<'a, Value>],
    /// Keys beside the tasks.
    #[serde(flatten)]
    #[schemars(with = "QueueKeys")]
    beside: &'a Map<String, Value>,
}

/// A line of `logs/dead-letter.jsonl`, as the schema describes it. The caller of [`QueueStore::audit`] makes it.
#[derive(Debug, JsonSchema)]
pub struct AuditLine {
    /// Time of the action.
    pub timestamp: Timestamp,
    /// Action: `failed`, `entered`, `retry`, `abandon`, ….
    #[schemars(length(min = 1))]
    pub what: String,
    /// Id of the task.
    #[schemars(length(min = 1))]
    pub task_id: String,
    /// Queue of the task after the action.
    pub place: Option<String>,
    /// Number of attempts that count.
    pub attempts: Option<u64>,
    /// Actor: the user, an agent, or policyd.
    pub by: Option<String>,
    /// Rule that caused the action.
    pub rule: Option<String>,
    /// Whether the task was requeued with others.
    pub redrive: Option<bool>,
    /// Escalation that was answered.
    pub escalation: Option<String>,
    /// Signal that the task waits for.
    pub signal: Option<String>,
    /// Request that was approved.
    pub request: Option<String>,
    /// The decision.
    pub decision: Option<String>,
    /// Whether the task may continue.
    pub approved: Option<bool>,
}

/// Keys beside the tasks.
#[derive(JsonSchema)]
struct QueueKeys {
    /// Totals; only in the dead-letter queue.
    #[expect(dead_code, reason = "`beside` contains it")]
    metadata: Option<MetadataRecord>,
}

/// All lists.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Every task, in the order of the files.
    pub tasks: Vec<Task>,
    /// Totals.
    pub metadata: Metadata,
    /// The dead letter that a review goes on with, which ended before the last one; empty for none.
    pub review_from: String,
    /// Ids of tasks that left the queues because they were done, the last one last.
    resolved: Vec<String>,
    /// Ids of the tasks that loki-mode completed.
    completed: BTreeSet<String>,
    files: BTreeMap<TaskQueue, LoadedQueue>,
    /// Why the tasks of damaged lists are unknown. The next change quarantines these lists.
    pub damaged: Vec<DocumentError>,
    /// Lists whose file cannot be read now, or is too large, with the reason. Their tasks are unknown.
    pub unreadable: Vec<DocumentError>,
    /// Changes in their order, for the shared store.
    changes: Vec<SharedAction>,
}

impl Lists {
    /// The task of this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|it| it.id == id)
    }

    /// Tasks of one list.
    pub fn on(&self, place: TaskQueue) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |it| it.place == place)
    }

    /// Ids of tasks that are known to be done.
    pub fn done(&self) -> impl Iterator<Item = &String> {
        self.resolved.iter().chain(&self.completed)
    }

    /// Notes that a task is done.
    fn resolve(&mut self, id: &str) {
        self.resolved.retain(|it| it != id);
        self.resolved.push(id.to_owned());
        let over = self.resolved.len().saturating_sub(RESOLVED_TASKS_MAX);
        drop(self.resolved.drain(..over));
    }

    /// Applies a change to a task. Returns the task after it, and its effects; `None` if the task does not exist.
    pub fn apply(
        &mut self,
        id: &str,
        change: TaskChange,
        now: Timestamp,
    ) -> Option<(Task, Vec<TaskEffect>)> {
        let known = self.find(id);
        let (next, effects) = change.apply(id, known, now)?;
        let is_changed = known != Some(&next) || !effects.is_empty();
        if is_changed {
            // A task whose retention ended was abandoned, not done.
            if effects.contains(&TaskEffect::Done) && change != TaskChange::Expired {
                self.resolve(id);
            }
            self.put(next.clone(), &effects);
            self.changes.push(SharedAction::Task { id: id.to_owned(), change });
            for effect in &effects {
                if let TaskEffect::Created(part) = effect {
                    let change = TaskChange::created(part);
                    self.changes.push(SharedAction::Task { id: part.id.clone(), change });
                }
            }
        }
        Some((next, effects))
    }

    /// Replaces a task by its changed version, and applies the effects of the change.
    pub fn put(&mut self, task: Task, effects: &[TaskEffect]) {
        let done = effects.contains(&TaskEffect::Done);
        let place = self.tasks.iter().position(|it| it.id == task.id);
        match place.and_then(|at| self.tasks.get_mut(at).map(|known| (at, known))) {
            Some((at, _)) if done => drop(self.tasks.remove(at)),
            Some((_, known)) => *known = task,
            None if done => {}
            None => self.tasks.push(task),
        }
        for effect in effects {
            match effect {
                TaskEffect::Recovered => {
                    let total = &mut self.metadata.total_recovered;
                    *total = total.saturating_add(1);
                }
                TaskEffect::Abandoned => {
                    let total = &mut self.metadata.total_abandoned;
                    *total = total.saturating_add(1);
                }
                TaskEffect::Created(part) => self.put((**part).clone(), &[]),
                TaskEffect::Done | TaskEffect::Claimed => {}
            }
        }
    }

    fn absorb(&mut self, place: TaskQueue, value: Option<Value>) {
        let mut file = LoadedQueue { exists: value.is_some(), ..LoadedQueue::default() };
        match value {
            Some(Value::Array(items)) => file.items = items,
            Some(Value::Object(mut beside)) => {
                if let Some(Value::Array(items)) = beside.remove("tasks") {
                    file.items = items;
                }
                file.beside = beside;
            }
            _ => {}
        }
        if place == TaskQueue::DeadLetter {
            let known = metadata_of(file.beside.get("metadata"));
            (self.metadata, self.review_from) = (known.totals, known.review_from);
            self.resolved = known.resolved;
        }
        let mut places: BTreeMap<String, usize> =
            self.tasks.iter().enumerate().map(|(at, it)| (it.id.clone(), at)).collect();
        for task in file.items.iter().filter_map(|it| task_of(it, place)) {
            match places.get(&task.id).and_then(|at| self.tasks.get_mut(*at)) {
                Some(known) if known.revision >= task.revision => {}
                Some(known) => *known = task,
                None => {
                    places.insert(task.id.clone(), self.tasks.len());
                    self.tasks.push(task);
                }
            }
        }
        self.files.insert(place, file);
    }

    /// The text of the file of one list; nothing where it stays as it is.
    fn text(&self, place: TaskQueue) -> Option<(String, bool)> {
        let empty = LoadedQueue::default();
        let file = self.files.get(&place).unwrap_or(&empty);
        let mut tasks: BTreeMap<usize, &Task> = self.on(place).enumerate().collect();
        let places: BTreeMap<&str, usize> =
            tasks.iter().map(|(at, it)| (it.id.as_str(), *at)).collect();
        let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
        for item in &file.items {
            let Some(known) = task_of(item, place) else {
                items.push(Cow::Borrowed(item)); // Not ours.
                continue;
            };
            // A second item with the same id is a foreign mistake, which is not fixed here.
            if !seen.insert(known.id.clone()) {
                items.push(Cow::Borrowed(item));
                continue;
            }
            if let Some(task) = places.get(known.id.as_str()).and_then(|at| tasks.remove(at)) {
                let record = (*task != known).then(|| record_of(task, Some(item)));
                let changed = record.filter(|it| it != item);
                items.push(changed.map_or(Cow::Borrowed(item), Cow::Owned));
            }
        }
        let gains = !tasks.is_empty();
        // A task that moves here keeps the fields that other programs wrote.
        let mut known: BTreeMap<&str, &Value> = BTreeMap::new();
        if gains {
            let all = self.files.values().flat_map(|it| &it.items);
            for (id, it) in all.filter_map(|it| Some((id_of(it)?, it))) {
                known.entry(id).or_insert(it);
            }
        }
        let gained = tasks.values().map(|it| record_of(it, known.get(it.id.as_str()).copied()));
        items.extend(gained.map(Cow::Owned));
        let is_kept = |it: &Cow<'_, Value>| matches!(it, Cow::Borrowed(_));
        let mut same = items.len() == file.items.len() && items.iter().all(is_kept);
        let mut beside = file.beside.clone();
        if place == TaskQueue::DeadLetter {
            let known = file.beside.get("metadata");
            let metadata = MetadataRecord {
                totals: self.metadata,
                review_from: self.review_from.clone(),
                resolved: self.resolved.clone(),
            };
            let same_metadata = metadata_of(known) == metadata;
            if !same_metadata || (known.is_none() && file.exists) {
                let mut record = known.and_then(Value::as_object).cloned().unwrap_or_default();
                record.shift_remove("review_from");
                record.shift_remove("resolved");
                record.extend(fields(&metadata));
                beside.insert("metadata".to_owned(), Value::Object(record));
            }
            same &= same_metadata;
        }
        let whole = QueueFile { tasks: &items, beside: &beside };
        (!same).then(|| (whole.text(), gains))
    }
}

impl QueueFile<'_> {
    /// Returns the text of the file, with line breaks unless they make it too large.
    fn text(&self) -> String {
        let pretty = serde_json::to_string_pretty(self).unwrap_or_default();
        let text = match pretty.len() < QUEUE_FILE_BYTES_MAX {
            true => pretty,
            false => serde_json::to_string(self).unwrap_or_default(),
        };
        text + "\n"
    }
}

fn metadata_of(value: Option<&Value>) -> MetadataRecord {
    value.and_then(|metadata| MetadataRecord::deserialize(metadata).ok()).unwrap_or_default()
}

impl<'a> QueueStore<'a> {
    /// Returns the store of a state directory.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        root: &Path,
        durability: Durability,
        lock_wait: Duration,
    ) -> Self {
        let documents = Documents::new(world, root, durability, lock_wait, QUEUE_FILE_BYTES_MAX);
        Self { documents, answer: None }
    }

    /// Returns the store for changes of tasks that belong to an answer of a human. Changes of other tasks do not.
    #[must_use]
    pub fn in_answer(self, answer: &str, tasks: &[String]) -> Self {
        let answer = TaskAnswer { id: answer.to_owned(), tasks: tasks.to_vec() };
        Self { answer: Some(answer), ..self }
    }

    fn list(&self, place: TaskQueue) -> StoredDocument<'a> {
        self.documents.document(&name(place)).in_form(is_list)
    }

    /// Whether there is any list at all: the cheapest thing to ask.
    #[must_use]
    pub fn exists(&self) -> bool {
        let path = self.documents.path(&name(TaskQueue::DeadLetter));
        self.documents.world.stat(&path).is_ok()
    }

    /// Whether there is a list of any kind.
    #[must_use]
    pub fn exists_any(&self) -> bool {
        let path = |it: TaskQueue| self.documents.path(&name(it));
        TaskQueue::ALL.into_iter().any(|it| self.documents.world.stat(&path(it)).is_ok())
    }

    /// All lists as they stand, without a lock; what cannot be read is left out.
    #[must_use]
    pub fn peek(&self) -> Lists {
        let mut lists = Lists::default();
        for place in TaskQueue::ALL {
            match self.list(place).load() {
                Ok(value) => lists.absorb(place, value),
                Err(error @ DocumentError::Damaged { .. }) => lists.damaged.push(error),
                Err(error) => lists.unreadable.push(error),
            }
            // Nothing is written: what was read is not needed any more.
            lists.files.clear();
        }
        lists.completed = self.completed();
        lists
    }

    /// Ids of the tasks that loki-mode completed. What cannot be read is not known to be done.
    fn completed(&self) -> BTreeSet<String> {
        let value = self.documents.document(COMPLETED).in_form(is_list).load().ok().flatten();
        let items = match &value {
            Some(Value::Object(fields)) => fields.get("tasks"),
            whole => whole.as_ref(),
        };
        let items = items.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|it| it.as_str().or_else(|| id_of(it))).map(str::to_owned).collect()
    }

    /// Returns why tasks are unknown: a problem for each list that cannot be read, or is damaged.
    #[must_use]
    pub fn problems(&self) -> Vec<DocumentError> {
        let Lists { damaged, unreadable, .. } = self.peek();
        damaged.into_iter().chain(unreadable).collect()
    }

    /// Changes the lists under their lock: all of it is saved, or an error says that it is not.
    ///
    /// # Errors
    /// The lock was not free, a file could not be read or quarantined, or was not saved. A task that
    /// was to move is then on the list it came from, or on both.
    pub fn change<T>(
        &self,
        now: Timestamp,
        work: impl FnOnce(&mut Lists) -> Result<T, WorldError>,
    ) -> Result<T, WorldError> {
        let _held = self.documents.lock(LOCK, &FOLDERS)?;
        let mut lists = Lists::default();
        for place in TaskQueue::ALL {
            lists.absorb(place, self.list(place).open()?.value);
        }
        lists.completed = self.completed();
        let done = work(&mut lists)?;
        self.share(std::mem::take(&mut lists.changes), now)?;
        let changed =
            TaskQueue::ALL.into_iter().filter_map(|place| Some((place, lists.text(place)?)));
        let mut changed: Vec<_> = changed.collect();
        // First where something comes to, then where it goes away.
        changed.sort_by_key(|(_, (_, gains))| !gains);
        for (place, (text, _)) in changed {
            self.documents.save(&name(place), &text)?;
        }
        Ok(done)
    }

    /// Saves changes for the server, before the local files change.
    fn share(&self, changes: Vec<SharedAction>, now: Timestamp) -> Result<(), WorldError> {
        if changes.is_empty() {
            return Ok(());
        }
        let documents = &self.documents;
        // An invalid configuration shares nothing. The next synchronization reports it.
        let found = SharedStore::find(documents.world, &documents.root, &documents.durability);
        let Ok(Some(shared)) = found else { return Ok(()) };
        if !shared.settings().shares(SharedSubject::Tasks) {
            return Ok(());
        }
        let mut answer = None;
        changes.into_iter().try_for_each(|action| {
            answer = self.answer.as_ref().and_then(|it| it.of(&action, answer));
            shared.push_in_answer(answer, action, now)
        })
    }

    /// Replaces tasks by those of the shared store. `current` returns them under the lock; `None` removes one.
    ///
    /// `is_restored`: the server can have lost changes. A claim among them holds until its lease ends.
    ///
    /// # Errors
    /// As for [`QueueStore::change`].
    pub fn adopt(
        &self,
        current: impl FnOnce() -> Vec<(String, Option<Value>)>,
        is_restored: bool,
    ) -> Result<(), WorldError> {
        self.change(self.documents.world.now(), |lists| {
            for (id, document) in current() {
                match document.as_ref().and_then(shared_task) {
                    Some(mut task) => {
                        let known = lists.find(&id).and_then(|it| it.claim.clone());
                        let generation =
                            |it: &Option<TaskClaim>| it.as_ref().map(|it| it.generation);
                        if is_restored && generation(&known) > generation(&task.claim) {
                            task.claim = known;
                        }
                        lists.put(task, &[]);
                    }
                    None => {
                        // Another host resolved the task, unless it was abandoned before.
                        let known =
                            lists.find(&id).is_some_and(|it| it.place != TaskQueue::Abandoned);
                        if known {
                            lists.resolve(&id);
                        }
                        lists.tasks.retain(|it| it.id != id);
                    }
                }
            }
            Ok(())
        })
    }

    /// Why a change may not survive a loss of power; told once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.documents.degraded()
    }

    /// Logs who did what; a log that cannot be written is not an error.
    pub fn audit(&self, entries: &[Value]) {
        log::append(self.documents.world, &self.documents.path(AUDIT_LOG), entries);
    }
}

/// Whether a value is a list of tasks, in any of its forms.
fn is_list(value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Null => true,
        Value::Object(fields) => fields.get("tasks").is_none_or(Value::is_array),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The file of a list.
fn name(place: TaskQueue) -> String {
    format!("queue/{}.json", place.as_str())
}

/// Removes abandoned tasks that are older than `max_age`, and the oldest ones above `max_count`.
/// Returns their ids.
pub fn expire(
    lists: &mut Lists,
    max_age: Duration,
    max_count: usize,
    now: Timestamp,
) -> BTreeSet<String> {
    let mut kept: Vec<(Option<Timestamp>, String)> =
        lists.on(TaskQueue::Abandoned).map(|it| (it.abandoned, it.id.clone())).collect();
    kept.sort();
    let over = kept.len().saturating_sub(max_count);
    let old = |at: &Option<Timestamp>| at.is_some_and(|at| now.since(at) > max_age);
    let gone = kept.iter().enumerate().filter(|(number, (at, _))| *number < over || old(at));
    let gone: BTreeSet<String> = gone.map(|(_, (_, id))| id.clone()).collect();
    gone.iter().for_each(|id| drop(lists.apply(id, TaskChange::Expired, now)));
    gone
}
