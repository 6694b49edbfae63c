//! Facts about what waits: dead letters and questions to humans, `dead_letter.depth`,
//! `escalations.blocking`.

use rhai::Dynamic;

use super::FactError;
use super::context::Object;
use super::dynamic::{count, texts};
use super::row::{Member, field};
pub use super::snapshots::QueueSnapshot;
use super::types::{Evidence::Structure, Type};

/// Rows of `dead_letter` and `escalations`.
pub(super) const ROWS: &[Member] = &[
    field(
        Type::DeadLetters,
        "depth",
        Type::Int,
        Structure,
        ["Tasks in the dead-letter queue.", "dead_letter.depth < 20"],
        |it, _| look(it, |it| count(it.depth)),
    ),
    field(
        Type::DeadLetters,
        "oldest_hours",
        Type::Int,
        Structure,
        ["Hours since the oldest of them first failed.", "dead_letter.oldest_hours < 72"],
        |it, _| look(it, |it| count(it.oldest_hours)),
    ),
    field(
        Type::DeadLetters,
        "same_cause",
        Type::Int,
        Structure,
        ["Tasks that share the commonest error.", "dead_letter.same_cause < 3"],
        |it, _| look(it, |it| count(it.same_cause)),
    ),
    field(
        Type::DeadLetters,
        "awaiting_human",
        Type::Int,
        Structure,
        ["Tasks that wait for a human.", "dead_letter.awaiting_human == 0"],
        |it, _| look(it, |it| count(it.awaiting_human)),
    ),
    field(
        Type::DeadLetters,
        "alarms",
        Type::Texts,
        Structure,
        ["Alarms of dead_letter.yaml that hold, by id.", "dead_letter.alarms.len() == 0"],
        |it, _| look(it, |it| texts(it.alarms.iter().cloned())),
    ),
    field(
        Type::Escalations,
        "open",
        Type::Texts,
        Structure,
        ["Titles of the questions to humans that are open.", "escalations.open.len() == 0"],
        |it, _| look(it, |it| texts(it.open.iter().cloned())),
    ),
    field(
        Type::Escalations,
        "blocking",
        Type::Texts,
        Structure,
        ["Titles of those whose task stands still.", "escalations.blocking.len() == 0"],
        |it, _| look(it, |it| texts(it.blocking.iter().cloned())),
    ),
];

fn look(it: &Object, look: impl FnOnce(&QueueSnapshot) -> Dynamic) -> Result<Dynamic, FactError> {
    let learned = it.context.learned.borrow();
    learned.waiting.as_ref().map(look).ok_or_else(|| match it.context.recorded {
        true => it.context.miss("what waited"),
        false => "the queues were not read at this event".into(),
    })
}
