//! Facts about what is remembered, the rule that is judged, and the outcome.

use super::context::FactView;
use super::dynamic::count;
use super::row::{FactRow, field, number};
use super::types::{Evidence::Neutral, Evidence::Structure, Evidence::Words, Subject, Type, Unit};

/// Rows of `state`, `rule` and `outcome`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::State,
        "blocks",
        Unit::Count,
        Structure,
        ["Blocks in this episode.", "state.blocks < 3"],
        |it, _| Ok(count(it.view.memory.blocks)),
    ),
    number(
        Subject::State,
        "total_blocks",
        Unit::Count,
        Structure,
        ["Blocks in the whole session.", "state.total_blocks > 10"],
        |it, _| Ok(count(it.view.memory.total_blocks)),
    ),
    number(
        Subject::State,
        "turns",
        Unit::Count,
        Structure,
        ["Stops that moved the state.", "state.turns > 1"],
        |it, _| Ok(count(it.view.memory.turns)),
    ),
    field(
        Subject::Rule,
        "id",
        Type::Text,
        Neutral,
        ["Id of the consideration that is being judged.", "rule.id != \"\""],
        |it, _| Ok(it.view.rule.id.clone().into()),
    ),
    field(
        Subject::Rule,
        "keywords_seen",
        Type::Texts,
        Words,
        [
            "Significant words of its question that the agent wrote, ran or edited.",
            "rule.keywords_seen.len() > 0",
        ],
        |it, _| Ok(super::dynamic::texts(keywords_seen(&it.view))),
    ),
    number(
        Subject::Outcome,
        "failed",
        Unit::Count,
        Neutral,
        ["Blockers that are not satisfied.", "outcome.failed > 1"],
        |it, _| Ok(count(it.view.outcome.failed)),
    ),
    number(
        Subject::Outcome,
        "warned",
        Unit::Count,
        Neutral,
        ["Warnings.", "outcome.warned > 0"],
        |it, _| Ok(count(it.view.outcome.warned)),
    ),
    number(
        Subject::Outcome,
        "block",
        Unit::Count,
        Neutral,
        ["Number of this block in its episode.", "outcome.block > 1"],
        |it, _| Ok(count(it.view.outcome.block)),
    ),
    number(
        Subject::Outcome,
        "max_blocks",
        Unit::Count,
        Neutral,
        ["Blocks after which policyd releases the stop.", "outcome.max_blocks == 5"],
        |it, _| Ok(count(it.view.outcome.max_blocks)),
    ),
    number(
        Subject::Outcome,
        "remaining",
        Unit::Count,
        Neutral,
        [
            "Blocks that remain for the same finding before policyd releases the stop.",
            "outcome.remaining == 0",
        ],
        |it, _| Ok(count(it.view.outcome.remaining)),
    ),
    number(
        Subject::Outcome,
        "idle_remaining",
        Unit::Count,
        Neutral,
        [
            "Blocks that remain before policyd releases a stop without a tool call after a block.",
            "outcome.idle_remaining == 0",
        ],
        |it, _| Ok(count(it.view.outcome.idle_remaining)),
    ),
    field(
        Subject::Outcome,
        "explanation",
        Type::Text,
        Words,
        [
            "The agent's last message in quotes, on one line and cut, else empty.",
            "outcome.explanation != \"\"",
        ],
        |it, _| Ok(it.view.outcome.explanation.clone().into()),
    ),
    field(
        Subject::Outcome,
        "release",
        Type::Text,
        Neutral,
        ["Why policyd released the stop, else empty.", "outcome.release == \"max_blocks\""],
        |it, _| Ok(it.view.outcome.release.clone().into()),
    )
    .with_values(&[
        "",
        "max_blocks",
        "same_failure",
        "no_progress",
        "already_released",
        "not_saved",
    ]),
    field(
        Subject::Outcome,
        "failed_ids",
        Type::Texts,
        Neutral,
        ["Ids of the unsatisfied blockers.", "outcome.failed_ids.contains(\"local_testing\")"],
        |it, _| Ok(super::dynamic::texts(it.view.outcome.failed_ids.iter().cloned())),
    ),
    field(
        Subject::Outcome,
        "failed_details",
        Type::Texts,
        Neutral,
        ["The same, each with what is wrong.", "outcome.failed_details.len() > 0"],
        |it, _| Ok(super::dynamic::texts(it.view.outcome.failed_details.iter().cloned())),
    ),
    field(
        Subject::Outcome,
        "workflow_compliant",
        Type::Bool,
        Neutral,
        ["Whether every blocker was satisfied.", "!outcome.workflow_compliant"],
        |it, _| Ok(it.view.outcome.workflow_compliant.into()),
    ),
    number(
        Subject::Outcome,
        "quality_score",
        Unit::Other,
        Neutral,
        ["Share of satisfied checks, 0 to 100.", "outcome.quality_score < 70"],
        |it, _| Ok(count(it.view.outcome.quality_score)),
    ),
];

/// Significant words of the question that occur, as whole words, in what the agent did.
fn keywords_seen(view: &FactView) -> Vec<String> {
    let context = &view.context;
    let facts = &context.facts;
    let messages = facts.messages.last.iter().map(|it| it.text.as_str());
    let commands = facts.commands.recent.iter().map(|it| it.text.as_str());
    let files = facts.files.iter().map(|it| it.path.as_str());
    let done = messages.chain(commands).chain(files).chain([context.last_message.as_str()]);
    let words: std::collections::BTreeSet<String> = done
        .flat_map(|it| it.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase)
        .collect();
    view.rule.keywords.iter().filter(|it| words.contains(*it)).cloned().collect()
}
