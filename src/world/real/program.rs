//! A program whose output is taken as it comes: no full pipe holds it up for good, a flood is taken
//! no faster than it is read, and its whole process group dies with it.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::file::said;
use super::process::{DRAIN_MAX, alongside, feed, has_exited, kill_group, spawn};
use super::{Command, RunningProgram, WorldError};
use crate::world::Sign;

/// Bytes taken at once.
const CHUNK: usize = 64 * 1024;
/// Chunks that wait to be taken; whoever writes more has to wait.
const CHUNKS: usize = 16;
/// Longest time between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A program that runs.
pub(super) struct Program {
    child: Child,
    output: Receiver<Sign>,
    exited_at: Option<Instant>,
    /// How it ended, once that is so.
    ended: Option<Option<i32>>,
}

impl Program {
    pub(super) fn start(command: &Command) -> Result<Self, WorldError> {
        let (sender, output) = sync_channel(CHUNKS);
        // Dropped where something fails below, it ends the program.
        let mut program = Self { child: spawn(command)?, output, exited_at: None, ended: None };
        let child = &mut program.child;
        if let Some(pipe) = child.stdout.take() {
            pass_on(pipe, Sign::Said, sender.clone())?;
        }
        if let Some(pipe) = child.stderr.take() {
            pass_on(pipe, Sign::Complained, sender)?;
        }
        feed(child, command)?;
        Ok(program)
    }

    /// Hears what comes in so much time, or until nothing can come any more.
    fn hear_for(&self, time: Duration, hear: &mut dyn FnMut(&Sign)) {
        let began = Instant::now();
        loop {
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            match self.output.recv_timeout(left) {
                Ok(sign) => hear(&sign),
                Err(RecvTimeoutError::Timeout) => return,
                // It closed its streams and goes on.
                Err(RecvTimeoutError::Disconnected) if self.ended.is_none() => {
                    return std::thread::sleep(left);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Kills what is left of the group, and takes the exit code.
    fn reap(&mut self) -> Result<Sign, WorldError> {
        // Killed before it is reaped: its number cannot belong to anyone else yet.
        kill_group(&mut self.child);
        let status = self.child.wait().map_err(|error| said(&error))?;
        let code = exit_code(status);
        self.ended = Some(code);
        Ok(Sign::Ended(code))
    }
}

/// The exit code of a program; for one that a signal ended 128 and the signal, as a shell reports it.
#[cfg(unix)]
fn exit_code(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| Some(status.signal()?.saturating_add(128)))
}

/// The exit code of a program.
#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code()
}

impl RunningProgram for Program {
    fn wait(&mut self, wait_max: Duration) -> Result<Sign, WorldError> {
        if let Some(code) = self.ended {
            return Ok(Sign::Ended(code));
        }
        let began = Instant::now();
        loop {
            if self.exited_at.is_none() && has_exited(&mut self.child)? {
                self.exited_at = Some(Instant::now());
            }
            let left = wait_max.saturating_sub(began.elapsed());
            match self.output.recv_timeout(LOOK.min(left)) {
                Ok(sign) => return Ok(sign),
                Err(RecvTimeoutError::Disconnected) if self.exited_at.is_some() => {
                    return self.reap();
                }
                // It closed its streams and goes on.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK.min(left)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A grandchild may hold the streams open for ever.
            if self.exited_at.is_some_and(|at| at.elapsed() >= DRAIN_MAX) {
                return self.reap();
            }
            if began.elapsed() >= wait_max {
                return Ok(Sign::Nothing);
            }
        }
    }

    fn end(&mut self, grace: Duration, hear: &mut dyn FnMut(&Sign)) {
        if self.ended.is_some() {
            return;
        }
        ask_group(&mut self.child);
        let began = Instant::now();
        while began.elapsed() < grace && !has_exited(&mut self.child).unwrap_or(true) {
            // What it still says must not hold it up.
            self.hear_for(LOOK, hear);
        }
        // One that cannot be reaped is dead all the same.
        drop(self.reap());
        self.hear_for(DRAIN_MAX, hear);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end(Duration::ZERO, &mut |_| {});
    }
}

/// Passes on what comes out of a stream, until it ends or nobody takes it any more.
fn pass_on(
    mut pipe: impl Read + Send + 'static,
    sign: fn(Vec<u8>) -> Sign,
    to: SyncSender<Sign>,
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
        // Gone already is as good as asked.
        rustix::process::kill_process_group(pid, rustix::process::Signal::TERM).ok();
    }
}

#[cfg(not(unix))]
fn ask_group(_child: &mut Child) {}

/// Notes what would end this process; a terminal that is closed, too.
pub(super) fn note_interrupts(flag: &Arc<AtomicBool>) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    #[cfg(unix)]
    signals.push(signal_hook::consts::SIGHUP);
    for signal in signals {
        // One that cannot be noted ends the process, as it would without this.
        signal_hook::flag::register(signal, Arc::clone(flag)).ok();
    }
}

/// Lets a write over the limit of a file's size (`ulimit -f`) fail, where it would end this process.
pub(super) fn outlive_file_limits() {
    #[cfg(unix)]
    // Where it cannot be noted, such a write ends the process, as it would without this.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).ok();
}

/// How often marked processes are looked for at most.
#[cfg(any(target_os = "linux", target_os = "android"))]
const KILL_ROUNDS_MAX: usize = 32;

/// Kills the processes whose environment has this entry. They may start others while they are looked
/// for, so this is done until a look finds none that is not dying yet.
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

/// The other processes whose environment has this entry, each as soon as it is found.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn marked(entry: &str) -> Result<impl Iterator<Item = i32>, WorldError> {
    let own = i32::try_from(std::process::id()).ok();
    let found = std::fs::read_dir("/proc").map_err(|error| said(&error))?;
    Ok(found.flatten().filter_map(move |found| {
        let id = found.file_name().to_str()?.parse().ok().filter(|it| Some(*it) != own)?;
        // Those of others cannot be read, and are not ours.
        let environment = std::fs::read(found.path().join("environ")).ok()?;
        environment.split(|it| *it == 0).any(|it| it == entry.as_bytes()).then_some(id)
    }))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn kill_marked(_entry: &str) -> Result<usize, WorldError> {
    Err(WorldError::Unsupported)
}
