//! Tasks, escalations, breakers and signals of a project: failures are recorded and reviewed, humans are
//! asked and notified.
//!
//! Contains: operations that commands and hooks share. Does not contain: the stores, and the decisions over a task
//! (`policyd-evaluation`).
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_tasks::sharing::has_waiting;
//! use policyd_world::fake::FakeWorld;
//!
//! // Without a shared store, nothing waits to be sent.
//! assert!(!has_waiting(&FakeWorld::new(), Path::new("/work/.policyd")));
//! ```

mod alerts;
mod answers;
pub mod channel_program;
mod claims;
mod dead_letters;
pub mod incidents;
mod reviews;
pub mod sharing;
pub mod signal_fields;
mod signals;
mod triggers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_evaluation::dead_letter::waiting;
use policyd_evaluation::standing::standing;
use policyd_fact_table::context::StoreSnapshots;
use policyd_fact_table::queue_facts::QueueSnapshot;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_fact_table::watch::CoverageRecorder;
use policyd_policy::Policy;
use policyd_state::escalation::Escalation;
use policyd_store::breakers::BreakerStore;
use policyd_store::document::DocumentError;
use policyd_store::escalations::EscalationStore;
use policyd_store::file::Durability;
use policyd_store::queues::QueueStore;
use policyd_store::signals::SignalStore;
use policyd_store::summaries::Summaries;
use policyd_workspace::human;
use policyd_workspace::project;
use policyd_world::World;
use policyd_world::fenced::WriteProtectedWorld;
use policyd_yaml::time::Timestamp;

pub use answers::{AnswerOutcome, AnswerPart};
pub use claims::ClaimError;
pub use dead_letters::{FailureReport, RecordedFailure};
pub use reviews::{ReviewRow, ReviewedTasks};
pub use triggers::CLEAR;

/// Where stores are, and how they are written.
#[derive(Clone, Copy)]
pub struct StoreLocation<'l> {
    pub state_dir: &'l Path,
    pub durability: &'l Durability,
    /// Longest wait for a lock.
    pub lock_wait: Duration,
}

/// The stores of one project.
pub struct Stores<'a> {
    pub world: &'a dyn World,
    pub policy: &'a Policy,
    pub queues: QueueStore<'a>,
    pub escalations: EscalationStore<'a>,
    pub breakers: BreakerStore<'a>,
    pub signals: SignalStore<'a>,
    /// The state directory.
    pub own: PathBuf,
    pub now: Timestamp,
    /// Records which texts were rendered. Set only by `policyd test --coverage`.
    pub watch: Option<Rc<CoverageRecorder>>,
}

impl<'a> Stores<'a> {
    /// Those in a state directory.
    pub fn new(world: &'a dyn World, policy: &'a Policy, location: StoreLocation<'_>) -> Self {
        let StoreLocation { state_dir: own, durability, lock_wait: wait } = location;
        let durability = || durability.clone();
        Self {
            world,
            policy,
            queues: QueueStore::new(world, own, durability(), wait),
            escalations: EscalationStore::new(world, own, durability(), wait),
            breakers: BreakerStore::new(world, own, durability()).patient(wait),
            signals: SignalStore::new(world, own, &policy.signals, durability()).patient(wait),
            own: own.to_owned(),
            now: world.now(),
            watch: None,
        }
    }

    /// Returns these stores for what an answer of a human changes: its tasks, and breakers. If the server of a shared store
    /// refuses a change of the answer, the later ones are not made there, and this host takes over what the server has.
    #[must_use]
    pub fn in_answer(&self, answer: &str, tasks: &[String]) -> Self {
        let Self { world, policy, queues, escalations, breakers, signals, own, now, watch } = self;
        Self {
            world: *world,
            policy: *policy,
            queues: queues.clone().in_answer(answer, tasks),
            escalations: escalations.clone(),
            breakers: breakers.clone().in_answer(answer),
            signals: signals.clone(),
            own: own.clone(),
            now: *now,
            watch: watch.clone(),
        }
    }

    /// Returns an id for the answer of a human to something that waits, unique on this host.
    pub fn answer_id(&self, item: &str) -> String {
        format!("{item}-{}-{}", self.now.millis(), self.world.process_id())
    }

    /// Returns who changes a task, for the audit.
    pub fn user(&self) -> String {
        human::user_name(self.world).unwrap_or_default()
    }

    /// Returns what rules read of the stores: those of these sources. A store that cannot be read is unknown.
    pub fn snapshots(&self, sources: FactSources) -> StoreSnapshots {
        let breakers = || Some(standing(self.policy, &self.breakers.all().ok()?, self.now));
        let signals = || self.signals.waiting(self.now);
        StoreSnapshots {
            breakers: sources.contains(FactSource::Breakers).then(breakers).flatten(),
            waiting: sources.contains(FactSource::Queues).then(|| self.waiting()).flatten(),
            signals: sources.contains(FactSource::Signals).then(signals).flatten(),
            ..StoreSnapshots::default()
        }
    }

    /// What waits, as expressions see it. `None` if a list of tasks or the escalations cannot be read.
    pub fn waiting(&self) -> Option<QueueSnapshot> {
        self.waiting_with(&self.escalations.all().ok()?)
    }

    /// Why the content of stores is unknown.
    pub fn problems(&self) -> Vec<String> {
        let documents = self.document_problems();
        documents.iter().map(DocumentError::note).chain(self.breakers.damage()).collect()
    }

    /// Why the content of stores other than the breakers is unknown.
    pub fn document_problems(&self) -> Vec<DocumentError> {
        let (wait, durability) = (Duration::ZERO, self.breakers.durability().clone());
        let summaries = Summaries::new(self.world, &self.own, durability, wait);
        let mut problems = self.queues.problems();
        problems.extend(self.escalations.problem());
        problems.extend(self.signals.problem(self.now));
        problems.extend(summaries.problem());
        problems
    }

    /// The same for a caller that read the escalations.
    pub fn waiting_with(&self, escalations: &[Escalation]) -> Option<QueueSnapshot> {
        let lists = self.queues.peek();
        if !lists.unreadable.is_empty() {
            return None;
        }
        let tasks: Vec<_> = lists.tasks.iter().collect();
        let queue = (tasks.as_slice(), lists.metadata.last_reviewed);
        Some(waiting(&self.policy.dead_letter, queue.0, queue.1, escalations, self.now))
    }

    /// Returns id and title of the task that the agent works on, from loki-mode's `queue/current-task.json`.
    pub fn current_task(&self) -> (String, String) {
        let path = self.own.join("queue/current-task.json");
        let bytes = self.world.read(&path, policyd_base::limits::POLICY_FILE_BYTES_MAX);
        let task: serde_json::Value =
            bytes.ok().and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default();
        let text = |keys: [&str; 2]| {
            let found = keys.into_iter().find_map(|key| task.get(key)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        (text(["task_id", "id"]), text(["goal", "title"]))
    }

    /// Why a change that was saved may not survive a power loss.
    pub fn degraded(&self) -> Vec<String> {
        let stores = [
            self.breakers.degraded(),
            self.queues.degraded(),
            self.escalations.degraded(),
            self.signals.degraded(),
        ];
        // A file system degrades all of them for the same reason.
        let reasons: BTreeSet<String> = stores.into_iter().flatten().collect();
        reasons.into_iter().collect()
    }

    /// Those of the project that a command was called in.
    pub fn of_project(world: &'a dyn World, policy: &'a Policy) -> Self {
        let project = project::find(world, None);
        let (sessions, own) = project::sessions(world, &project, &policy.settings);
        let (state_dir, durability) = (own.as_path(), &sessions.durability);
        Self::new(
            world,
            policy,
            StoreLocation { state_dir, durability, lock_wait: COMMAND_LOCK_WAIT },
        )
    }
}

/// The World of a command over the stores, where a folder that the pack names is not to be written to.
pub fn fenced<'w>(world: &'w dyn World, policy: &Policy) -> Option<WriteProtectedWorld<'w>> {
    project::fenced_by_pack(world, &project::find(world, None), &policy.settings)
}
