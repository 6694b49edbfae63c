//! External commands under a deadline: no hanging, no zombies, bounded output.
//! Threads live here and in the wait for a lock: one per stream, so that no full pipe can block
//! another.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::file::said;
use super::{Command, CommandOutput, WorldError};

/// Time for the streams to end after the program has; a grandchild may hold them open for ever.
pub(super) const DRAIN_MAX: Duration = Duration::from_millis(100);
/// First wait between two looks at the program; doubles up to `POLL_MAX`.
const POLL_MIN: Duration = Duration::from_micros(200);
const POLL_MAX: Duration = Duration::from_millis(5);

/// Runs a command in a process group of its own, which is dead when this returns.
pub(super) fn run(command: &Command) -> Result<CommandOutput, WorldError> {
    let deadline = Instant::now().checked_add(command.deadline);
    let mut child = spawn(command)?;
    let listening = listen(&mut child, command);
    let mut watchdog = None;
    let ended = match &listening {
        Ok((_, streams)) => wait(&mut child, streams, deadline, &mut watchdog),
        Err(_) => Ok(false),
    };
    // Before the group is: its number would not be its own any more.
    drop(watchdog);
    // Killed before it is reaped: its number cannot belong to anyone else yet.
    kill_group(&mut child);
    let status = child.wait().map_err(|error| said(&error))?;
    let ([stdout, stderr], _) = listening?;
    if !ended? {
        return Err(WorldError::TimedOut);
    }
    let ((stdout, cut_out), (stderr, cut_err)) = (stdout.take(), stderr.take());
    Ok(CommandOutput { code: status.code(), stdout, stderr, truncated: cut_out || cut_err })
}

/// Time after which a program is watched: one that ends sooner is not worth a process more.
const WATCHED_AFTER: Duration = Duration::from_millis(50);

/// A process that kills the group of a program once this process is gone, however it ended: the machine
/// closes the pipe between them.
#[cfg(unix)]
struct Watchdog(Child);

#[cfg(unix)]
impl Watchdog {
    /// Watches a program; nothing where the machine grants no process more.
    fn over(child: &Child) -> Option<Self> {
        let mut process = std::process::Command::new("/bin/sh");
        let group = child.id().to_string();
        process.args(["-c", "read -r _ || kill -s KILL -- \"-$0\"", &group]);
        process.env_clear().current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Whoever kills the group of this process does not reach it.
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        process.spawn().ok().map(Self)
    }
}

#[cfg(unix)]
impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// There is none.
#[cfg(not(unix))]
struct Watchdog;

#[cfg(not(unix))]
impl Watchdog {
    fn over(_child: &Child) -> Option<Self> {
        None
    }
}

/// Feeds a program, and keeps what it says on both streams; whoever is given the end of them hears of each.
fn listen(child: &mut Child, command: &Command) -> Result<([Kept; 2], Receiver<()>), WorldError> {
    let (done, streams) = channel();
    let kept = [Kept::default(), Kept::default()];
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

/// Writes what a program is to read.
pub(super) fn feed(child: &mut Child, command: &Command) -> Result<(), WorldError> {
    let Some(mut pipe) = child.stdin.take() else { return Ok(()) };
    let bytes = command.stdin.clone();
    // A program that does not read its input is not an error.
    alongside(move || drop(pipe.write_all(&bytes)))
}

/// Does something in a thread of its own; an error where the system grants none.
pub(super) fn alongside(work: impl FnOnce() + Send + 'static) -> Result<(), WorldError> {
    std::thread::Builder::new().spawn(work).map(drop).map_err(|error| said(&error))
}

pub(super) fn spawn(command: &Command) -> Result<Child, WorldError> {
    let (program, arguments) = command
        .argv
        .split_first()
        .ok_or_else(|| WorldError::Refused("empty command".to_owned()))?;
    if !command.folder.is_dir() {
        let folder = command.folder.display();
        return Err(WorldError::Refused(format!("no folder `{folder}` to run in")));
    }
    let mut process = match &command.not_from {
        Some(folders) => outside(program, (folders, command.path_reduced))?,
        None => std::process::Command::new(program),
    };
    process.args(arguments).current_dir(&command.folder);
    for name in &command.env_removed {
        process.env_remove(name);
    }
    process.envs(command.env.iter().map(|(name, value)| (name, value)));
    process.stdin(if command.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    process.spawn().map_err(|error| said(&error))
}

/// A program that lies outside of some folders, if it is named without a slash; with `reduced`, it looks up
/// others in the same way.
fn outside(
    program: &str,
    (folders, reduced): (&[PathBuf], bool),
) -> Result<std::process::Command, WorldError> {
    let entries = entries_outside(folders);
    let mut process = if cfg!(not(unix)) || program.contains('/') {
        std::process::Command::new(program)
    } else {
        let mut found = entries.iter().map(|it| it.join(program)).filter(|it| can_run(it));
        let mut process = std::process::Command::new(found.next().ok_or(WorldError::Missing)?);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut process, program);
        process
    };
    if reduced && let Ok(path) = std::env::join_paths(&entries) {
        process.env("PATH", path);
    }
    Ok(process)
}

/// The entries of PATH that lie outside of some folders; none that is relative.
fn entries_outside(folders: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folders: Vec<PathBuf> = folders.iter().flat_map(|it| [it.clone(), real(it)]).collect();
    let within = |path: &Path| folders.iter().any(|it| path.starts_with(it));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&path).filter(|it| it.is_absolute());
    entries.filter(|it| !within(it) && !within(&real(it))).collect()
}

#[cfg(unix)]
fn can_run(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn can_run(path: &Path) -> bool {
    path.is_file()
}

/// The beginning of one stream, and whether there was more.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u8>, bool)>>);

impl Kept {
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

/// Reads a stream to its end, keeping its beginning; sends one `()` at the end.
fn collect(
    mut pipe: impl Read + Send + 'static,
    output_max: usize,
    kept: Kept,
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
        done.send(()).ok(); // Nobody waits any more after the deadline.
    })
}

/// Waits until the program and its streams have ended: true; or until the deadline: false. A
/// program that ended while a grandchild holds its streams has ended.
fn wait(
    child: &mut Child,
    streams: &Receiver<()>,
    deadline: Option<Instant>,
    watchdog: &mut Option<Watchdog>,
) -> Result<bool, WorldError> {
    let (mut open, mut pause) = (2_u8, POLL_MIN);
    let mut watched_at = Instant::now().checked_add(WATCHED_AFTER);
    let mut exited_at: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if exited_at.is_none() && has_exited(child)? {
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
            *watchdog = Watchdog::over(child);
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

/// Whether the program has ended; it is not reaped here.
#[cfg(unix)]
pub(super) fn has_exited(child: &mut Child) -> Result<bool, WorldError> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid(child)?), options);
    status.map(|it| it.is_some()).map_err(|error| said(&io::Error::from(error)))
}

#[cfg(not(unix))]
pub(super) fn has_exited(child: &mut Child) -> Result<bool, WorldError> {
    child.try_wait().map(|it| it.is_some()).map_err(|error| said(&error))
}

#[cfg(unix)]
pub(super) fn kill_group(child: &mut Child) {
    if let Ok(pid) = pid(child) {
        // Gone already is as good as killed.
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).ok();
    }
    child.kill().ok(); // The program may have left its group.
}

#[cfg(not(unix))]
pub(super) fn kill_group(child: &mut Child) {
    child.kill().ok();
}

#[cfg(unix)]
pub(super) fn pid(child: &Child) -> Result<rustix::process::Pid, WorldError> {
    let id = i32::try_from(child.id()).unwrap_or(0);
    rustix::process::Pid::from_raw(id).ok_or(WorldError::Missing)
}
