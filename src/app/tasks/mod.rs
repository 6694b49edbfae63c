//! Tasks, escalations, breakers and signals of a project: failures are recorded and reviewed, humans are
//! asked and notified. Commands and hooks share these operations.

mod alerts;
mod answers;
mod claims;
mod dead_letters;
mod reviews;
pub(crate) mod signal_fields;
mod signals;
mod triggers;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::app::workspace::project;
use crate::evaluation::dead_letter::waiting;
use crate::expr::queue_facts::QueueSnapshot;
use crate::expr::watch::CoverageRecorder;
use crate::limits::COMMAND_LOCK_WAIT;
use crate::policy::Policy;
use crate::state::escalation::Escalation;
use crate::store::breakers::BreakerStore;
use crate::store::document::StoreProblem;
use crate::store::escalations::EscalationStore;
use crate::store::file::Durability;
use crate::store::queues::QueueStore;
use crate::store::signals::SignalStore;
use crate::store::summaries::Summaries;
use crate::time::Timestamp;
use crate::world::World;
use crate::world::fenced::WriteProtectedWorld;

pub(crate) use answers::{AnswerOutcome, AnswerPart};
pub(crate) use dead_letters::{RecordedFailure, Report};
pub(crate) use reviews::{Reviewed, Row};
pub(crate) use triggers::CLEAR;

/// Where stores are, and how they are written.
#[derive(Clone, Copy)]
pub(crate) struct StoreLocation<'l> {
    pub(crate) state_dir: &'l Path,
    pub(crate) durability: &'l Durability,
    /// Longest wait for a lock.
    pub(crate) lock_wait: Duration,
}

/// The stores of one project.
pub(crate) struct Stores<'a> {
    pub(crate) world: &'a dyn World,
    pub(crate) policy: &'a Policy,
    pub(crate) queues: QueueStore<'a>,
    pub(crate) escalations: EscalationStore<'a>,
    pub(crate) breakers: BreakerStore<'a>,
    pub(crate) signals: SignalStore<'a>,
    /// The state directory.
    pub(crate) own: PathBuf,
    /// Who does it, for the audit.
    pub(crate) by: String,
    pub(crate) now: Timestamp,
    /// Records which texts were rendered. Set only by `policyd test --coverage`.
    pub(crate) watch: Option<Rc<CoverageRecorder>>,
}

impl<'a> Stores<'a> {
    /// Those in a state directory.
    pub(crate) fn new(
        world: &'a dyn World,
        policy: &'a Policy,
        location: StoreLocation<'_>,
    ) -> Self {
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
            by: world.env("USER").or_else(|| world.env("USERNAME")).unwrap_or_default(),
            now: world.now(),
            watch: None,
        }
    }

    /// What waits, as expressions see it. `None` if a list of tasks or the escalations cannot be read.
    pub(crate) fn waiting(&self) -> Option<QueueSnapshot> {
        self.waiting_with(&self.escalations.all().ok()?)
    }

    /// Why the content of stores is unknown.
    pub(crate) fn problems(&self) -> Vec<String> {
        let documents = self.document_problems();
        documents.iter().map(StoreProblem::to_string).chain(self.breakers.damage()).collect()
    }

    /// Why the content of stores other than the breakers is unknown.
    pub(crate) fn document_problems(&self) -> Vec<StoreProblem> {
        let (wait, durability) = (Duration::ZERO, self.breakers.durability().clone());
        let summaries = Summaries::new(self.world, &self.own, durability, wait);
        let mut problems = self.queues.problems();
        problems.extend(self.escalations.problem());
        problems.extend(self.signals.problem(self.now));
        problems.extend(summaries.problem());
        problems
    }

    /// The same for a caller that read the escalations.
    pub(crate) fn waiting_with(&self, escalations: &[Escalation]) -> Option<QueueSnapshot> {
        let lists = self.queues.peek();
        if !lists.unreadable.is_empty() {
            return None;
        }
        let tasks: Vec<_> = lists.tasks.iter().collect();
        let queue = (tasks.as_slice(), lists.metadata.last_reviewed);
        Some(waiting(&self.policy.dead_letter, queue.0, queue.1, escalations, self.now))
    }

    /// Id and title of what the agent works on: `queue/current-task.json` (seed 003).
    pub(crate) fn current_task(&self) -> (String, String) {
        let path = self.own.join("queue/current-task.json");
        let bytes = self.world.read(&path, crate::limits::POLICY_FILE_BYTES_MAX);
        let task: serde_json::Value =
            bytes.ok().and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default();
        let text = |keys: [&str; 2]| {
            let found = keys.into_iter().find_map(|key| task.get(key)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        (text(["task_id", "id"]), text(["goal", "title"]))
    }

    /// Why a change that was saved may not survive a power loss.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let stores = [self.queues.degraded(), self.escalations.degraded(), self.signals.degraded()];
        stores.into_iter().flatten().collect()
    }

    /// Those of the project that a command was called in.
    pub(crate) fn of_project(world: &'a dyn World, policy: &'a Policy) -> Self {
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
pub(crate) fn fenced<'w>(world: &'w dyn World, policy: &Policy) -> Option<WriteProtectedWorld<'w>> {
    project::fenced_by_pack(world, &project::find(world, None), &policy.settings)
}
