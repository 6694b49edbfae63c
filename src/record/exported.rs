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
    /// The line of the log.
    pub line: &'a [u8],
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
        let mut line: Value = serde_json::from_slice(self.line).ok()?;
        mask_json(&mut line);
        let entry = Entry::parse(line.to_string().as_bytes())?;
        let at = Timestamp::parse(&entry.timestamp)?;
        let kind = NoticeKind::find(&entry.event);
        let checks = entry.verdicts.iter().filter(|it| it.consequence != "none");
        let checks = checks.map(|it| ExportedFinding {
            rule: it.id.clone(),
            effect: it.consequence.clone(),
            text: it.details.clone().unwrap_or_default(),
        });
        let guards = entry.guards.iter().map(|it| ExportedFinding {
            rule: it.id.clone(),
            effect: it.decision.clone(),
            text: it.message.clone(),
        });
        let findings = checks.chain(guards).collect();
        Some(ExportedContent { entry, at, kind, findings })
    }
}
