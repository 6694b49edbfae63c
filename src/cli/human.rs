//! Asks for the human that some commands require, and prints why one is refused.

use super::{Console, EXIT_FOUND};
use crate::app::workspace::human::{self, Actor};
use crate::world::World;

/// Requires that a human runs this command and confirms the action; returns who it is, or the exit code
/// of the refusal, which is printed.
pub(super) fn require_human(
    world: &dyn World,
    console: &mut Console<'_>,
    action: &str,
) -> Result<Actor, u8> {
    human::confirm(world, action).map_err(|refusal| {
        console.eprint(&refusal.to_string());
        EXIT_FOUND
    })
}
