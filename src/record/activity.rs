//! What happened in a project, from its decision log: a fold that reads only the fields it needs.

use serde::{Deserialize, Serialize};

use super::decision_log::{Entry, LoggedVerdict};
use policyd_yaml::time::Timestamp;

/// The last stop of a main agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStop {
    /// Time of the decision.
    pub at: Option<Timestamp>,
    /// Id of the session.
    pub session_id: String,
    /// `blocked`, `released`, or `passed`.
    pub outcome: StopOutcomeWord,
    /// What was found, or why the stop was released.
    pub reason: String,
}

/// Outcome of a stop, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopOutcomeWord {
    /// The agent had to continue.
    Blocked,
    /// The block limit let the agent stop although a check had not passed.
    Released,
    /// No check blocked.
    Passed,
}

impl StopOutcomeWord {
    /// Returns the outcome of a logged stop.
    pub fn of(entry: &Entry) -> Self {
        match entry.decision.as_str() {
            "block" if entry.spoken => Self::Blocked,
            _ if entry.release_reason().is_some() => Self::Released,
            _ => Self::Passed,
        }
    }

    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Released => "released",
            Self::Passed => "passed",
        }
    }
}

/// What happened in a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Time of the newest entry.
    pub last: Option<Timestamp>,
    /// The last stop, however old it is.
    pub last_stop: Option<LastStop>,
    /// Stops that were blocked since a point in time.
    pub blocked_stops: u64,
    /// Stops that were released since then.
    pub released_stops: u64,
    /// Tool calls that were blocked since then, or about which the user was asked.
    pub blocked_calls: u64,
    /// Permission prompts that policyd answered since then.
    pub approved_calls: u64,
    /// Permission prompts that policyd left to the user since then.
    pub left_prompts: u64,
    /// Decisions that were only observed since then and would have blocked or asked.
    pub observed: u64,
    /// Path of the transcript and id of the session that was evaluated last.
    pub transcript: Option<(String, String)>,
}

impl Activity {
    /// Adds a line of the log. Lines are added from the oldest to the newest; other lines are ignored.
    pub fn add(&mut self, line: &[u8], since: Timestamp) {
        if let Some(entry) = Entry::parse(line) {
            self.add_entry(&entry, Timestamp::parse(&entry.timestamp), since);
        }
    }

    /// Adds an entry of a known time.
    pub fn add_entry(&mut self, entry: &Entry, at: Option<Timestamp>, since: Timestamp) {
        self.last = at.or(self.last);
        if let Some(transcript) = entry.transcript()
            && !transcript.subagent
            && !transcript.path.is_empty()
        {
            self.transcript = Some((transcript.path, entry.session_id.clone()));
        }
        let counts = at.is_none_or(|it| it >= since);
        let would = counts && entry.would_stop();
        self.observed = self.observed.saturating_add(u64::from(would));
        if entry.is_evaluated_stop() {
            self.add_stop(entry, at, counts);
        } else if counts && entry.stopped_call() {
            self.blocked_calls = self.blocked_calls.saturating_add(1);
        } else if counts {
            let (approved, left) = (entry.approved_call(), entry.left_prompt());
            self.approved_calls = self.approved_calls.saturating_add(u64::from(approved));
            self.left_prompts = self.left_prompts.saturating_add(u64::from(left));
        }
    }

    /// Whether older entries than those of a file, which begins with `first_line`, can change nothing: they are older than
    /// `since`, and the last stop and transcript are known.
    #[must_use]
    pub fn is_complete(&self, first_line: &[u8], since: Timestamp) -> bool {
        let is_known = self.last_stop.is_some() && self.transcript.is_some();
        let first = Entry::parse(first_line);
        let first = first.and_then(|it| Timestamp::parse(&it.timestamp));
        is_known && first.is_some_and(|it| it < since)
    }

    /// Takes over what another part of the logs tells.
    pub fn merge(&mut self, other: Self) {
        let Self {
            last,
            last_stop,
            blocked_stops,
            released_stops,
            blocked_calls,
            approved_calls,
            left_prompts,
            observed,
            transcript,
        } = other;
        let is_newer = last >= self.last;
        let stop = |it: &Option<LastStop>| it.as_ref().and_then(|it| it.at);
        if last_stop.is_some() && stop(&last_stop) >= stop(&self.last_stop) {
            self.last_stop = last_stop;
        }
        if transcript.is_some() && (is_newer || self.transcript.is_none()) {
            self.transcript = transcript;
        }
        self.last = self.last.max(last);
        for (own, more) in [
            (&mut self.blocked_stops, blocked_stops),
            (&mut self.released_stops, released_stops),
            (&mut self.blocked_calls, blocked_calls),
            (&mut self.approved_calls, approved_calls),
            (&mut self.left_prompts, left_prompts),
            (&mut self.observed, observed),
        ] {
            *own = own.saturating_add(more);
        }
    }

    fn add_stop(&mut self, entry: &Entry, at: Option<Timestamp>, counts: bool) {
        let outcome = StopOutcomeWord::of(entry);
        match outcome {
            StopOutcomeWord::Blocked if counts => {
                self.blocked_stops = self.blocked_stops.saturating_add(1);
            }
            StopOutcomeWord::Released if counts => {
                self.released_stops = self.released_stops.saturating_add(1);
            }
            StopOutcomeWord::Blocked | StopOutcomeWord::Released | StopOutcomeWord::Passed => {}
        }
        if entry.agent_id.is_some() {
            return;
        }
        let blocking = entry.verdicts.iter().filter(|it| it.consequence == "blocks");
        let mut reason: Vec<String> = blocking.map(LoggedVerdict::to_line).collect();
        if outcome == StopOutcomeWord::Released {
            reason.insert(0, entry.release_reason().unwrap_or_default().to_owned());
        }
        let session_id = entry.session_id.clone();
        self.last_stop = Some(LastStop { at, session_id, outcome, reason: reason.join("; ") });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn folded(lines: &[Value]) -> Activity {
        let mut activity = Activity::default();
        let since = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
        lines.iter().for_each(|it| activity.add(it.to_string().as_bytes(), since));
        activity
    }

    fn stop(time: &str, decision: &str, release: &str) -> Value {
        let verdicts = json!([{"id": "tests", "consequence": "blocks", "details": "2 \"failed\""}]);
        json!({"timestamp": time, "event": "stop", "session_id": "s", "decision": decision,
            "spoken": true, "release": release, "verdicts": verdicts,
            "inputs": {"transcript": {"path": "/t.jsonl", "subagent": false}}})
    }

    #[test]
    fn entries_are_counted_from_a_time_on_and_the_last_stop_is_kept() {
        let activity = folded(&[
            stop("2026-01-01T10:00:00Z", "block", ""),
            stop("2026-01-02T10:00:00Z", "block", ""),
            stop("2026-01-02T11:00:00Z", "none", "max_blocks"),
            json!({"timestamp": "2026-01-02T12:00:00Z", "event": "pre-tool-use",
                "decision": "block", "guards": [{"id": "rm"}]}),
            json!({"timestamp": "2026-01-02T12:00:01Z", "event": "pre-tool-use",
                "decision": "none", "guards": [{"id": "rm", "would": "block"}]}),
            json!("another line"),
        ]);
        assert_eq!((activity.blocked_stops, activity.released_stops), (1, 1));
        assert_eq!((activity.blocked_calls, activity.observed), (1, 1));
        let last = activity.last_stop.unwrap();
        assert_eq!(last.outcome, StopOutcomeWord::Released);
        assert_eq!(last.reason, "max_blocks; tests: 2 \"failed\"");
        assert_eq!(activity.last, Timestamp::parse("2026-01-02T12:00:01Z"));
        assert_eq!(activity.transcript, Some(("/t.jsonl".to_owned(), "s".to_owned())));
    }

    #[test]
    fn older_files_are_needed_until_the_last_stop_and_the_begin_of_the_time_are_known() {
        let since = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
        let [old, new] = ["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"].map(|time| {
            json!({"timestamp": time, "event": "pre-tool-use", "decision": "none"}).to_string()
        });
        let with_stop = folded(&[stop("2026-01-02T10:00:00Z", "block", "")]);
        assert!(with_stop.is_complete(old.as_bytes(), since));
        assert!(!with_stop.is_complete(new.as_bytes(), since), "an older file can count");
        assert!(!with_stop.is_complete(b"", since));
        assert!(!folded(&[]).is_complete(old.as_bytes(), since), "no stop is known");
    }
}
