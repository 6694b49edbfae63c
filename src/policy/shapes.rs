//! The files of a pack. The loader, lint, the JSON schemas, and the documentation read this table.

use super::breakers::{BREAKER, ROUTE};
use super::considerations::{CHECKER, CONSIDERATION, SESSION_TYPE};
use super::context::CONTEXT;
use super::exemptions::EXEMPTION;
use super::failures::FAILURES;
use super::guards::GUARD;
use super::manifest::MANIFEST;
use super::memory::MEMORY;
use super::messages::MESSAGE_CHOICE;
use super::probes::{PREFERENCE, PROBE};
use super::rationalizations::RATIONALIZATIONS;
use super::resilience::{DEAD_LETTER, ESCALATION, REACTION};
use super::run::RUN;
use super::signals::SIGNALS;
use super::tables::TABLE;
use super::vocabulary::VOCABULARY;
use policyd_yaml::shape::Kind;

/// A file of a pack.
#[derive(Debug)]
pub struct FileShape {
    /// File name.
    pub file: &'static str,
    /// Kind of its content.
    pub kind: Kind,
}

/// Directory of case files in a pack.
pub const CASES_FOLDER: &str = "tests";

/// Every file that a pack can contain.
pub const FILES: &[FileShape] = &[
    FileShape { file: "policyd.yaml", kind: MANIFEST.map },
    FileShape { file: "vocabulary.yaml", kind: VOCABULARY.map },
    FileShape { file: "preferences.yaml", kind: PREFERENCE.list },
    FileShape { file: "probes.yaml", kind: PROBE.list },
    FileShape { file: "breakers.yaml", kind: Kind::Map(&BREAKER.map) },
    FileShape { file: "dead_letter.yaml", kind: DEAD_LETTER.map },
    FileShape { file: "escalation.yaml", kind: ESCALATION.map },
    FileShape { file: "failures.yaml", kind: FAILURES.map },
    FileShape { file: "routes.yaml", kind: ROUTE.list },
    FileShape { file: "reactions.yaml", kind: REACTION.list },
    FileShape { file: "context.yaml", kind: CONTEXT.map },
    FileShape { file: "signals.yaml", kind: SIGNALS.map },
    FileShape { file: "memory.yaml", kind: MEMORY.list },
    FileShape { file: "guards.yaml", kind: GUARD.list },
    FileShape { file: "destructive-commands.yaml", kind: GUARD.list },
    FileShape { file: "protected-paths.yaml", kind: GUARD.list },
    FileShape { file: "secrets.yaml", kind: GUARD.list },
    FileShape { file: "git-discipline.yaml", kind: GUARD.list },
    FileShape { file: "network-exfiltration.yaml", kind: GUARD.list },
    FileShape { file: "approve-read.yaml", kind: GUARD.list },
    FileShape { file: "approve-work.yaml", kind: GUARD.list },
    FileShape { file: "run.yaml", kind: RUN.map },
    FileShape { file: "tables.yaml", kind: TABLE.list },
    FileShape { file: "rationalizations.yaml", kind: RATIONALIZATIONS.map },
    FileShape { file: "session_types.yaml", kind: SESSION_TYPE.list },
    FileShape { file: "checkers.yaml", kind: Kind::Map(&CHECKER.map) },
    FileShape { file: "considerations.yaml", kind: CONSIDERATION.list },
    FileShape { file: "exemptions.yaml", kind: EXEMPTION.list },
    FileShape { file: "messages.yaml", kind: Kind::Map(&MESSAGE_CHOICE.list) },
];

impl FileShape {
    /// Returns the keys that contain lists of entries with ids.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, &'static Kind)> {
        let fields = if let Kind::Record(fields) = self.kind { fields } else { &[] };
        fields.iter().filter_map(|field| {
            let Kind::List(one) = field.kind else { return None };
            let Kind::Record(keys) = one else { return None };
            keys.iter().any(|key| key.name == "id").then_some((field.name, one))
        })
    }
}
