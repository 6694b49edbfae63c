//! The shared store during a run: the record of the run for other hosts, and waits that end as soon as another host
//! changes something.

use std::time::Duration;

use super::Supervisor;
use crate::sharing;
use policyd_base::limits::{EVIDENCE_CHARS_MAX, SHARED_HOOK_WAIT, SHARED_RUN_SIGN_EVERY};
use policyd_evaluation::message::{cut, in_one_line};
use policyd_record::mask::mask;
use policyd_state::run::RunPhase;
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{SharedRun, SharedStore, SyncError, SyncLimits, SyncResult};
use policyd_world::server::DocumentServer;

/// Limits of a synchronization after a notification of the server.
const NOTIFIED: SyncLimits<'_> =
    SyncLimits { age_max: Duration::ZERO, at_once: true, ..sharing::QUICK };

/// A connection that receives notifications.
#[derive(Default)]
pub(super) enum Listener {
    /// None was made yet, or it was lost.
    #[default]
    Disconnected,
    /// No shared store is configured.
    Never,
    Connected(Box<dyn DocumentServer>),
}

/// What other hosts know of the run: its state and the number of turns, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RunAnnouncement {
    state: String,
    turns: u32,
    /// Time since the start of the process.
    at: Duration,
}

impl Supervisor<'_> {
    /// Records the run for other hosts when a turn begins, and when the run waits or ends.
    pub(super) fn announce(&mut self) {
        let found = SharedStore::find(self.world, &self.paths.own, &self.durability);
        let Ok(Some(store)) = found else { return };
        if !store.settings().shares(SharedSubject::Runs) {
            return;
        }
        let goal = self.run.goal.lines().next().unwrap_or_default();
        let record = SharedRun {
            host: store.host_name(),
            project: self.project.root.display().to_string(),
            goal: cut(&in_one_line(&mask(goal).0), EVIDENCE_CHARS_MAX),
            ..SharedRun::of(&self.run, self.world.now())
        };
        let at = self.world.elapsed();
        let announced = RunAnnouncement { state: record.state.clone(), turns: record.turns, at };
        let is_between =
            matches!(self.run.phase, RunPhase::Ready | RunPhase::Asking) && record.turns > 0;
        let known = &self.announced;
        let is_known = known.state == announced.state && known.turns == announced.turns;
        if is_between || (is_known && !self.is_sign_due()) {
            return;
        }
        match store.record_run(&record) {
            Ok(()) => self.announced = announced,
            Err(error) => self.problem(&format!("shared store: {error}")),
        }
        if record.ended {
            self.synchronize(sharing::QUICK);
        }
    }

    /// Returns whether other hosts wait for a sign that the process lives.
    fn is_sign_due(&self) -> bool {
        self.world.elapsed().saturating_sub(self.announced.at) >= SHARED_RUN_SIGN_EVERY
    }

    /// Sends a sign of life to other hosts if none was sent for a while.
    pub(super) fn give_sign_of_life(&mut self) {
        if !self.is_sign_due() {
            return;
        }
        self.announce();
        // Without a shared store, it looks again only after the interval.
        self.announced.at = self.world.elapsed();
        if sharing::has_waiting(self.world, &self.paths.own) {
            self.synchronize(sharing::QUICK);
        }
    }

    /// Sends what happened to the shared store, and takes over what happened on other hosts. Returns whether the server
    /// answered.
    pub(super) fn synchronize(&mut self, limits: SyncLimits<'_>) -> bool {
        match sharing::sync(self.world, &self.paths.own, &self.durability, limits) {
            Ok(result) => {
                let answered = result.is_some();
                let SyncResult { rejected, notes, .. } = result.unwrap_or_default();
                let all = rejected.iter().chain(&notes);
                all.for_each(|it| self.problem(&format!("shared store: {it}")));
                answered
            }
            // Reported when it happened.
            Err(SyncError::Deferred(_)) => false,
            Err(error) => {
                if sharing::notify_once(self.world, &self.paths.own, &self.durability) {
                    self.problem(&error.to_string());
                }
                false
            }
        }
    }

    /// Takes over what other hosts changed, the answers of humans to signals of this host included, before the run decides.
    pub(super) fn catch_up(&mut self) {
        self.synchronize(sharing::COMMAND);
        let stores = self.stores();
        if let Err(error) = stores.signals.take_over_ends(stores.now) {
            self.problem(&format!("answers of other hosts were not taken over: {error}"));
        }
    }

    /// Waits. Another host that changes something ends the wait.
    pub(super) fn idle(&mut self, length: Duration) {
        if matches!(self.listener, Listener::Disconnected) {
            self.listener = self.connect_listener();
        }
        let Listener::Connected(server) = &mut self.listener else {
            self.world.sleep(length);
            return;
        };
        match server.wait(length) {
            Ok(false) => {}
            Ok(true) => drop(self.synchronize(NOTIFIED)),
            Err(_) => {
                self.listener = Listener::Disconnected;
                self.world.sleep(length);
            }
        }
    }

    fn connect_listener(&mut self) -> Listener {
        let found = SharedStore::find(self.world, &self.paths.own, &self.durability);
        if found.is_ok_and(|it| it.is_none()) {
            return Listener::Never;
        }
        // A server that did not answer a moment ago is not asked again.
        if !self.synchronize(sharing::QUICK) {
            return Listener::Disconnected;
        }
        let found = SharedStore::find(self.world, &self.paths.own, &self.durability);
        let connected = found.ok().flatten().and_then(|it| it.server(SHARED_HOOK_WAIT).ok());
        connected.map_or(Listener::Disconnected, Listener::Connected)
    }
}
