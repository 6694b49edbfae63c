//! What is carried over from one context into the next: `state/context-summaries.json`, with one
//! summary for each of the last sessions, and beside the session's state as `context-summary.md` for
//! users. A summary is delivered once.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{DocumentError, Documents};
use super::file::Durability;
use policyd_base::limits::{SUMMARIES_BYTES_MAX, SUMMARIES_MAX};
use policyd_state::continuation::SummaryOrigin;
use policyd_state::stored::{fields, items, or_default};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

const FILE: &str = "state/context-summaries.json";
const LOCK: &str = "state/.context-summaries.lock";
const FOLDER: &str = "state";
const VERSION: u64 = 1;
/// Human-readable copy in the directory of a session, as shipwright names it.
pub const SUMMARY_FILE: &str = "context-summary.md";

/// Made where a session ends: its context may come back.
pub const AT_END: &str = "session_end";

/// A summary of one session. Reading is tolerant: a value of another type counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend(
    "required" = ["session_id", "folder", "timestamp", "reason", "iteration", "text"]
))]
pub struct Summary {
    /// Id of the session.
    #[serde(rename = "session_id", deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub session: String,
    /// Directory of the session's project.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub folder: String,
    /// When the summary was written.
    #[serde(rename = "timestamp", deserialize_with = "or_default")]
    pub at: Timestamp,
    /// Why the summary was written: `compact`, `act`, `session_end`, `clear`, ….
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub reason: String,
    /// Turn after which the summary was written.
    #[serde(deserialize_with = "or_default")]
    pub iteration: u64,
    /// Text of the summary.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub text: String,
    /// When the summary was delivered to another context.
    #[serde(deserialize_with = "or_default")]
    pub told: Option<Timestamp>,
    /// Process of the client; empty if the client did not name it.
    #[serde(deserialize_with = "or_default")]
    pub client: String,
}

impl Summary {
    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> SummaryOrigin<'_> {
        let Self { session, folder, client, reason, at, .. } = self;
        SummaryOrigin { session, folder, client, reason, at: *at }
    }
}

/// `state/context-summaries.json`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["version", "summaries"]))]
pub(super) struct SummaryFile {
    /// Version of the format.
    #[serde(deserialize_with = "or_default")]
    version: u64,
    /// Summaries, the newest last; at most one for each session.
    #[serde(deserialize_with = "items")]
    summaries: Vec<Summary>,
}

/// The summaries of a project.
pub struct Summaries<'a> {
    documents: Documents<'a>,
}

impl<'a> Summaries<'a> {
    /// Returns the store of a state directory; `wait` is the longest wait for the lock.
    #[must_use]
    pub fn new(world: &'a dyn World, own: &Path, durability: Durability, wait: Duration) -> Self {
        Self { documents: Documents::new(world, own, durability, wait, SUMMARIES_BYTES_MAX) }
    }

    /// Returns all summaries, the newest last.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn all(&self) -> Result<Vec<Summary>, DocumentError> {
        Ok(self.documents.fields(FILE)?.map(read).unwrap_or_default())
    }

    /// Returns why the summaries are unknown.
    #[must_use]
    pub fn problem(&self) -> Option<DocumentError> {
        self.documents.problem(FILE)
    }

    /// Saves a summary instead of the session's former one. At the end of a session, the time of delivery stays:
    /// a resumed context still contains the delivered summary.
    ///
    /// # Errors
    /// It could not be saved; those that were there stand.
    pub fn keep(&self, mut summary: Summary) -> Result<(), WorldError> {
        self.change(|all| {
            if summary.reason == AT_END {
                let before = told(all, &summary.session, &summary.folder, summary.iteration);
                summary.told = summary.told.or(before);
            }
            all.retain(|it| it.session != summary.session);
            all.push(summary);
            all.drain(..all.len().saturating_sub(SUMMARIES_MAX));
            Some(())
        })
        .map(|_| ())
    }

    /// Returns whether the summary of this turn was delivered to its session.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn was_told(
        &self,
        session: &str,
        folder: &str,
        iteration: u64,
    ) -> Result<bool, DocumentError> {
        Ok(told(&self.all()?, session, folder, iteration).is_some())
    }

    /// Returns the newest undelivered summary that `fits`. It is marked as delivered before it is returned, so
    /// that it is never delivered twice.
    ///
    /// # Errors
    /// The file cannot be read, or the mark could not be saved.
    pub fn take(
        &self,
        now: Timestamp,
        fits: impl Fn(&Summary) -> bool,
    ) -> Result<Option<Summary>, WorldError> {
        if !self.all()?.iter().any(|it| it.told.is_none() && fits(it)) {
            return Ok(None);
        }
        self.change(|all| {
            let found = all.iter_mut().rev().find(|it| it.told.is_none() && fits(it))?;
            found.told = Some(now);
            Some(found.clone())
        })
    }

    /// Changes them under the lock; nothing is saved where nothing is to be changed.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Summary>) -> Option<T>,
    ) -> Result<Option<T>, WorldError> {
        let _held = self.documents.lock(LOCK, &[FOLDER])?;
        let before = self.documents.read_to_change(FILE)?;
        let mut all = before.clone().map(read).unwrap_or_default();
        let Some(answer) = change(&mut all) else { return Ok(None) };
        let mut file = before.unwrap_or_default();
        file.extend(fields(&SummaryFile { version: VERSION, summaries: all }));
        self.documents.save(FILE, &format!("{:#}\n", Value::Object(file)))?;
        Ok(Some(answer))
    }
}

/// Returns when the summary of a turn of a session in a directory was delivered.
fn told(all: &[Summary], session: &str, folder: &str, iteration: u64) -> Option<Timestamp> {
    let own = all.iter().find(|it| it.session == session && it.folder == folder);
    own.filter(|it| it.iteration == iteration)?.told
}

fn read(fields: Map<String, Value>) -> Vec<Summary> {
    SummaryFile::deserialize(fields).unwrap_or_default().summaries
}
