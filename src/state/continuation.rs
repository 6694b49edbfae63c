//! Which summary a context that begins receives: its own after a compaction or a resume, else that of the
//! one session that was cleared just before.

use std::collections::BTreeSet;
use std::time::Duration;

use policyd_yaml::time::Timestamp;

/// Reason of a summary that was made because its context was cleared: another session begins.
pub const AT_CLEAR: &str = "clear";
/// Longest time between the end of a cleared session and the start of the one that continues it.
const CLEAR_WITHIN: Duration = Duration::from_secs(60);

/// A context that begins.
#[derive(Debug, Clone, Copy)]
pub struct ContextStart<'a> {
    /// Id of its session.
    pub session: &'a str,
    /// Project directory.
    pub folder: &'a str,
    /// Process of the client; empty if unknown.
    pub client: &'a str,
    /// Whether the session goes on, after a compaction or a resume.
    pub same_session: bool,
    /// When it begins.
    pub now: Timestamp,
    /// Summaries that are older are not used.
    pub max_age: Duration,
}

/// Where a summary comes from.
#[derive(Debug, Clone, Copy)]
pub struct SummaryOrigin<'a> {
    /// Id of its session.
    pub session: &'a str,
    /// Project directory.
    pub folder: &'a str,
    /// Process of the client; empty if unknown.
    pub client: &'a str,
    /// Why it was made.
    pub reason: &'a str,
    /// When it was made.
    pub at: Timestamp,
}

impl ContextStart<'_> {
    /// Whether the context continues the session of a summary.
    #[must_use]
    pub fn continues(&self, summary: &SummaryOrigin<'_>) -> bool {
        let age = self.now.since(summary.at);
        let is_own = summary.session == self.session;
        let was_cleared = summary.reason == AT_CLEAR && age <= CLEAR_WITHIN;
        let clients_known = !self.client.is_empty() && !summary.client.is_empty();
        let same_client = !clients_known || summary.client == self.client;
        age <= self.max_age
            && summary.folder == self.folder
            && is_own == self.same_session
            && (is_own || (was_cleared && same_client))
    }

    /// Whether it is unknown which of the cleared sessions continues here: the payload of a session that
    /// begins names no other one.
    pub fn is_ambiguous<'s>(&self, sessions: impl Iterator<Item = &'s str>) -> bool {
        let several = sessions.collect::<BTreeSet<_>>().len() > 1;
        !self.same_session && self.client.is_empty() && several
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: ContextStart<'static> = ContextStart {
        session: "new",
        folder: "/work",
        client: "7",
        same_session: false,
        now: Timestamp::from_millis(100_000),
        max_age: Duration::from_secs(3_600),
    };
    const CLEARED: SummaryOrigin<'static> = SummaryOrigin {
        session: "old",
        folder: "/work",
        client: "7",
        reason: AT_CLEAR,
        at: Timestamp::from_millis(90_000),
    };

    #[test]
    fn a_new_session_continues_the_one_that_its_client_cleared_just_before() {
        assert!(START.continues(&CLEARED));
        assert!(START.continues(&SummaryOrigin { client: "", ..CLEARED }));
        for other in [
            SummaryOrigin { client: "8", ..CLEARED },
            SummaryOrigin { folder: "/other", ..CLEARED },
            SummaryOrigin { reason: "session_end", ..CLEARED },
            SummaryOrigin { session: "new", ..CLEARED },
            SummaryOrigin { at: Timestamp::from_millis(30_000), ..CLEARED },
        ] {
            assert!(!START.continues(&other), "{other:?}");
        }
    }

    #[test]
    fn a_session_that_goes_on_receives_its_own_summary() {
        let resumed = ContextStart { session: "old", same_session: true, ..START };
        let own = SummaryOrigin { reason: "act", client: "8", ..CLEARED };
        assert!(resumed.continues(&own));
        assert!(!resumed.continues(&SummaryOrigin { session: "new", ..own }));
        let late = ContextStart { max_age: Duration::from_secs(1), ..resumed };
        assert!(!late.continues(&own));
    }

    #[test]
    fn without_a_client_several_cleared_sessions_are_ambiguous() {
        let unknown = ContextStart { client: "", ..START };
        assert!(unknown.is_ambiguous(["a", "b"].into_iter()));
        assert!(!unknown.is_ambiguous(["a", "a"].into_iter()));
        assert!(!START.is_ambiguous(["a", "b"].into_iter()));
    }
}
