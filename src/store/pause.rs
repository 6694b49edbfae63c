//! Pauses of the gate: a human switches it off for a while, in a project or in one session of it.
//! `paused.json` under the root of our own; what is over is no pause, and goes with the next change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::file::{self, Durability, Saved};
use super::layout;
use crate::id::SessionId;
use crate::limits::{PAUSE_FILE_BYTES_MAX, PAUSE_MAX};
use crate::time::{Timestamp, duration_text};
use crate::world::{HeldLock, World, WorldError};

/// Under the root of our own.
const FILE: &str = "paused.json";
const LOCK: &str = ".paused.lock";
const FORMAT_VERSION: u32 = 1;
/// A person who types would rather wait than lose the pause.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The gate switched off for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// In this session; in the whole project where there is none.
    pub session: Option<SessionId>,
    /// From when.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Why, as the human said; or empty.
    pub reason: String,
    /// Whether it was asked for in the shell of an agent.
    pub by_agent: bool,
}

impl Pause {
    /// Whether it holds at a moment. A clock that went back before its beginning ends it, too.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until && self.until.since(self.since) <= PAUSE_MAX
    }

    /// What the user is told: until when, why, and how to end it.
    #[must_use]
    pub fn text(&self, now: Timestamp) -> String {
        let left = self.until.since(now).as_secs().div_ceil(60).saturating_mul(60);
        let left = duration_text(Duration::from_secs(left));
        let session = if self.session.is_some() { " for this session" } else { "" };
        let who = if self.by_agent { " from an agent's shell" } else { "" };
        let why = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        format!(
            "paused{session}{who} until {} ({left} left){why}; `policyd resume` ends it",
            self.until
        )
    }

    /// Whether a reason for judging nothing is the [`Self::text`] of a pause.
    #[must_use]
    pub fn is_told_by(why: &str) -> bool {
        why.starts_with("paused")
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let session = match text("session") {
            None => None,
            Some(id) => Some(SessionId::parse(id)?),
        };
        Some(Self {
            session,
            since: Timestamp::parse(text("since")?)?,
            until: Timestamp::parse(text("until")?)?,
            reason: text("reason").unwrap_or_default().to_owned(),
            by_agent: value.get("by_agent") == Some(&Value::Bool(true)),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "session": self.session.as_ref().map(SessionId::as_str),
            "since": self.since.to_string(),
            "until": self.until.to_string(),
            "reason": self.reason,
            "by_agent": self.by_agent,
        })
    }
}

/// The pauses under one root.
pub struct Pauses<'a> {
    world: &'a dyn World,
    root: PathBuf,
}

impl<'a> Pauses<'a> {
    /// Those under a root of our own.
    #[must_use]
    pub fn new(world: &'a dyn World, root: &Path) -> Self {
        Self { world, root: root.to_owned() }
    }

    /// Every pause that holds now.
    ///
    /// # Errors
    /// Why the file is not used, in one sentence with the cure.
    pub fn all(&self, now: Timestamp) -> Result<Vec<Pause>, String> {
        let path = self.root.join(FILE);
        let wrong = |why: &str| {
            format!("{} is not used: {why}; `policyd resume` removes it", path.display())
        };
        let bytes = match self.world.read(&path, PAUSE_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(WorldError::Missing) => return Ok(Vec::new()),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))?;
        let pauses = value.get("pauses").and_then(Value::as_array);
        let pauses = pauses.ok_or_else(|| wrong("it holds no list of `pauses`"))?;
        let read: Option<Vec<Pause>> = pauses.iter().map(Pause::read).collect();
        let mut read =
            read.ok_or_else(|| wrong("one of its `pauses` has no `since` and `until`"))?;
        read.retain(|it| it.holds(now));
        Ok(read)
    }

    /// The pause that holds for a session: its own, else the project's.
    ///
    /// # Errors
    /// As [`Pauses::all`].
    pub fn of(&self, session: &SessionId, now: Timestamp) -> Result<Option<Pause>, String> {
        let all = self.all(now)?;
        let own = all.iter().find(|it| it.session.as_ref() == Some(session));
        Ok(own.or_else(|| all.iter().find(|it| it.session.is_none())).cloned())
    }

    /// Pauses; one of the same session, or of the project, is replaced.
    ///
    /// # Errors
    /// The lock was not free, or the file could not be written.
    pub fn add(&self, pause: Pause, now: Timestamp) -> Result<(), WorldError> {
        let _held = self.lock()?;
        // A file that cannot be used pauses nothing, so nothing is lost with it.
        let mut all = self.all(now).unwrap_or_default();
        all.retain(|it| it.session != pause.session);
        all.push(pause);
        self.write(&all)
    }

    /// Ends the pauses of a session, or every one; returns those that held.
    ///
    /// # Errors
    /// The lock was not free, or the file could not be written.
    pub fn end(
        &self,
        session: Option<&SessionId>,
        now: Timestamp,
    ) -> Result<Vec<Pause>, WorldError> {
        if self.world.stat(&self.root.join(FILE)).is_err() {
            return Ok(Vec::new());
        }
        let _held = self.lock()?;
        let all = self.all(now).unwrap_or_default();
        let ends = |it: &Pause| session.is_none() || it.session.as_ref() == session;
        let (ended, left): (Vec<Pause>, Vec<Pause>) = all.into_iter().partition(ends);
        if left.is_empty() {
            self.world.remove(&self.root.join(FILE))?;
        } else {
            self.write(&left)?;
        }
        Ok(ended)
    }

    fn lock(&self) -> Result<Box<dyn HeldLock>, WorldError> {
        let path = self.root.join(LOCK);
        match self.world.lock(&path, LOCK_WAIT) {
            Err(WorldError::Missing) => {
                self.world.create_folder(&self.root)?;
                layout::hide(self.world, &self.root);
                self.world.lock(&path, LOCK_WAIT)
            }
            answer => answer,
        }
    }

    fn write(&self, pauses: &[Pause]) -> Result<(), WorldError> {
        let pauses: Vec<Value> = pauses.iter().map(Pause::to_json).collect();
        let text = format!("{:#}\n", json!({"version": FORMAT_VERSION, "pauses": pauses}));
        match file::save(self.world, &self.root.join(FILE), text.as_bytes(), &Durability::default())
        {
            Saved::Durable { .. } | Saved::Degraded { .. } => Ok(()),
            Saved::NotSaved { why, .. } => Err(WorldError::Refused(why)),
        }
    }
}
