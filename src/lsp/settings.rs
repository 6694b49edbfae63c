//! Settings of the client: the object `policyd`, which the client sends at the start and after a change.

use serde::Deserialize;
use serde_json::Value;

use policyd_editor::view::LintSettings;
use policyd_harness as harness;
use policyd_lint::Profile;

/// Settings of the client.
#[derive(Debug, Clone)]
pub(super) struct ClientSettings {
    /// Profile and client of lint.
    pub(super) lint: LintSettings,
    /// The session whose values are shown: a transcript, or the beginning of a session id.
    pub(super) session: Option<String>,
    /// Files or directories with recorded sessions; empty: those of the clients on this machine.
    pub(super) recordings: Vec<String>,
    /// Whether rules are evaluated on recorded sessions.
    pub(super) replays: bool,
    /// Whether the client shows files of the built-in pack by their addresses.
    pub(super) virtual_files: bool,
}

/// The settings as the client writes them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SettingsMessage {
    profile: Option<String>,
    harness: Option<String>,
    session: Option<String>,
    recordings: Option<Vec<String>>,
    replay: Option<bool>,
    virtual_files: bool,
}

impl ClientSettings {
    /// The settings without a client.
    pub(super) const fn new(profile: Profile) -> Self {
        let lint = LintSettings { profile, harness: None };
        Self { lint, session: None, recordings: Vec::new(), replays: true, virtual_files: false }
    }

    /// Reads the settings of a client, and returns them with one message for each invalid value. An absent or invalid key
    /// has its default.
    pub(super) fn read(value: &Value, default: Profile) -> (Self, Vec<String>) {
        let value = value.get("policyd").unwrap_or(value);
        let mut settings = Self::new(default);
        let written = match SettingsMessage::deserialize(value) {
            Ok(written) => written,
            Err(_) if value.is_null() => SettingsMessage::default(),
            Err(error) => return (settings, vec![format!("invalid settings: {error}")]),
        };
        let mut problems = Vec::new();
        if let Some(name) = written.profile {
            let profiles = [Profile::Default, Profile::Strict, Profile::Pedantic];
            match profiles.into_iter().find(|it| it.name() == name) {
                Some(profile) => settings.lint.profile = profile,
                None => problems.push(format!("unknown profile `{name}` in `policyd.profile`")),
            }
        }
        if let Some(name) = written.harness.filter(|it| !it.is_empty()) {
            settings.lint.harness = harness::find(&name);
            if settings.lint.harness.is_none() {
                problems.push(format!("unknown client `{name}` in `policyd.harness`"));
            }
        }
        settings.session = written.session.filter(|it| !it.is_empty());
        settings.recordings = written.recordings.unwrap_or_default();
        settings.replays = written.replay.unwrap_or(true);
        settings.virtual_files = written.virtual_files;
        (settings, problems)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_setting_is_named_and_the_others_count() {
        let value = json!({"policyd": {"profile": "strict", "harness": "gemini", "session": ""}});
        let (settings, problems) = ClientSettings::read(&value, Profile::Default);
        assert_eq!((settings.lint.profile, problems.len()), (Profile::Strict, 0));
        assert_eq!(
            (settings.lint.harness.map(|it| it.name), settings.session),
            (Some("gemini"), None)
        );
        let (settings, problems) =
            ClientSettings::read(&json!({"profile": "lax", "session": "s1"}), Profile::Strict);
        assert_eq!(
            (settings.lint.profile, settings.session.as_deref()),
            (Profile::Strict, Some("s1"))
        );
        assert_eq!(problems, ["unknown profile `lax` in `policyd.profile`"]);
        let (_, problems) = ClientSettings::read(&json!({"session": 1}), Profile::Default);
        assert_eq!(problems.len(), 1);
        assert!(ClientSettings::read(&Value::Null, Profile::Default).1.is_empty());
    }
}
