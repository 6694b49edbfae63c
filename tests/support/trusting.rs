//! A simulated machine whose user trusts the pack of the project in `/work`, whatever it becomes.

use policyd::world::fake::FakeWorld;

/// Lets the user of a machine say so.
pub(crate) fn trusting(world: &FakeWorld) {
    world.set_env("XDG_CONFIG_HOME", "/config");
    let file = r#"{"version": 1, "packs": [{"folder": "/work/.policyd/policies", "hash": "any",
        "since": "2025-01-01T00:00:00Z"}]}"#;
    world.put("/config/policyd/trust.json", file);
}
