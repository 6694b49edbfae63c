//! Circuit breakers: every state and event, the seed's sequences, its file, the commands, and their
//! memory under faults and crowds.

mod cases;
mod commands;
mod simulation;
mod steps;
mod store;

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
