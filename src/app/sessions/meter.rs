//! The usage of a session's context window: its transcript is read from where the last reader stopped, and measured by
//! the pack.

use std::time::Duration;

use crate::sessions::location::Place;
use policyd_evaluation::context::{gauge, settle};
use policyd_evaluation::situation::Matchers;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::Facts;
use policyd_policy::Policy;
use policyd_state::context::{Overrides, TierState};
use policyd_store::session::SessionStore;
use policyd_store::transcript::{self, Places, TranscriptError};
use policyd_world::World;

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
    pub fn facts(&self, place: &Place, time_max: Duration) -> Result<Facts, TranscriptError> {
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
        // A folder that is not there yet is the hook's to make.
        if let (Some(path), Some(cursor)) = (&cursor, &read.cursor)
            && path.parent().is_some_and(|it| self.world.stat(it).is_ok())
        {
            transcript::keep(self.world, path, cursor);
        }
        Ok(read.facts)
    }

    /// Returns the usage at these facts, with the tier that the session saved.
    pub fn usage(&self, place: &Place, facts: &Facts, overrides: &Overrides) -> ContextUsage {
        let rules = &self.policy.context;
        let known = place.session.as_ref().map(|it| self.store.peek(it).state.context);
        let standing: TierState = known.unwrap_or_default();
        let overrides = &overrides.naming(&standing);
        settle(&gauge(rules, overrides, facts), &standing, rules, overrides, facts)
    }
}
