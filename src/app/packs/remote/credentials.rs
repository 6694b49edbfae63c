//! Credentials for registries, from the configuration of docker: `docker login` writes it.

use std::path::PathBuf;

use serde_json::Value;

use policyd_base::limits::SETTINGS_FILE_BYTES_MAX;
use policyd_world::World;

/// Returns the header `Authorization` for a registry. `None`: the user has no credentials for it.
pub(super) fn of_registry(world: &dyn World, host: &str) -> Option<String> {
    let folder = world.env("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(world.env("HOME")?).join(".docker")))?;
    let bytes = world.read(&folder.join("config.json"), SETTINGS_FILE_BYTES_MAX).ok()?;
    let config: Value = serde_json::from_slice(&bytes).ok()?;
    let auth = config.get("auths")?.get(host)?.get("auth")?.as_str()?;
    let is_base64 = |it: char| it.is_ascii_alphanumeric() || "+/=".contains(it);
    (!auth.is_empty() && auth.chars().all(is_base64)).then(|| format!("Basic {auth}"))
}
