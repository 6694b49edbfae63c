//! An entry of a decision log as exports read it: masked again, because an older version may have written it.

use serde_json::Value;

use super::decision_log::Entry;
use super::mask::mask_json;
use super::notice::NoticeKind;
use policyd_yaml::time::Timestamp;

/// An entry, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct ExportedEntry<'a> {
    /// Main checkout of the project.
    pub project: &'a str,
    /// Id that no other entry has: the same at each export.
    pub uid: &'a str,
    /// The entry as it was logged.
    pub entry: &'a Value,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFinding {
    pub rule: String,
    /// Effect of the rule.
    pub effect: String,
    pub text: String,
}

/// The content of an entry.
pub struct ExportedContent {
    pub entry: Entry,
    pub at: Timestamp,
    /// `None` for a decision.
    pub kind: Option<NoticeKind>,
    /// What the rules with an effect found.
    pub findings: Vec<ExportedFinding>,
}

impl ExportedEntry<'_> {
    /// Reads the content. `None` for a line that is not an entry.
    pub fn read(self) -> Option<ExportedContent> {
        let mut entry = self.entry.clone();
        mask_json(&mut entry);
        let entry = Entry::read(&entry)?;
        let at = Timestamp::parse(&entry.timestamp)?;
        let kind = NoticeKind::find(&entry.event);
        let text = |it: &Value, key: &str| {
            it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let checks = entry.verdicts.iter().filter(|it| it.consequence != "none");
        let checks = checks.map(|it| ExportedFinding {
            rule: it.id.clone(),
            effect: it.consequence.clone(),
            text: it.details.clone().unwrap_or_default(),
        });
        let guards = entry.guards.iter().map(|it| ExportedFinding {
            rule: text(it, "id"),
            effect: text(it, "decision"),
            text: text(it, "message"),
        });
        let findings = checks.chain(guards).collect();
        Some(ExportedContent { entry, at, kind, findings })
    }
}
