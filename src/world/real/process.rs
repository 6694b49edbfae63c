//! External commands with a deadline and bounded output, without zombies. One thread reads each
//! stream, so that a full pipe cannot block another.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::file::world_error;
use super::system::{self, ProcessGroup, Watchdog, can_run, is_searched, named_command};
use super::{CommandOutput, ExternalCommand, WorldError};

/// Time for the streams to end after the program ended. A grandchild can keep them open forever.
pub(super) const DRAIN_MAX: Duration = Duration::from_millis(100);
/// First interval between two polls of the program. Doubles up to `POLL_MAX`.
const POLL_MIN: Duration = Duration::from_micros(200);
const POLL_MAX: Duration = Duration::from_millis(5);

/// Runs a command in its own process group, which is dead when this returns.
pub(super) fn run(command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
    let deadline = Instant::now().checked_add(command.deadline);
    let mut group = spawn(command)?;
    let listening = listen(&mut group.child, command);
    let mut watchdog = None;
    let ended = match &listening {
        Ok((_, streams)) => wait(&mut group, streams, deadline, &mut watchdog),
        Err(_) => Ok(false),
    };
    // Before the group, whose id could be reused afterwards.
    watchdog.take();
    // Killed before it is reaped, because its id cannot be reused before.
    group.kill();
    let status = group.child.wait().map_err(|error| world_error(&error))?;
    let ([stdout, stderr], _) = listening?;
    if !ended? {
        return Err(WorldError::TimedOut);
    }
    let ((stdout, cut_out), (stderr, cut_err)) = (stdout.take(), stderr.take());
    Ok(CommandOutput { code: status.code(), stdout, stderr, truncated: cut_out || cut_err })
}

/// Time after which a watchdog is started. A shorter program is not worth another process.
const WATCHED_AFTER: Duration = Duration::from_millis(50);

/// Writes the input of a program and collects both output streams. The receiver gets a message at
/// the end of each stream.
fn listen(
    child: &mut Child,
    command: &ExternalCommand,
) -> Result<([CapturedStream; 2], Receiver<()>), WorldError> {
    let (done, streams) = channel();
    let kept = [CapturedStream::default(), CapturedStream::default()];
    let [stdout, stderr] = &kept;
    if let Some(pipe) = child.stdout.take() {
        collect(pipe, command.output_max, stdout.clone(), done.clone())?;
    }
    if let Some(pipe) = child.stderr.take() {
        collect(pipe, command.output_max, stderr.clone(), done)?;
    }
    feed(child, command)?;
    Ok((kept, streams))
}

/// Writes the standard input of a program.
pub(super) fn feed(child: &mut Child, command: &ExternalCommand) -> Result<(), WorldError> {
    let Some(mut pipe) = child.stdin.take() else { return Ok(()) };
    let bytes = command.stdin.clone();
    // A program that does not read its input is not an error.
    alongside(move || drop(pipe.write_all(&bytes)))
}

/// Starts a thread. Returns an error if the system cannot start one.
pub(super) fn alongside(work: impl FnOnce() + Send + 'static) -> Result<(), WorldError> {
    std::thread::Builder::new().spawn(work).map(drop).map_err(|error| world_error(&error))
}

pub(super) fn spawn(command: &ExternalCommand) -> Result<ProcessGroup, WorldError> {
    let (program, arguments) =
        command.argv.split_first().ok_or_else(|| WorldError::Io("empty command".to_owned()))?;
    let working = &*system::native(&command.folder);
    if !working.is_dir() {
        let folder = command.folder.display();
        return Err(WorldError::Io(format!("no folder `{folder}` to run in")));
    }
    let mut process = match &command.not_from {
        Some(folders) => outside(program, folders, command.path_reduced)?,
        None => std::process::Command::new(program),
    };
    process.args(arguments).current_dir(working);
    for name in &command.env_removed {
        process.env_remove(name);
    }
    process.envs(command.env.iter().map(|(name, value)| (name, value)));
    process.stdin(if command.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    ProcessGroup::start(&mut process).map_err(|error| world_error(&error))
}

/// Returns a command for a program that is searched outside of some directories if its name has no
/// slash. With `reduced`, the program searches other programs in the same way.
fn outside(
    program: &str,
    folders: &[PathBuf],
    reduced: bool,
) -> Result<std::process::Command, WorldError> {
    let entries = entries_outside(folders);
    let mut process = if !is_searched(program) {
        std::process::Command::new(program)
    } else {
        let mut found = entries.iter().map(|it| it.join(program)).filter(|it| can_run(it));
        let found = found.next().ok_or(WorldError::NotFound)?;
        named_command(&found, program)
    };
    if reduced && let Ok(path) = std::env::join_paths(&entries) {
        process.env("PATH", path);
    }
    Ok(process)
}

/// Returns the absolute entries of PATH outside of some directories.
fn entries_outside(folders: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folders: Vec<PathBuf> = folders.iter().flat_map(|it| [it.clone(), real(it)]).collect();
    let within = |path: &Path| folders.iter().any(|it| path.starts_with(it));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&path).filter(|it| it.is_absolute());
    entries.filter(|it| !within(it) && !within(&real(it))).collect()
}

/// Beginning of a stream, and whether it was cut.
#[derive(Clone, Default)]
struct CapturedStream(Arc<Mutex<(Vec<u8>, bool)>>);

impl CapturedStream {
    fn take(&self) -> (Vec<u8>, bool) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, bytes: &[u8], output_max: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = output_max.saturating_sub(kept.0.len());
        kept.0.extend(bytes.iter().take(room));
        kept.1 |= bytes.len() > room;
    }
}

/// Reads a stream to its end, stores its beginning, and sends one `()` at the end.
fn collect(
    mut pipe: impl Read + Send + 'static,
    output_max: usize,
    kept: CapturedStream,
    done: Sender<()>,
) -> Result<(), WorldError> {
    alongside(move || {
        let mut buffer = vec![0_u8; 64 * 1024];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => kept.add(buffer.get(..count).unwrap_or_default(), output_max),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done.send(()).ok(); // The receiver is dropped after the deadline.
    })
}

/// Waits until the program and its streams end (returns `true`), or until the deadline (returns
/// `false`). A program counts as ended even if a grandchild keeps its streams open.
fn wait(
    group: &mut ProcessGroup,
    streams: &Receiver<()>,
    deadline: Option<Instant>,
    watchdog: &mut Option<Watchdog>,
) -> Result<bool, WorldError> {
    let (mut open, mut pause) = (2_u8, POLL_MIN);
    let mut watched_at = Instant::now().checked_add(WATCHED_AFTER);
    let mut exited_at: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if exited_at.is_none() && group.has_exited()? {
            exited_at = Some(now);
        }
        match exited_at {
            Some(_) if open == 0 => return Ok(true),
            Some(at) if now.duration_since(at) >= DRAIN_MAX => return Ok(true),
            Some(_) | None => {}
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(exited_at.is_some());
        }
        if watched_at.is_some_and(|at| now >= at && exited_at.is_none()) {
            watched_at = None;
            *watchdog = Watchdog::over(group);
        }
        let left = deadline.map_or(pause, |deadline| deadline.duration_since(now));
        match streams.recv_timeout(pause.min(left)) {
            Ok(()) => {
                open = open.saturating_sub(1);
                pause = POLL_MIN; // A closed stream is the sign of an exit.
            }
            Err(RecvTimeoutError::Timeout) => pause = pause.saturating_mul(2).min(POLL_MAX),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(pause.min(left));
                pause = pause.saturating_mul(2).min(POLL_MAX);
            }
        }
    }
}
