//! A running program whose output is read incrementally. The output is bounded by backpressure, a
//! full pipe cannot block the program forever, and its whole process group dies with it.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::file::world_error;
use super::process::{DRAIN_MAX, Watchdog, alongside, feed, has_exited, kill_group, spawn};
use super::{ExternalCommand, RunningProgram, WorldError};
use crate::ProcessEvent;

/// Maximum bytes of one read.
const CHUNK: usize = 64 * 1024;
/// Maximum number of unread chunks. The program then waits.
const CHUNKS: usize = 16;
/// Maximum interval between two polls of the exit status.
const LOOK: Duration = Duration::from_millis(10);
/// Time without output, after the group was killed, after which no more output is expected.
const QUIET_MAX: Duration = Duration::from_secs(2);
/// Time after which output no longer counts, because a process that left the group writes it.
const FOREIGN_MAX: Duration = Duration::from_secs(10);

/// A running program.
pub(super) struct RunningProcess {
    child: Child,
    output: Receiver<ProcessEvent>,
    exited_at: Option<Instant>,
    /// Ends the group if this process dies.
    watchdog: Option<Watchdog>,
    drain: Option<OutputDrain>,
    /// Exit code after the end.
    ended: Option<Option<i32>>,
}

/// The output of a group that was killed is still read.
#[derive(Debug, Clone, Copy)]
struct OutputDrain {
    killed_at: Instant,
    /// When the last output came.
    heard_at: Instant,
}

impl RunningProcess {
    pub(super) fn start(command: &ExternalCommand) -> Result<Self, WorldError> {
        let (sender, output) = sync_channel(CHUNKS);
        // On an error below, dropping it kills the program.
        let child = spawn(command)?;
        let watchdog = Watchdog::over(&child);
        let mut program =
            Self { child, output, exited_at: None, watchdog, drain: None, ended: None };
        let child = &mut program.child;
        if let Some(pipe) = child.stdout.take() {
            pass_on(pipe, ProcessEvent::Stdout, sender.clone())?;
        }
        if let Some(pipe) = child.stderr.take() {
            pass_on(pipe, ProcessEvent::Stderr, sender)?;
        }
        feed(child, command)?;
        Ok(program)
    }

    /// Passes events to `hear` for a duration, or until none can follow.
    fn hear_for(&self, time: Duration, hear: &mut dyn FnMut(&ProcessEvent)) {
        let began = Instant::now();
        loop {
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            match self.output.recv_timeout(left) {
                Ok(sign) => hear(&sign),
                Err(RecvTimeoutError::Timeout) => return,
                // The program closed its streams and still runs.
                Err(RecvTimeoutError::Disconnected) if self.ended.is_none() => {
                    return std::thread::sleep(left);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Returns whether no more output of the program is expected. A grandchild can keep the streams open, so the group is
    /// killed a moment after the exit. What it wrote before is still read, however busy the machine is. A process that left
    /// the group can keep them open forever, and write.
    fn is_drained(&mut self) -> bool {
        let Some(exited_at) = self.exited_at else { return false };
        match self.drain {
            Some(it) => it.heard_at.elapsed() >= QUIET_MAX || it.killed_at.elapsed() >= FOREIGN_MAX,
            None if exited_at.elapsed() >= DRAIN_MAX => {
                kill_group(&mut self.child);
                let now = Instant::now();
                self.drain = Some(OutputDrain { killed_at: now, heard_at: now });
                false
            }
            None => false,
        }
    }

    /// Kills the rest of the group, and returns the exit code.
    fn reap(&mut self) -> Result<ProcessEvent, WorldError> {
        // Before the group, whose id could be reused afterwards.
        self.watchdog = None;
        // Killed before it is reaped, because its id cannot be reused before.
        kill_group(&mut self.child);
        let status = self.child.wait().map_err(|error| world_error(&error))?;
        let code = exit_code(status);
        self.ended = Some(code);
        Ok(ProcessEvent::Exited(code))
    }
}

/// Returns the exit code. For a signal it is 128 plus the signal, as in a shell.
#[cfg(unix)]
fn exit_code(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| Some(status.signal()?.saturating_add(128)))
}

/// Returns the exit code of a program.
#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code()
}

impl RunningProgram for RunningProcess {
    fn wait(&mut self, wait_max: Duration) -> Result<ProcessEvent, WorldError> {
        if let Some(code) = self.ended {
            return Ok(ProcessEvent::Exited(code));
        }
        let began = Instant::now();
        loop {
            if self.exited_at.is_none() && has_exited(&mut self.child)? {
                self.exited_at = Some(Instant::now());
            }
            let left = wait_max.saturating_sub(began.elapsed());
            match self.output.recv_timeout(LOOK.min(left)) {
                Ok(_) if self.drain.is_some_and(|it| it.killed_at.elapsed() >= FOREIGN_MAX) => {
                    return self.reap();
                }
                Ok(sign) => {
                    self.drain.iter_mut().for_each(|it| it.heard_at = Instant::now());
                    return Ok(sign);
                }
                Err(RecvTimeoutError::Disconnected) if self.exited_at.is_some() => {
                    return self.reap();
                }
                // The program closed its streams and still runs.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK.min(left)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_drained() {
                return self.reap();
            }
            if began.elapsed() >= wait_max {
                return Ok(ProcessEvent::Nothing);
            }
        }
    }

    fn end(&mut self, grace: Duration, hear: &mut dyn FnMut(&ProcessEvent)) {
        if self.ended.is_some() {
            return;
        }
        ask_group(&mut self.child);
        let began = Instant::now();
        while began.elapsed() < grace && !has_exited(&mut self.child).unwrap_or(true) {
            // Its remaining output must not block it.
            self.hear_for(LOOK, hear);
        }
        // A program that cannot be reaped is dead, too.
        drop(self.reap());
        self.hear_for(DRAIN_MAX, hear);
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.end(Duration::ZERO, &mut |_| {});
    }
}

/// Forwards a stream until it ends or the receiver is dropped.
fn pass_on(
    mut pipe: impl Read + Send + 'static,
    sign: fn(Vec<u8>) -> ProcessEvent,
    to: SyncSender<ProcessEvent>,
) -> Result<(), WorldError> {
    alongside(move || {
        let mut buffer = vec![0_u8; CHUNK];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                    if to.send(sign(bytes)).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    })
}

#[cfg(unix)]
fn ask_group(child: &mut Child) {
    if let Ok(pid) = super::process::pid(child) {
        // An error means that the group is already dead.
        rustix::process::kill_process_group(pid, rustix::process::Signal::TERM).ok();
    }
}

#[cfg(not(unix))]
fn ask_group(_child: &mut Child) {}

/// Records signals that would end this process, including a hangup of the terminal.
pub(super) fn note_interrupts(flag: &Arc<AtomicBool>) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    #[cfg(unix)]
    let signals = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
    #[cfg(not(unix))]
    let signals = [SIGINT, SIGTERM];
    for signal in signals {
        // If the signal cannot be registered, it ends the process as usual.
        signal_hook::flag::register(signal, Arc::clone(flag)).ok();
    }
}

/// Makes a write above the file size limit (`ulimit -f`) fail instead of ending this process.
pub(super) fn outlive_file_limits() {
    #[cfg(unix)]
    // If the signal cannot be registered, it ends the process as usual.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).ok();
}

/// Maximum number of searches for marked processes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const KILL_ROUNDS_MAX: usize = 32;

/// Kills the processes whose environment contains this entry. They can start others meanwhile, so
/// the search repeats until all found processes are already dying.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn kill_marked(entry: &str) -> Result<usize, WorldError> {
    use std::collections::BTreeSet;

    use rustix::process::{Pid, Signal, kill_process};
    let mut killed = BTreeSet::new();
    for _ in 0..KILL_ROUNDS_MAX {
        let before = killed.len();
        for id in marked(entry)? {
            let pid = Pid::from_raw(id).filter(|_| !killed.contains(&id));
            if pid.is_some_and(|it| kill_process(it, Signal::KILL).is_ok()) {
                killed.insert(id);
            }
        }
        if killed.len() == before {
            break;
        }
    }
    Ok(killed.len())
}

/// Returns the other processes whose environment contains this entry, each as soon as it is found.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn marked(entry: &str) -> Result<impl Iterator<Item = i32>, WorldError> {
    let own = i32::try_from(std::process::id()).ok();
    let found = std::fs::read_dir("/proc").map_err(|error| world_error(&error))?;
    Ok(found.flatten().filter_map(move |found| {
        let id = found.file_name().to_str()?.parse().ok().filter(|it| Some(*it) != own)?;
        // Processes of other users cannot be read and do not matter.
        let environment = std::fs::read(found.path().join("environ")).ok()?;
        environment.split(|it| *it == 0).any(|it| it == entry.as_bytes()).then_some(id)
    }))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn kill_marked(_entry: &str) -> Result<usize, WorldError> {
    Err(WorldError::Unsupported)
}
