//! What the files of a pack may hold: one table per file kind.
//! The loader, the JSON Schemas and the documentation read these tables.

use serde_json::Value;

use crate::source::shape::{Field, Kind, field, required};

pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);
pub(super) const REGEX_LIST: Kind = Kind::List(&Kind::Regex);
pub(super) const GLOBS: Kind = Kind::List(&Kind::Text);

/// The condition of one of several texts.
pub(super) const CHOICE_WHEN: Field =
    field("when", Kind::Expression, "Holds where this text is used; always, where absent.");
/// One of several texts.
pub(super) const CHOICE_TEXT: Field =
    required("text", Kind::Template, "A template with `${expression}` holes.");
const CHOICE: &[Field] = &[CHOICE_WHEN, CHOICE_TEXT];
/// One template, or a list of texts of which the first fitting one is used.
pub(super) const CHOICES: Kind = Kind::Either(&[Kind::Template, Kind::List(&Kind::Record(CHOICE))]);
const EVIDENCE_ITEM: Kind = Kind::Either(&[Kind::Template, Kind::Record(CHOICE)]);
pub(super) const EVIDENCE: Kind = Kind::List(&EVIDENCE_ITEM);

/// The id of an entry.
pub(super) const ID: Field =
    required("id", Kind::Text, "Its name in messages, logs and overrides.");
/// The condition under which an entry applies.
pub(super) const WHEN: Field = field("when", Kind::Expression, "Holds where it applies.").needed();
/// A comment for the readers of a pack.
pub(super) const DESCRIPTION: Field = field("description", Kind::Text, "For people.");
/// Whether an entry is used.
pub(super) const ENABLED: Field = enabled("Whether it is used at all; `true` by default.");

/// Returns the key `enabled` with its description.
pub(super) const fn enabled(doc: &'static str) -> Field {
    field("enabled", Kind::Bool, doc).with_default(|| Some(Value::Bool(true)))
}

pub(super) const OVERRIDE: Field =
    field("override", Kind::Bool, "Changes the inherited entry of this id, key by key.");

pub(super) const REPLACES: Field =
    field("override", Kind::Bool, "Replaces the inherited entry of this name; it is joined else.");

const GUARDS: Kind = super::guards::GUARD.list;

/// One kind of file of a pack.
#[derive(Debug)]
pub struct FileShape {
    /// File name in the folder of the pack.
    pub file: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// Every kind of file a pack may hold.
pub const FILES: &[FileShape] = &[
    FileShape { file: "policyd.yaml", kind: super::manifest::MANIFEST.map },
    FileShape { file: "vocabulary.yaml", kind: super::vocabulary::VOCABULARY.map },
    FileShape { file: "preferences.yaml", kind: super::probes::PREFERENCE.list },
    FileShape { file: "probes.yaml", kind: super::probes::PROBE.list },
    FileShape { file: "breakers.yaml", kind: Kind::Map(&super::breakers::BREAKER.map) },
    FileShape { file: "dead_letter.yaml", kind: super::resilience::DEAD_LETTER.map },
    FileShape { file: "escalation.yaml", kind: super::resilience::ESCALATION.map },
    FileShape { file: "failures.yaml", kind: super::failures::FAILURES.map },
    FileShape { file: "routes.yaml", kind: super::breakers::ROUTE.list },
    FileShape { file: "reactions.yaml", kind: super::resilience::REACTION.list },
    FileShape { file: "context.yaml", kind: super::context::CONTEXT.map },
    FileShape { file: "signals.yaml", kind: super::signals::SIGNALS.map },
    FileShape { file: "guards.yaml", kind: GUARDS },
    FileShape { file: "destructive-commands.yaml", kind: GUARDS },
    FileShape { file: "protected-paths.yaml", kind: GUARDS },
    FileShape { file: "secrets.yaml", kind: GUARDS },
    FileShape { file: "git-discipline.yaml", kind: GUARDS },
    FileShape { file: "network-exfiltration.yaml", kind: GUARDS },
    FileShape { file: "run.yaml", kind: super::run::RUN.map },
    FileShape { file: "tables.yaml", kind: super::tables::TABLE.list },
    FileShape {
        file: "rationalizations.yaml",
        kind: super::rationalizations::RATIONALIZATIONS.map,
    },
    FileShape { file: "session_types.yaml", kind: super::considerations::SESSION_TYPE.list },
    FileShape { file: "checkers.yaml", kind: Kind::Map(&super::considerations::CHECKER.map) },
    FileShape { file: "considerations.yaml", kind: super::considerations::CONSIDERATION.list },
    FileShape { file: "messages.yaml", kind: Kind::Map(&super::messages::MESSAGE_CHOICE.list) },
];

impl FileShape {
    /// The keys of a file that hold lists of entries, each with an id.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, &'static Kind)> {
        let fields = if let Kind::Record(fields) = self.kind { fields } else { &[] };
        fields.iter().filter_map(|it| {
            let Kind::List(one) = it.kind else { return None };
            let Kind::Record(keys) = one else { return None };
            keys.iter().any(|it| it.name == "id").then_some((it.name, one))
        })
    }
}
