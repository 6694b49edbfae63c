//! What sessions spent on one day. A session that is known from an earlier day counts from the beginning of the day, and
//! another one with all that it spent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use policyd_yaml::time::Timestamp;

/// Sessions that are kept. The one that was not seen for the longest time goes first.
const SESSIONS_MAX: usize = 500;

/// What the sessions of one user spent. Amounts are in billionths of a US dollar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DailyCosts {
    /// The day: `2026-01-31`, by the clock of this machine.
    pub day: String,
    /// The sessions, by project and id.
    pub sessions: BTreeMap<String, SessionCost>,
}

/// What one session spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionCost {
    /// Directory of the project.
    pub project: String,
    /// Amount before the day.
    pub before: u64,
    /// Amount in total.
    pub total: u64,
    /// When it was last seen, in milliseconds since 1970.
    pub at: i64,
}

impl SessionCost {
    /// Returns the amount of the day.
    #[must_use]
    pub const fn of_day(&self) -> u64 {
        self.total.saturating_sub(self.before)
    }
}

impl DailyCosts {
    /// Returns the key of a session.
    #[must_use]
    pub fn key(project: &str, session: &str) -> String {
        format!("{project} {session}")
    }

    /// Begins a day: what was spent until now is before it. An earlier day, by a clock that went back, changes nothing.
    #[must_use]
    pub fn on(mut self, day: &str) -> Self {
        if day > self.day.as_str() {
            self.sessions.values_mut().for_each(|it| it.before = it.total);
            day.clone_into(&mut self.day);
        }
        self
    }

    /// Records the total of a session on the current day.
    pub fn record(&mut self, project: &str, session: &str, total: u64, now: Timestamp) {
        let entry = self.sessions.entry(Self::key(project, session)).or_default();
        // Another pack can have lower prices, and a transcript can begin again: what was spent stays.
        let total = total.max(entry.total);
        *entry = SessionCost {
            project: project.to_owned(),
            before: entry.before,
            total,
            at: now.millis(),
        };
        while self.sessions.len() > SESSIONS_MAX {
            let oldest = self.sessions.iter().min_by_key(|(_, it)| it.at);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.sessions.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "/w";

    fn of_day(costs: &DailyCosts) -> u64 {
        costs.sessions.values().map(SessionCost::of_day).sum()
    }

    #[test]
    fn a_session_counts_from_the_beginning_of_the_day() {
        let at = Timestamp::from_millis;
        let mut costs = DailyCosts::default().on("2026-01-30");
        costs.record(PROJECT, "a", 700, at(1));
        costs.record(PROJECT, "a", 1_000, at(2));
        assert_eq!(of_day(&costs), 1_000);
        let mut costs = costs.on("2026-01-31");
        assert_eq!(of_day(&costs), 0);
        costs.record(PROJECT, "a", 1_300, at(3));
        costs.record(PROJECT, "b", 50, at(4));
        assert_eq!(of_day(&costs), 350);
        let mut costs = costs.on("2026-01-30");
        assert_eq!(of_day(&costs), 350, "a clock that went back");
        costs.record(PROJECT, "a", 900, at(5));
        assert_eq!(of_day(&costs), 350, "what was spent stays");
    }

    #[test]
    fn the_session_that_was_not_seen_for_the_longest_time_goes_first() {
        let mut costs = DailyCosts::default();
        for number in 0..=500 {
            let name = format!("{}", 1_000 - number);
            costs.record(PROJECT, &name, 1, Timestamp::from_millis(number));
        }
        assert_eq!(costs.sessions.len(), SESSIONS_MAX);
        assert!(!costs.sessions.contains_key(&DailyCosts::key(PROJECT, "1000")));
    }
}
