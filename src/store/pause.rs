//! A pause: the user disables policyd for a while, in a project or in one session of it. Pauses are
//! kept among the choices of the user.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use policyd_base::id::SessionId;
use policyd_base::limits::PAUSE_MAX;
use policyd_state::stored::or_default;
use policyd_yaml::time::{Timestamp, duration_text};

/// A pause of policyd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Paused session; `None` for the whole project.
    pub session: Option<SessionId>,
    /// Start of the pause.
    pub since: Timestamp,
    /// End of the pause.
    pub until: Timestamp,
    /// Reason of the user; may be empty.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: String,
}

impl Pause {
    /// Returns whether the pause applies at a time. A clock before its start ends the pause.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until && self.until.since(self.since) <= PAUSE_MAX
    }

    /// Describes the pause for the user: its end, its reason, and how to end it.
    #[must_use]
    pub fn text(&self, now: Timestamp) -> String {
        let left = self.until.since(now).as_secs().div_ceil(60).saturating_mul(60);
        let left = duration_text(Duration::from_secs(left));
        let session = if self.session.is_some() { " for this session" } else { "" };
        let why = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        format!("paused{session} until {} ({left} left){why}; `policyd resume` ends it", self.until)
    }
}
