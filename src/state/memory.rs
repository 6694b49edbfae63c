//! The memory of a pack: short texts that its rules remember from one event to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use policyd_base::text::cut;
use policyd_yaml::secrets::mask;
use policyd_yaml::time::Timestamp;

/// How long texts are remembered at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryScope {
    /// Until the next prompt of the user: an episode.
    Episode,
    /// For the session.
    #[default]
    Session,
    /// For the day, by the clock of this machine, in all sessions of the project.
    Day,
}

/// How an entry remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySettings {
    pub scope: MemoryScope,
    /// How long a text is remembered. `None`: as long as the scope.
    pub expires: Option<Duration>,
    /// Number of texts; the oldest goes first.
    pub keep: usize,
    /// Whether equal texts are one, the newest.
    pub distinct: bool,
}

/// Most texts of an entry.
pub const KEPT_MAX: usize = 1_000;
/// Texts of an entry that does not say how many.
pub const KEPT_DEFAULT: usize = 100;
/// Texts of all entries together.
const TEXTS_MAX: usize = 4_000;
/// Bytes of a text.
const TEXT_BYTES_MAX: usize = 256;

impl Default for MemorySettings {
    fn default() -> Self {
        Self { scope: MemoryScope::default(), expires: None, keep: KEPT_DEFAULT, distinct: false }
    }
}

/// What an entry remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryEntry {
    /// The episode, the session, or the day to which the texts belong.
    pub of: String,
    /// The texts, oldest first.
    pub texts: Vec<RememberedText>,
}

/// A text that a rule remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RememberedText {
    /// The text, with secrets masked, cut at 256 bytes.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The event that a rule remembered it at. Two hook lines that report one event count once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event: String,
}

/// When something is remembered, and to what it belongs.
#[derive(Debug, Clone, Copy)]
pub struct MemoryMoment<'a> {
    /// The episode, the session, or the day.
    pub of: &'a str,
    /// Identifies the event and the rule; empty if the client gives the event no id.
    pub event: &'a str,
    pub now: Timestamp,
}

impl MemoryEntry {
    /// Returns the texts that are remembered at a moment.
    pub fn live<'e>(
        &'e self,
        settings: &MemorySettings,
        of: &str,
        now: Timestamp,
    ) -> impl Iterator<Item = &'e RememberedText> {
        let expires = settings.expires;
        let texts = if self.of == of { self.texts.as_slice() } else { &[] };
        // A text of the future, by a clock that went back, is kept.
        let is_live =
            move |it: &&RememberedText| expires.is_none_or(|most| now.since(it.moment()) < most);
        texts.iter().filter(is_live)
    }

    /// The entry after a text was remembered.
    #[must_use]
    pub fn remember(
        &self,
        settings: &MemorySettings,
        text: &str,
        moment: MemoryMoment<'_>,
    ) -> Self {
        let MemoryMoment { of, event, now } = moment;
        let mut texts: Vec<RememberedText> = self.live(settings, of, now).cloned().collect();
        let text = kept_text(text);
        let is_same =
            |it: &RememberedText| !event.is_empty() && it.event == event && it.text == text;
        if !texts.iter().any(is_same) {
            texts.retain(|it| !settings.distinct || it.text != text);
            texts.push(RememberedText { text, at: now.millis(), event: event.to_owned() });
        }
        texts.drain(..texts.len().saturating_sub(settings.keep));
        Self { of: of.to_owned(), texts }
    }
}

/// Returns a text as it is remembered: secrets are masked, control characters are blanks, and the end is cut.
#[must_use]
pub fn kept_text(text: &str) -> String {
    let masked = mask(text).0.replace(char::is_control, " ");
    cut(&masked, TEXT_BYTES_MAX).to_owned()
}

/// Removes the oldest texts of all entries until 4,000 remain.
pub fn bound(entries: &mut BTreeMap<String, MemoryEntry>) {
    let count = |entries: &BTreeMap<String, MemoryEntry>| -> usize {
        entries.values().map(|it| it.texts.len()).sum()
    };
    while count(entries) > TEXTS_MAX {
        let first = |it: &MemoryEntry| it.texts.first().map(|it| it.at);
        let oldest =
            entries.values_mut().filter(|it| first(it).is_some()).min_by_key(|it| first(it));
        let Some(oldest) = oldest else { return };
        oldest.texts.remove(0);
    }
}

impl RememberedText {
    /// Returns whether a rule remembered it at a tool call.
    #[must_use]
    pub fn is_of_call(&self, id: &str) -> bool {
        self.event.strip_prefix(id).is_some_and(|it| it.starts_with(' '))
    }

    const fn moment(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(of: &'a str, event: &'a str, seconds: i64) -> MemoryMoment<'a> {
        MemoryMoment { of, event, now: Timestamp::from_millis(seconds * 1_000) }
    }

    fn live(entry: &MemoryEntry, settings: &MemorySettings, of: &str, seconds: i64) -> String {
        let texts = entry.live(settings, of, Timestamp::from_millis(seconds * 1_000));
        texts.map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn texts_end_with_their_scope_or_expire() {
        let settings =
            MemorySettings { expires: Some(Duration::from_secs(60)), ..MemorySettings::default() };
        let entry = MemoryEntry::default().remember(&settings, "a", at("s1", "", 0));
        let entry = entry.remember(&settings, "b", at("s1", "", 30));
        assert_eq!(live(&entry, &settings, "s1", 59), "a b");
        assert_eq!(live(&entry, &settings, "s1", 60), "b");
        assert_eq!(live(&entry, &settings, "s1", -5), "a b");
        assert_eq!(live(&entry, &settings, "s2", 30), "");
        let entry = entry.remember(&settings, "c", at("s2", "", 31));
        assert_eq!(live(&entry, &settings, "s2", 31), "c");
    }

    #[test]
    fn an_entry_is_bounded() {
        let settings = MemorySettings { keep: 2, ..MemorySettings::default() };
        let mut entry = MemoryEntry::default();
        for text in ["a", "b", "b", "c"] {
            entry = entry.remember(&settings, text, at("s", "", 0));
        }
        assert_eq!(live(&entry, &settings, "s", 0), "b c");
        let distinct = MemorySettings { distinct: true, ..MemorySettings::default() };
        let mut entry = MemoryEntry::default();
        for text in ["a", "b", "a"] {
            entry = entry.remember(&distinct, text, at("s", "", 0));
        }
        assert_eq!(live(&entry, &distinct, "s", 0), "b a");
        let long = entry.remember(&settings, &"é".repeat(200), at("s", "", 0));
        assert_eq!(long.texts.last().map(|it| it.text.len()), Some(256));
    }

    #[test]
    fn all_entries_are_bounded_together() {
        let settings = MemorySettings { keep: KEPT_MAX, ..MemorySettings::default() };
        let mut entries = BTreeMap::new();
        for name in ["a", "b", "c", "d", "e"] {
            let texts = (0..KEPT_MAX).map(|it| RememberedText {
                at: i64::try_from(it).unwrap(),
                ..RememberedText::default()
            });
            let entry = MemoryEntry { of: "s".to_owned(), texts: texts.collect() };
            entries.insert(name.to_owned(), entry);
        }
        bound(&mut entries);
        let left: Vec<usize> = entries.values().map(|it| it.texts.len()).collect();
        assert_eq!(left, [800; 5]);
        let entry = entries.get("a").unwrap().remember(&settings, "a\nb", at("s", "", 900));
        assert_eq!(entry.texts.last().unwrap().text, "a b");
    }

    #[test]
    fn one_event_counts_once() {
        let settings = MemorySettings::default();
        let entry = MemoryEntry::default().remember(&settings, "a", at("s", "toolu_1 x", 0));
        let entry = entry.remember(&settings, "a", at("s", "toolu_1 x", 1));
        let entry = entry.remember(&settings, "a", at("s", "toolu_2 x", 2));
        assert_eq!(live(&entry, &settings, "s", 2), "a a");
    }
}
