//! What the sessions of one user spent today: a document in the state directory of the user.

use std::time::Duration;

use super::document::{DamageAction, DocumentError, StoredDocument};
use super::file::Durability;
use super::user::UserDirectory;
use super::user_state::UserStateFile;
use policyd_base::limits::USER_STATE_BYTES_MAX;
use policyd_state::daily_costs::DailyCosts;
use policyd_world::World;

/// Name of the file.
pub const FILE: &str = "daily-costs.json";

/// Reads what was spent.
///
/// # Errors
/// The user has no state directory, or the file is damaged, newer, or cannot be read.
pub fn load(world: &dyn World) -> Result<DailyCosts, DocumentError> {
    let directory = UserDirectory::State;
    let path = directory.path(world).ok_or(DocumentError::NoDirectory(directory))?.join(FILE);
    let document = StoredDocument::new(world, path, USER_STATE_BYTES_MAX, DamageAction::Quarantine);
    Ok(document.load()?.unwrap_or_default())
}

/// Changes what was spent, under a lock.
///
/// # Errors
/// As [`load`], or another process holds the lock longer than `wait`, or the file cannot be written.
pub fn change(
    world: &dyn World,
    durability: &Durability,
    wait: Duration,
    change: impl FnOnce(DailyCosts) -> DailyCosts,
) -> Result<DailyCosts, DocumentError> {
    let if_damaged = DamageAction::Quarantine;
    let (file, costs) = UserStateFile::open::<DailyCosts>(world, FILE, if_damaged, wait)?;
    let costs = change(costs);
    file.save(&costs, durability)?;
    Ok(costs)
}
