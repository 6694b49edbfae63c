//! What `rationalizations.yaml` may hold.

use super::{OVERRIDE, REGEX_LIST as REGEXES, TEXTS};
use crate::policy::rationalizations::FAMILIES;
use crate::source::shape::{Field, Kind, field, required};

const ENTRY: &[Field] = &[
    required("id", Kind::Text, "Its name."),
    field(
        "family",
        Kind::Choice(FAMILIES),
        "The family it belongs to; `rationalization` by default.",
    ),
    field("phrases", TEXTS, "Whole words of the agent's last text, any case."),
    field("regexes", REGEXES, "Tried on each sentence, case not counted."),
    field("unless", REGEXES, "Found in the same sentence, they excuse it."),
    field("when", Kind::Expression, "Holds where it counts; always, where absent."),
    field("wrong", Kind::Text, "Why it is wrong."),
    field("action", Kind::Text, "What is to be done instead."),
    field(
        "blocking",
        Kind::Expression,
        "Holds where what happened speaks against it: it blocks there, and warns elsewhere.",
    ),
    field("enabled", Kind::Bool, "Whether it is looked for at all; `true` by default."),
    field("description", Kind::Text, "For people."),
    OVERRIDE,
];

/// `rationalizations.yaml`: excuses and red flags, and what counters them.
pub const RATIONALIZATIONS: &[Field] = &[
    field("unless", REGEXES, "Sentences that tell what somebody else said."),
    field(
        "entries",
        Kind::List(&Kind::Record(ENTRY)),
        "What is looked for; all that match are told.",
    ),
];
