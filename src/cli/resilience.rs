//! The resilience stores of a project at work: failed tasks are taken in and reviewed, humans are
//! asked and told. The commands and the hook path both go through here, so that both do the same.

mod alerts;
mod reviews;
mod signals;
mod tasks;
mod triggers;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::{Console, pack, project};
use crate::judge::dead_letter::waiting;
use crate::limits::COMMAND_LOCK_WAIT;
use crate::policy::Policy;
use crate::script::queue_facts::Queued;
use crate::script::watch::Watch;
use crate::store::breakers::BreakerStore;
use crate::store::escalations::EscalationStore;
use crate::store::queues::QueueStore;
use crate::store::signals::SignalStore;
use crate::time::Timestamp;
use crate::world::World;
use crate::world::fenced::FencedWorld;

pub(super) use reviews::{Reviewed, Row};
pub(super) use tasks::{Report, Taken};
pub(super) use triggers::CLEAR;

/// The stores of one project.
pub(super) struct Stores<'a> {
    pub(super) world: &'a dyn World,
    pub(super) policy: &'a Policy,
    pub(super) queues: QueueStore<'a>,
    pub(super) escalations: EscalationStore<'a>,
    pub(super) breakers: BreakerStore<'a>,
    pub(super) signals: SignalStore<'a>,
    /// The root of our own.
    pub(super) own: PathBuf,
    /// Who does it, for the audit.
    pub(super) by: String,
    pub(super) now: Timestamp,
    /// Is told which texts were said; nobody is, unless somebody measures.
    pub(super) watch: Option<Rc<Watch>>,
}

impl<'a> Stores<'a> {
    /// Those under a root of our own; `wait` is how long the caller can wait for a lock.
    pub(super) fn new(
        world: &'a dyn World,
        policy: &'a Policy,
        (own, durability): (&Path, &crate::store::file::Durability),
        wait: Duration,
    ) -> Self {
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

    /// What waits, as expressions see it.
    pub(super) fn waiting(&self) -> Queued {
        let lists = self.queues.peek();
        let tasks: Vec<_> = lists.tasks.iter().collect();
        let queue = (tasks.as_slice(), lists.metadata.last_reviewed);
        waiting(&self.policy.dead_letter, queue, &self.escalations.all(), self.now)
    }

    /// Id and title of what the agent works on: `queue/current-task.json` (seed 003).
    pub(super) fn current_task(&self) -> (String, String) {
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

    /// Why something that was changed may not survive a loss of power.
    pub(super) fn tell_degraded(&self, console: &mut Console<'_>) {
        let stores = [self.queues.degraded(), self.escalations.degraded(), self.signals.degraded()];
        for why in stores.into_iter().flatten() {
            console.complain(&format!("saved in place only, a loss of power may undo it: {why}"));
        }
    }

    /// Those of the project that a command was called in.
    pub(super) fn of_project(world: &'a dyn World, policy: &'a Policy) -> Self {
        let project = project::find(world, None);
        let (sessions, own) = project::sessions(world, &project, &policy.settings);
        Self::new(world, policy, (&own, &sessions.durability), COMMAND_LOCK_WAIT)
    }
}

/// The World of a command over the stores, where a folder that the pack names is not to be written to.
pub(super) fn fenced<'w>(world: &'w dyn World, policy: &Policy) -> Option<FencedWorld<'w>> {
    project::fenced_by_pack(world, &project::find(world, None), &policy.settings)
}

/// The policy of a command over the stores; the built-in one, with a complaint, where it is broken.
pub(super) fn policy(world: &dyn World, console: &mut Console<'_>) -> Option<Policy> {
    pack::or_builtin(world, console)
}
