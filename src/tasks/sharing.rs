//! The shared store for hooks and commands: find it, synchronize, and ask it for permission.

use std::path::Path;
use std::time::Duration;

use policyd_state::breaker::{self, Breaker, BreakerEvent, BreakerResponse, BreakerSettings};
use policyd_store::breakers::BreakerStore;
use policyd_store::document::DocumentError;
use policyd_store::file::Durability;
use policyd_store::shared::action::{SharedAction, SharedResponse};
use policyd_store::shared::settings::{SharedStoreSettings, SharedSubject};
pub use policyd_store::shared::{COMMAND, QUICK, SyncLimits};
use policyd_store::shared::{SharedStore, SyncError, SyncResult};
use policyd_world::World;

/// Synchronizes; `None` if no shared store is configured.
pub fn sync(
    world: &dyn World,
    root: &Path,
    durability: &Durability,
    limits: SyncLimits<'_>,
) -> Result<Option<SyncResult>, SyncError> {
    match SharedStore::find(world, root, durability)? {
        Some(store) => store.sync(limits).map(Some),
        None => Ok(None),
    }
}

/// Sends new lines of the decision log, as many as there is time for, if they are shared.
pub fn send_decisions(
    world: &dyn World,
    root: &Path,
    log: &Path,
    wait: Duration,
) -> Result<usize, SyncError> {
    match SharedStore::find(world, root, &Durability::default())? {
        Some(store) if store.settings().shares(SharedSubject::Decisions) => {
            store.send_decisions(log, wait)
        }
        Some(_) | None => Ok(0),
    }
}

/// Returns whether operations wait for the server.
pub fn has_waiting(world: &dyn World, root: &Path) -> bool {
    let found = SharedStore::find(world, root, &Durability::default());
    found.is_ok_and(|it| it.is_some_and(|it| it.has_waiting()))
}

/// Returns the number of operations that wait for the server.
pub fn waiting_count(world: &dyn World, root: &Path) -> usize {
    let found = SharedStore::find(world, root, &Durability::default());
    found.ok().flatten().map_or(0, |it| it.waiting().len())
}

/// Returns whether the user is to be notified now that the server cannot be reached.
pub fn notify_once(world: &dyn World, root: &Path, durability: &Durability) -> bool {
    match SharedStore::find(world, root, durability) {
        Ok(found) => found.is_some_and(|it| it.notify_once()),
        // An invalid configuration is reported until it is fixed.
        Err(_) => true,
    }
}

/// Asks whether a call is permitted. The server admits the trial call of a shared breaker, so that all hosts
/// together make one. If the server cannot be reached, the local copy decides.
pub fn request(
    world: &dyn World,
    store: &BreakerStore<'_>,
    key: &str,
    settings: &BreakerSettings,
) -> Result<(Breaker, BreakerResponse), DocumentError> {
    let now = world.now();
    let known = store.peek(key)?;
    let (next, response) = breaker::step(&known, BreakerEvent::Request, settings, now);
    if next == known || !SharedStoreSettings::shares_breaker(key) {
        return match next == known {
            true => Ok((known, response)),
            false => store.request(key, settings, now),
        };
    }
    let Ok(Some(shared)) = SharedStore::find(world, store.root(), store.durability()) else {
        return store.request(key, settings, now);
    };
    let action = SharedAction::Breaker {
        key: key.to_owned(),
        event: BreakerEvent::Request.into(),
        settings: Box::new(settings.clone()),
    };
    match shared.decide(action, QUICK) {
        Ok(SharedResponse::Breaker(response)) => Ok((store.peek(key)?, response)),
        Ok(
            SharedResponse::Task(_)
            | SharedResponse::Escalation(_)
            | SharedResponse::Approval(_)
            | SharedResponse::Run
            | SharedResponse::Signal(_)
            | SharedResponse::Void,
        )
        | Err(_) => store.request(key, settings, now),
    }
}
