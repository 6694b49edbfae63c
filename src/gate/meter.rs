//! The usage of a session's context window: its transcript is read from where the last reader stopped, and measured by
//! the pack.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use policyd_base::id::SessionId;
use policyd_evaluation::context::{gauge, settle};
use policyd_evaluation::situation::Matchers;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::Facts;
use policyd_policy::Policy;
use policyd_state::context::{Overrides, TierState};
use policyd_store::session::SessionStore;
use policyd_store::transcript::{self, Places, TranscriptError};
use policyd_world::{FileStat, World, WorldError};
use policyd_yaml::checksum::{checksum, hex};

/// A session, identified by its transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterPlace {
    /// The transcript.
    pub transcript: PathBuf,
    /// The id of the session. `None` if it is unknown.
    pub session: Option<SessionId>,
}

impl MeterPlace {
    /// Describes a transcript. If `session` is empty, the name of the file is the id.
    pub fn of(transcript: &Path, session: &str) -> Self {
        let stem = transcript.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        let id = if session.is_empty() { stem } else { session };
        Self { transcript: transcript.to_owned(), session: SessionId::parse(id) }
    }
}

/// What is shown of the usage of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionUsage {
    /// Used part of the context window. `None` if it is unknown.
    pub percent: Option<u64>,
    /// Cost in billionths of a US dollar.
    pub cost_nano: u64,
}

/// Measures sessions of one project.
pub struct SessionMeter<'a> {
    pub world: &'a dyn World,
    pub policy: &'a Policy,
    pub words: &'a Matchers,
    pub store: &'a SessionStore<'a>,
}

impl SessionMeter<'_> {
    /// Reads the facts of a transcript. Only what no reader read before is read.
    ///
    /// # Errors
    /// The transcript cannot be read, or `time_max` ended before the reading did.
    pub fn facts(&self, place: &MeterPlace, time_max: Duration) -> Result<Facts, TranscriptError> {
        let cursor =
            place.session.as_ref().map(|it| self.store.paths(it).folder.join("cursor.bin"));
        let places =
            Places { transcript: &place.transcript, cursor: cursor.as_deref(), subagent: false };
        let deadline = self.world.elapsed().saturating_add(time_max);
        let (lens, key) = (&self.words.lens, self.policy.lens_key);
        let read = transcript::read(self.world, places, lens, key, deadline);
        if let Some(problem) = read.problem {
            return Err(problem);
        }
        // Only hooks create the directory of a session.
        if let (Some(path), Some(cursor)) = (&cursor, &read.cursor)
            && path.parent().is_some_and(|it| self.world.stat(it).is_ok())
        {
            transcript::keep(self.world, path, cursor);
        }
        Ok(read.facts)
    }

    /// Returns the usage at these facts, with the tier that the session saved.
    pub fn usage(&self, place: &MeterPlace, facts: &Facts, overrides: &Overrides) -> ContextUsage {
        let rules = &self.policy.context;
        let saved = place.session.as_ref().map(|it| self.store.peek(it).state.context);
        let tier: TierState = saved.unwrap_or_default();
        let overrides = &overrides.naming(&tier);
        settle(&gauge(rules, overrides, facts), &tier, rules, overrides, facts)
    }

    /// Measures what is shown of the usage of a session.
    ///
    /// # Errors
    /// As for [`Self::facts`].
    pub fn measure(
        &self,
        place: &MeterPlace,
        overrides: &Overrides,
        time_max: Duration,
    ) -> Result<SessionUsage, TranscriptError> {
        let usage = self.usage(place, &self.facts(place, time_max)?, overrides);
        let percent = usage.known.then_some(usage.percent);
        Ok(SessionUsage { percent, cost_nano: usage.cost_nano })
    }

    /// Returns a hash of everything that [`Self::measure`] reads: the pack, of which `pack` is the hash, the settings, and
    /// the files of the session by their identity, length, and time. `None` if the transcript cannot be read.
    pub fn usage_key(
        &self,
        place: &MeterPlace,
        overrides: &Overrides,
        pack: &[u8],
    ) -> Option<String> {
        let transcript = Some(self.world.stat(&place.transcript).ok()?);
        let state = place.session.as_ref().map(|it| self.world.stat(&self.store.paths(it).state));
        let state = match state {
            None | Some(Err(WorldError::NotFound)) => None,
            Some(state) => Some(state.ok()?),
        };
        let stamp = |it: FileStat| [it.identity, it.length, it.modified.millis().cast_unsigned()];
        let stamps =
            [transcript, state].into_iter().flat_map(|it| it.map(stamp).unwrap_or_default());
        let mut parts: Vec<Vec<u8>> = stamps.map(|it| it.to_le_bytes().to_vec()).collect();
        parts.push(serde_json::to_vec(overrides).ok()?);
        parts.push(place.transcript.as_os_str().as_encoded_bytes().to_vec());
        let session = place.session.as_ref().map_or("", |it| it.as_str());
        parts.push(session.as_bytes().to_vec());
        parts.extend([env!("CARGO_PKG_VERSION").as_bytes(), pack].map(<[u8]>::to_vec));
        Some(hex(&checksum(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())))
    }
}
