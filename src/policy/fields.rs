//! Kinds and keys that several files of a pack have.

use serde_json::Value;

use policyd_yaml::shape::{Field, Kind, field, required};

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
/// Earlier ids of an entry. Packs, cases, commands, and logs can still use them.
pub(super) const FORMERLY: Field =
    field("formerly", TEXTS, "Earlier ids, which packs, cases, commands and logs can still use.");
/// The condition under which an entry applies.
pub(super) const WHEN: Field = field("when", Kind::Expression, "Holds where it applies.").needed();
/// A comment for the readers of a pack.
pub(super) const DESCRIPTION: Field =
    field("description", Kind::Text, "Description for readers of the pack.");
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
