//! Cases and recorded samples that the project shares with other implementations. They are in the
//! directory `shared` beside the project and are not part of the repository.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// `1` permits the directory to be absent; `.cargo/config.toml` sets it if the environment does not.
const WITHOUT: &str = "POLICYD_WITHOUT_SHARED_CASES";
/// Another directory. If it is set, the directory must exist.
const FOLDER: &str = "POLICYD_SHARED_CASES";

/// A file or directory of the shared directory. `None` only if the directory is absent and the
/// environment permits it.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let configured = std::env::var_os(FOLDER).map(PathBuf::from);
    let is_configured = configured.is_some();
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = configured.unwrap_or_else(beside);
    if shared.join("cases").is_dir() {
        return Some(shared.join(name));
    }
    let permitted = !is_configured && std::env::var_os(WITHOUT).is_some_and(|it| it == "1");
    assert!(permitted, "{} is absent\nhelp: set {WITHOUT}=1 to skip its cases", shared.display());
    eprintln!("skipped: ../shared is absent");
    None
}

/// The cases of `shared/cases/<file>`.
pub(crate) fn cases(file: &str) -> Option<Vec<Value>> {
    let path = path("cases")?.join(file);
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(serde_json::from_str(&text).unwrap())
}

/// The cases of the seed's two systems that are of some kinds; none where they are absent.
pub(crate) fn of_kinds(kinds: &[&str]) -> Vec<Value> {
    let cases = cases("loki_shipwright_cases.json").unwrap_or_default();
    cases.into_iter().filter(|it| kinds.contains(&it["kind"].as_str().unwrap())).collect()
}
