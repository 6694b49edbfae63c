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
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use policyd_base::limits::PACK_COMPILE_TIME_MAX;
use policyd_base::programs::{self, COMPILE_PACK, FRONT_RELEASE, TOOLS, TOOLS_BESIDE};
use policyd_world::{ExternalCommand, World, WorldError};

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
    #[error("cannot run `{}`: {error}", path.display())]
    Run { path: PathBuf, error: WorldError },
    #[error("`{}` failed: {said}", path.display())]
    Failed { path: PathBuf, said: String },
    #[error("`{}` ended without an answer ({status})", path.display())]
    NoAnswer { path: PathBuf, status: ExitStatus },
    #[error("cannot run `{}`, because the path is not Unicode", path.display())]
    NotUnicode { path: PathBuf },
}

/// What brings the program back: in a checkout it was not built, elsewhere the installation is not complete.
fn help(path: &Path) -> &'static str {
    match path.parent().and_then(Path::file_name).and_then(|it| it.to_str()) {
        Some("debug") => "Run: cargo build -p policyd-tools",
        Some("release") => "Run: cargo build --release -p policyd-tools",
        _ => "policyd and policyd-tools belong together: install policyd again",
    }
}

/// Limit for a compiled pack.
const COMPILED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Compiles a pack by `policyd-tools`. Takes the input of `compiler::run` of the packs, and returns its output.
pub(crate) fn compile(world: &dyn World, input: &[u8]) -> Result<Vec<u8>, SiblingError> {
    let (_, path) = checked(std::env::args_os().next().as_ref())?;
    let not_unicode = || SiblingError::NotUnicode { path: path.clone() };
    let command = ExternalCommand {
        argv: vec![path.to_str().ok_or_else(not_unicode)?.to_owned(), COMPILE_PACK.to_owned()],
        folder: world.working_folder(),
        stdin: input.to_vec(),
        env: vec![(FRONT_RELEASE.to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
        deadline: PACK_COMPILE_TIME_MAX,
        output_max: COMPILED_BYTES_MAX,
        ..ExternalCommand::default()
    };
    let output = match world.run(&command) {
        Ok(output) => output,
        Err(error) => return Err(SiblingError::Run { path, error }),
    };
    if output.code == Some(0) && !output.truncated {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SiblingError::Failed { path, said })
}

/// Returns the path of this program and that of `policyd-tools`, which this program may start.
fn checked(name: Option<&OsString>) -> Result<(PathBuf, PathBuf), SiblingError> {
    let started = own_program(name).map_err(SiblingError::OwnProgram)?;
    let own = started.canonicalize().map_err(SiblingError::OwnProgram)?;
    let path = find(&own)?;
    if is_foreign(&own, &path) {
        return Err(SiblingError::Foreign { path });
    }
    Ok((started, path))
}

/// Runs `policyd-tools` with the arguments of this process, the first of which is the name of the program. On Unix it
/// takes the place of this process, and its first argument is the path of this program, which hooks then name: a link to
/// an installation stays valid when the installation is updated.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, SiblingError> {
    let (started, path) = checked(arguments.first())?;
    let mut command = Command::new(&path);
    command.args(arguments.iter().skip(1)).env(FRONT_RELEASE, env!("CARGO_PKG_VERSION"));
    start(command, &started).map_err(|error| SiblingError::Start { path, error })
}

/// Runs `policyd-tools` for a hook, and returns its answer. Its exit code is 0, whatever it answers, so another one means that it
/// crashed.
pub(crate) fn answer(arguments: &[OsString]) -> Result<Vec<u8>, SiblingError> {
    let (_, path) = checked(arguments.first())?;
    let mut command = Command::new(&path);
    command.args(arguments.iter().skip(1)).env(FRONT_RELEASE, env!("CARGO_PKG_VERSION"));
    command.stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = command.spawn().and_then(std::process::Child::wait_with_output);
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(SiblingError::NoAnswer { path, status: output.status }),
        Err(error) => Err(SiblingError::Start { path, error }),
    }
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
