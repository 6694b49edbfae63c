//! Scripted programs: their output, their duration, and their effects on the machine.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{FakeWorld, open};
use crate::{ProcessEvent, RunningProgram, World as _, WorldError};

/// One action of a scripted program.
#[derive(Clone)]
pub enum Play {
    /// Writes to standard output.
    Says(Vec<u8>),
    /// Writes to standard error.
    Complains(Vec<u8>),
    /// Waits.
    Takes(Duration),
    /// Changes the machine.
    Does(Arc<dyn Fn(&FakeWorld) + Send + Sync>),
    /// Exits with this code, or by a signal if `None`. A script without it exits with 0.
    Ends(Option<i32>),
    /// Waits forever. The actions behind it run when the program is asked to end.
    Hangs,
    /// Fails when it is waited for.
    Lost(WorldError),
}

impl Play {
    /// Creates an action that changes the machine.
    pub fn does(what: impl Fn(&FakeWorld) + Send + Sync + 'static) -> Self {
        Self::Does(Arc::new(what))
    }

    /// Creates an action that writes a line to standard output.
    pub fn says(line: impl fmt::Display) -> Self {
        Self::Says(format!("{line}\n").into_bytes())
    }

    /// Creates an action that writes a line to standard error.
    pub fn complains(line: impl fmt::Display) -> Self {
        Self::Complains(format!("{line}\n").into_bytes())
    }
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says(bytes) => write!(f, "Says({} bytes)", bytes.len()),
            Self::Complains(bytes) => write!(f, "Complains({} bytes)", bytes.len()),
            Self::Takes(time) => write!(f, "Takes({time:?})"),
            Self::Does(_) => f.write_str("Does"),
            Self::Ends(code) => write!(f, "Ends({code:?})"),
            Self::Hangs => f.write_str("Hangs"),
            Self::Lost(error) => write!(f, "Lost({error})"),
        }
    }
}

/// Scripts of programs whose arguments start with `argv_start`.
#[derive(Debug)]
pub(super) struct Plays {
    argv_start: Vec<String>,
    plays: VecDeque<Vec<Play>>,
}

pub(super) fn add(all: &mut Vec<Plays>, argv_start: &[&str], play: Vec<Play>) {
    let argv_start: Vec<String> = argv_start.iter().map(|&it| it.to_owned()).collect();
    match all.iter_mut().find(|it| it.argv_start == argv_start) {
        Some(known) => known.plays.push_back(play),
        None => all.push(Plays { argv_start, plays: VecDeque::from([play]) }),
    }
}

pub(super) fn next(all: &mut [Plays], argv: &[String]) -> Option<Vec<Play>> {
    let plays = &mut all.iter_mut().rev().find(|it| argv.starts_with(&it.argv_start))?.plays;
    let play = plays.pop_front()?;
    if plays.is_empty() {
        plays.push_back(play.clone());
    }
    Some(play)
}

/// A running scripted program.
pub(super) struct FakeProgram {
    world: FakeWorld,
    left: VecDeque<Play>,
    ended: Option<Option<i32>>,
}

impl FakeProgram {
    pub(super) fn new(world: FakeWorld, play: Vec<Play>) -> Self {
        Self { world, left: play.into(), ended: None }
    }
}

impl RunningProgram for FakeProgram {
    fn wait(&mut self, wait_max: Duration) -> Result<ProcessEvent, WorldError> {
        loop {
            if let Some(code) = self.ended {
                return Ok(ProcessEvent::Exited(code));
            }
            match self.left.pop_front() {
                Some(Play::Says(bytes)) => return Ok(ProcessEvent::Stdout(bytes)),
                Some(Play::Complains(bytes)) => return Ok(ProcessEvent::Stderr(bytes)),
                Some(Play::Does(what)) => what(&self.world),
                Some(Play::Takes(time)) if time <= wait_max => self.world.advance(time),
                Some(Play::Takes(time)) => {
                    self.world.advance(wait_max);
                    self.left.push_front(Play::Takes(time.saturating_sub(wait_max)));
                    return Ok(ProcessEvent::Nothing);
                }
                Some(Play::Hangs) => {
                    self.world.advance(wait_max);
                    self.left.push_front(Play::Hangs);
                    return Ok(ProcessEvent::Nothing);
                }
                Some(Play::Lost(error)) => return Err(error),
                Some(Play::Ends(code)) => self.ended = Some(code),
                None => self.ended = Some(Some(0)),
            }
        }
    }

    fn end(&mut self, grace: Duration, hear: &mut dyn FnMut(&ProcessEvent)) {
        if self.ended.is_none() {
            // A hanging program runs on, as far as the grace time permits.
            while matches!(self.left.front(), Some(Play::Hangs | Play::Takes(_))) {
                self.left.pop_front();
            }
            let until = self.world.elapsed().saturating_add(grace);
            while !grace.is_zero() && self.world.elapsed() < until {
                let left = until.saturating_sub(self.world.elapsed());
                match self.wait(left) {
                    Ok(sign @ (ProcessEvent::Stdout(_) | ProcessEvent::Stderr(_))) => hear(&sign),
                    Ok(ProcessEvent::Exited(_) | ProcessEvent::Nothing) | Err(_) => break,
                }
            }
            self.ended = None;
            open(&self.world.machine).log.push("killed".to_owned());
        }
        self.ended.get_or_insert(None);
    }
}

impl Drop for FakeProgram {
    fn drop(&mut self) {
        self.end(Duration::ZERO, &mut |_| {});
    }
}
