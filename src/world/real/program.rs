//! A running program whose output is read incrementally. The output is bounded by backpressure, a
//! full pipe cannot block the program forever, and its whole process group dies with it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::file::world_error;
use super::process::{DRAIN_MAX, alongside, feed, spawn};
use super::system::{self, INTERRUPTS, ProcessGroup, Watchdog, exit_code};
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
/// Interval in which processes are reaped that other processes of the program left behind.
const ORPHANS_EVERY: Duration = Duration::from_secs(5);

/// A running program.
pub(super) struct RunningProcess {
    group: ProcessGroup,
    output: Receiver<ProcessEvent>,
    exited_at: Option<Instant>,
    /// Ends the group if this process dies.
    watchdog: Option<Watchdog>,
    drain: Option<OutputDrain>,
    /// Exit code after the end.
    ended: Option<Option<i32>>,
    /// When orphans were reaped last.
    reaped_at: Instant,
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
        let group = spawn(command)?;
        let watchdog = Watchdog::over(&group);
        let (drain, ended, reaped_at) = (None, None, Instant::now());
        let mut program =
            Self { group, output, exited_at: None, watchdog, drain, ended, reaped_at };
        let child = &mut program.group.child;
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
                self.group.kill();
                let now = Instant::now();
                self.drain = Some(OutputDrain { killed_at: now, heard_at: now });
                false
            }
            None => false,
        }
    }

    /// Reaps what the program left behind, so that it does not fill the table of processes.
    fn reap_orphans(&mut self) {
        if self.reaped_at.elapsed() >= ORPHANS_EVERY {
            self.reaped_at = Instant::now();
            let watchdog = self.watchdog.as_ref().map(Watchdog::id);
            let known: Vec<u32> = watchdog.into_iter().chain([self.group.child.id()]).collect();
            system::reap_orphans(&known);
        }
    }

    /// Kills the rest of the group, and returns the exit code.
    fn reap(&mut self) -> Result<ProcessEvent, WorldError> {
        // Before the group, whose id could be reused afterwards.
        self.watchdog = None;
        // Killed before it is reaped, because its id cannot be reused before.
        self.group.kill();
        let status = self.group.child.wait().map_err(|error| world_error(&error))?;
        let code = exit_code(status);
        self.ended = Some(code);
        Ok(ProcessEvent::Exited(code))
    }
}

impl RunningProgram for RunningProcess {
    fn wait(&mut self, wait_max: Duration) -> Result<ProcessEvent, WorldError> {
        if let Some(code) = self.ended {
            return Ok(ProcessEvent::Exited(code));
        }
        self.reap_orphans();
        let began = Instant::now();
        loop {
            if self.exited_at.is_none() && self.group.has_exited()? {
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
        self.group.ask_to_end();
        let began = Instant::now();
        while began.elapsed() < grace && !self.group.has_exited().unwrap_or(true) {
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

/// Records signals that would end this process.
pub(super) fn note_interrupts(flag: &Arc<AtomicBool>) {
    for signal in INTERRUPTS {
        // If the signal cannot be registered, it ends the process as usual.
        signal_hook::flag::register(signal, Arc::clone(flag)).ok();
    }
}
