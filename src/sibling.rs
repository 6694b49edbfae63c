//! `policyd-tools`, which has every command but the hook: where it lies, whether it belongs to this program, and how it
//! is started.
//!
//! It must lie in the directory of this program, or in the one of the build, and have the same owner, so that another account cannot put its own
//! program there. It compares the release of this program with its own, because only it can say what it is.
#![expect(
    clippy::disallowed_methods,
    reason = "the two programs find each other before a World exists"
)]

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use policyd_base::programs::{self, FRONT_RELEASE, TOOLS, TOOLS_BESIDE};

/// Where Cargo put the programs of this build. Empty in packages.
const BUILD_DIRECTORY: &str = env!("POLICYD_BUILD_DIRECTORY");

/// Why `policyd-tools` does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiblingError {
    #[error("cannot find the own program: {0}")]
    OwnProgram(io::Error),
    #[error("`{}` is missing. {}", path.display(), help(path))]
    Missing { path: PathBuf },
    #[error(
        "`{}` belongs to another user than `policyd`, or others may write to it. Install policyd again",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error("cannot start `{}`: {error}", path.display())]
    Start { path: PathBuf, error: io::Error },
}

/// What brings the program back: in a checkout it was not built, elsewhere the installation is not complete.
fn help(path: &Path) -> &'static str {
    match path.parent().and_then(Path::file_name).and_then(|it| it.to_str()) {
        Some("debug") => "Run: cargo build -p policyd-tools",
        Some("release") => "Run: cargo build --release -p policyd-tools",
        _ => "policyd and policyd-tools belong together: install policyd again",
    }
}

/// Runs `policyd-tools` with the arguments of this process, the first of which is the name of the program. On Unix it
/// takes the place of this process, and its first argument is the path of this program, which hooks then name: a link to
/// an installation stays valid when the installation is updated.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, SiblingError> {
    let started = own_program(arguments.first()).map_err(SiblingError::OwnProgram)?;
    let own = started.canonicalize().map_err(SiblingError::OwnProgram)?;
    let path = find(&own)?;
    if is_foreign(&own, &path) {
        return Err(SiblingError::Foreign { path });
    }
    let mut command = Command::new(&path);
    command.args(arguments.iter().skip(1)).env(FRONT_RELEASE, env!("CARGO_PKG_VERSION"));
    start(command, &started).map_err(|error| SiblingError::Start { path, error })
}

/// Finds the program: beside this one, else where the build of this one put it.
fn find(own: &Path) -> Result<PathBuf, SiblingError> {
    let beside = programs::beside(own, TOOLS);
    let built = programs::beside(&Path::new(BUILD_DIRECTORY).join(TOOLS), TOOLS);
    let of_build = built.is_absolute() && std::env::var_os(TOOLS_BESIDE).is_none();
    if beside.is_file() {
        Ok(beside)
    } else if of_build && built.is_file() {
        Ok(built)
    } else {
        Err(SiblingError::Missing { path: beside })
    }
}

/// Returns the path of this program. Where the operating system cannot tell it, such as in a container without `/proc`, the
/// path by which it was started counts.
fn own_program(name: Option<&OsString>) -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| {
        let path = name.map(PathBuf::from).filter(|it| it.components().count() > 1);
        path.map_or(Err(error), std::path::absolute)
    })
}

#[cfg(unix)]
fn start(mut command: Command, front: &Path) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.arg0(front).exec())
}

#[cfg(not(unix))]
fn start(mut command: Command, _front: &Path) -> io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Whether another account could have put the program there: it has another owner than this program, or a group or
/// every user may write to it, and not to this program.
#[cfg(unix)]
fn is_foreign(own: &Path, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(own), Ok(other)) = (own.metadata(), path.metadata()) else { return true };
    let more_writers = other.mode() & 0o022 & !own.mode();
    other.uid() != own.uid() || more_writers != 0
}

#[cfg(not(unix))]
fn is_foreign(_own: &Path, _path: &Path) -> bool {
    false
}
