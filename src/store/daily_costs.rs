//! What the sessions of one user spent today: a document in the state directory of the user.

use std::time::Duration;

use super::document::{DamageAction, DocumentError};
use super::file::Durability;
use super::user_state::UserStateFile;
use policyd_state::daily_costs::DailyCosts;
use policyd_world::World;

/// Name of the file.
pub const FILE: &str = "daily-costs.json";

/// Reads what was spent.
///
/// # Errors
/// The user has no state directory, or the file is damaged, newer, or cannot be read.
pub fn load(world: &dyn World) -> Result<DailyCosts, DocumentError> {
    UserStateFile::peek(world, FILE, DamageAction::Quarantine)
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
