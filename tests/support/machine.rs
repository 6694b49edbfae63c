//! A simulated machine with a project in `/work`.

use std::path::Path;

use policyd::store::choice_record;
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;

/// Ada's machine at noon.
pub(crate) fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.set_now(Timestamp::parse("2026-01-25T12:00:00Z").unwrap());
    world.set_env("HOME", "/home/me");
    world.set_env("USER", "ada");
    world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
    world
}

/// Gives it a file of a pack of its own.
pub(crate) fn packed(world: &FakeWorld, file: &str, text: &str) {
    world.set_env("POLICYD_POLICIES", "/pack");
    world.put("/pack/policyd.yaml", "version: 1\nextends: [builtin]\n");
    world.put(format!("/pack/{file}"), text);
}

/// Lets its user trust the pack of the project in `/work`, whatever it becomes.
pub(crate) fn trusting(world: &FakeWorld) {
    world.set_env("XDG_CONFIG_HOME", "/config");
    let file = r#"{"version": 1, "packs": [{"folder": "/work/.policyd/policies", "hash": "any",
        "since": "2025-01-01T00:00:00Z"}]}"#;
    world.put("/config/policyd/trust.json", file);
    choice_record::record(world, Path::new("/config/policyd/trust.json"), file.as_bytes());
}
