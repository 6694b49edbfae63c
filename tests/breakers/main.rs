//! Circuit breakers: every state and event, the seed's sequences, its file, the commands, and their
//! memory under faults and crowds.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; tables are printed; case files are real"
)]

mod cases;
mod commands;
mod simulation;
mod steps;
mod store;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/trusting.rs"]
mod trusting;

use std::path::Path;

use policyd::store::breakers::BreakerStore;
use policyd::store::file::Durability;
use policyd::world::fake::FakeWorld;
use serde_json::Value;

const FILE: &str = "/w/.policyd/state/circuit-breakers.json";

fn store(world: &FakeWorld) -> BreakerStore<'_> {
    BreakerStore::new(world, Path::new("/w/.policyd"), Durability::default())
}

fn record(world: &FakeWorld, key: &str) -> Value {
    let bytes = world.get(FILE).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()[key].clone()
}
