//! Facts about what waits: dead letters and questions to humans, `dead_letter.depth`,
//! `escalations.blocking`.

use rhai::Dynamic;

use super::FactError;
use super::context::Object;
use super::dynamic::{count, texts};
use super::row::{FactRow, field, number};
pub use super::snapshots::QueueSnapshot;
use super::types::{Evidence::Structure, PackName, Subject, Type, Unit};

/// Rows of `dead_letter` and `escalations`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::DeadLetters,
        "depth",
        Unit::Count,
        Structure,
        ["Tasks in the dead-letter queue.", "dead_letter.depth < 20"],
        |it, _| look(it, |it| count(it.depth)),
    ),
    number(
        Subject::DeadLetters,
        "oldest_hours",
        Unit::Other,
        Structure,
        ["Hours since the oldest of them first failed.", "dead_letter.oldest_hours < 72"],
        |it, _| look(it, |it| count(it.oldest_hours)),
    ),
    number(
        Subject::DeadLetters,
        "same_cause",
        Unit::Count,
        Structure,
        ["Tasks that share the commonest error.", "dead_letter.same_cause < 3"],
        |it, _| look(it, |it| count(it.same_cause)),
    ),
    number(
        Subject::DeadLetters,
        "awaiting_human",
        Unit::Count,
        Structure,
        ["Tasks that wait for a human.", "dead_letter.awaiting_human == 0"],
        |it, _| look(it, |it| count(it.awaiting_human)),
    ),
    field(
        Subject::DeadLetters,
        "alarms",
        Type::Texts,
        Structure,
        ["Alarms of dead_letter.yaml that hold, by id.", "dead_letter.alarms.len() == 0"],
        |it, _| look(it, |it| texts(it.alarms.iter().cloned())),
    )
    .of_ids(PackName::Alarm),
    field(
        Subject::Escalations,
        "open",
        Type::Texts,
        Structure,
        ["Titles of the questions to humans that are open.", "escalations.open.len() == 0"],
        |it, _| look(it, |it| texts(it.open.iter().cloned())),
    ),
    field(
        Subject::Escalations,
        "blocking",
        Type::Texts,
        Structure,
        ["Titles of those whose task stands still.", "escalations.blocking.len() == 0"],
        |it, _| look(it, |it| texts(it.blocking.iter().cloned())),
    ),
];

fn look(it: &Object, look: impl FnOnce(&QueueSnapshot) -> Dynamic) -> Result<Dynamic, FactError> {
    it.view.stores.waiting.as_ref().map(look).ok_or_else(|| match it.context().recorded {
        true => it.context().miss("what waited"),
        false => "the queues were not read at this event".into(),
    })
}
