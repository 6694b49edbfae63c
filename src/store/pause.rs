//! A pause: the user disables policyd for a while, in a project or in one session of it. Pauses are
//! kept among the choices of the user.

use std::time::Duration;

use serde_json::{Value, json};

use crate::id::SessionId;
use crate::limits::PAUSE_MAX;
use crate::time::{Timestamp, duration_text};

/// The gate switched off for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Paused session; `None` for the whole project.
    pub session: Option<SessionId>,
    /// From when.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Why, as the human said; or empty.
    pub reason: String,
}

impl Pause {
    /// Whether it holds at a moment. A clock that went back before its beginning ends it, too.
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

    pub(super) fn read(value: &Value) -> Option<Self> {
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
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "session": self.session.as_ref().map(SessionId::as_str),
            "since": self.since.to_string(),
            "until": self.until.to_string(),
            "reason": self.reason,
        })
    }
}
