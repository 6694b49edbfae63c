//! The two programs, `policyd` and `policyd-tools`, and the variables that pass between them.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

/// Name of the program that clients and users start.
pub const FRONT: &str = "policyd";
/// Name of the program with every command but the hook.
pub const TOOLS: &str = "policyd-tools";
/// Environment variable with the release of the `policyd` that started `policyd-tools`.
pub const FRONT_RELEASE: &str = "POLICYD_FRONT_RELEASE";
/// Environment variable that limits the search for `policyd-tools` to the directory of `policyd`.
pub const TOOLS_BESIDE: &str = "POLICYD_TOOLS_BESIDE";

/// Command of `policyd-tools` that compiles the pack in its standard input. `policyd` alone runs it.
pub const COMPILE_PACK: &str = "compile-pack";

/// Returns the path of a program in the directory of another one.
#[must_use]
pub fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(format!("{name}{EXE_SUFFIX}"))
}
