//! Facts about the event, the session, what was said, and tokens.

use rhai::Dynamic;

use super::dynamic::{count, text_argument, texts};
use super::events;
use super::fact_source::FactSource;
use super::json_paths::{json_text, texts_at};
use super::params::KEY;
use super::prose::Prose;
use super::row::{FactRow, field, method, number};
use super::types::{
    Evidence::Neutral, Evidence::Structure, Evidence::Words, PackName, Subject, TextForm, Type,
    Unit,
};
use policyd_facts::event::EVENT_NAMES;

/// Rows of `event`, `session`, `transcript` and `tokens`.
pub(super) const ROWS: &[FactRow] = &[
    field(
                Subject::Event,
                "kind",
                Type::Text,
                Neutral,
                ["Neutral name of the event.", "event.kind == \"subagent_stop\""],
                |it, _| Ok(it.context().event.kind.name().into()),
            ).at(&events::EVERYWHERE).with_values(EVENT_NAMES),
    field(
                Subject::Event,
                "tool",
                Type::Text,
                Structure,
                ["Tool about to run or that ran, else empty.", "event.tool == \"Bash\""],
                |it, _| Ok(it.context().event.tool_name.clone().unwrap_or_default().into()),
            ).at(&events::TOOL).of_ids(PackName::Tool),
    method(
            Subject::Event,
            "input",
            KEY,
            (Type::Text, Structure),
            [
                "A field of the tool's input as text, else empty.",
                "event.input(\"file_path\") != \"\"",
            ],
            |it, args| {
                let key = text_argument(args, 0)?;
                Ok(it
                    .context()
                    .event
                    .tool_input
                    .get(key.as_str())
                    .map(json_text)
                    .unwrap_or_default()
                    .into())
            },
        ).at(&events::INPUT),
    method(
            Subject::Event,
            "inputs",
            KEY,
            (Type::Texts, Structure),
            [
                "The values at a path in the tool's input; the path is written as that of `list` of a probe.",
                "event.inputs(\"edits[].old_string\").join(\" \").contains(\"TODO\")",
            ],
            |it, args| {
                let path = text_argument(args, 0)?;
                Ok(texts(texts_at(&it.context().event.tool_input, &path)))
            },
        ).at(&events::INPUT),
    field(
        Subject::Event,
        "output",
        Type::Text,
        Structure,
        [
            "The texts in the result of the tool, at `post_tool_use`, else empty.",
            "event.output.contains(\"authentication failed\")",
        ],
        |it, _| Ok(output(&it.context().event.tool_response).into()),
    )
    .at(&events::RESULTS),
    field(
            Subject::Event,
            "prompt",
            Type::Text,
            Words,
            ["The prompt just sent, else empty.", "event.prompt.contains(\"deploy\")"],
            |it, _| Ok(it.context().event.prompt.clone().unwrap_or_default().into()),
        ).at(&events::PROMPTS),
    field(
            Subject::Event,
            "in_subagent",
            Type::Bool,
            Neutral,
            ["Whether it happened inside a subagent.", "!event.in_subagent"],
            |it, _| Ok(it.context().event.agent_id.is_some().into()),
        ).at(&events::EVERYWHERE),
    field(
            Subject::Event,
            "agent_type",
            Type::Text,
            Neutral,
            ["Type of the subagent, else empty.", "event.agent_type == \"Explore\""],
            |it, _| Ok(it.context().event.agent_type.clone().unwrap_or_default().into()),
        ).at(&events::EVERYWHERE),
    field(
                Subject::Event,
                "permission_mode",
                Type::Text,
                Neutral,
                ["Permission mode, else empty.", "event.permission_mode == \"plan\""],
                |it, _| Ok(it.context().event.permission_mode.clone().unwrap_or_default().into()),
            ).at(&events::EVERYWHERE).of_ids(PackName::PermissionMode),
    number(
            Subject::Event,
            "context_tokens",
            Unit::Other,
            Structure,
            [
                "Tokens of the conversation that a session continues, at `session_start`; 0 where unknown.",
                "event.kind == \"session_start\" && event.context_tokens > 100000",
            ],
            |it, _| Ok(count(it.context().event.continued.context_tokens)),
        ).at(&events::EVERYWHERE),
    number(
            Subject::Event,
            "estimated_cache_write_usd",
            Unit::Dollars,
            Structure,
            [
                "Estimated cost in US dollars to cache that conversation again, at `session_start`; 0 where \
             unknown.",
                "event.kind == \"session_start\" && event.estimated_cache_write_usd > 1.5",
            ],
            |it, _| Ok(it.context().event.continued.cache_write_usd.into()),
        ).at(&events::EVERYWHERE),
    number(
            Subject::Event,
            "seconds_since_last_response",
            Unit::Other,
            Structure,
            [
                "Seconds since the model answered last, at `session_start`; 0 where unknown.",
                "event.kind == \"session_start\" && event.seconds_since_last_response > 3600",
            ],
            |it, _| Ok(count(it.context().event.continued.seconds_since_last_response)),
        ).at(&events::EVERYWHERE),
    field(
            Subject::Event,
            "prompt_cache_likely_expired",
            Type::Bool,
            Structure,
            [
                "Whether the prompt cache of that conversation has likely expired, at `session_start`.",
                "event.kind == \"session_start\" && event.prompt_cache_likely_expired",
            ],
            |it, _| Ok(it.context().event.continued.cache_expired.into()),
        ).at(&events::EVERYWHERE),
    number(
            Subject::Event,
            "background_running",
            Unit::Count,
            Structure,
            ["Background tasks that still run.", "event.background_running == 0"],
            |it, _| Ok(count(it.context().event.running_in_background())),
        ).at(&events::AT_STOPS),
    field(
                Subject::Session,
                "type",
                Type::Text,
                Neutral,
                ["Type of the session by `session_types.yaml`.", "session.type == \"DEVELOPMENT\""],
                |it, _| Ok(it.view.session_type.clone().into()),
            ).of_ids(PackName::SessionType).from(FactSource::SessionType),
    field(
        Subject::Session,
        "id",
        Type::Text,
        Neutral,
        ["Session id.", "session.id != \"\""],
        |it, _| Ok(it.context().event.session_id.as_str().to_owned().into()),
    ),
    field(
        Subject::Session,
        "interactive",
        Type::Bool,
        Neutral,
        [
            "Whether a user is present: not in a supervised run, else as the client states.",
            "session.interactive",
        ],
        |it, _| Ok(it.context().interactive.into()),
    ),
    field(
        Subject::Session,
        "supervised",
        Type::Bool,
        Neutral,
        [
            "Whether this is a turn of `policyd run`, after which another one follows.",
            "!session.supervised",
        ],
        |it, _| Ok(it.context().supervised.into()),
    ),
    field(
            Subject::Session,
            "branch",
            Type::Text,
            Structure,
            ["Git branch last seen, else empty.", "session.branch == \"main\""],
            |it, _| Ok(it.context().facts.branch.clone().into()),
        ).of_form(TextForm::Branch).from(FactSource::Transcript),
    field(
        Subject::Session,
        "main_branches",
        Type::Texts,
        Neutral,
        ["The `main_branches` of `vocabulary.yaml`.", "session.branch in session.main_branches"],
        |it, _| Ok(texts(it.context().main_branches.iter().cloned())),
    ),
    field(
            Subject::Session,
            "forge",
            Type::Text,
            Structure,
            [
                "The forge of `vocabulary.yaml` that the project's remote is on, else empty.",
                "session.forge == \"gitlab\"",
            ],
            |it, _| match it.context().forge.as_str() {
                "" if it.context().recorded => Err(it.context().miss("the remote")),
                forge => Ok(forge.to_owned().into()),
            },
        ).of_ids(PackName::Forge).from(FactSource::Remote),
    field(
            Subject::Session,
            "remote_host",
            Type::Text,
            Structure,
            [
                "Host of the project's remote, in small letters, else empty.",
                "session.remote_host.ends_with(\".example.org\")",
            ],
            |it, _| match it.context().remote_host.as_str() {
                "" if it.context().recorded => Err(it.context().miss("the remote")),
                host => Ok(host.to_owned().into()),
            },
        ).of_form(TextForm::Host).from(FactSource::Remote),
    number(
        Subject::Transcript,
        "prompts",
        Unit::Count,
        Structure,
        ["Prompts by humans.", "transcript.prompts > 1"],
        |it, _| Ok(count(it.context().facts.prompts.count)),
    ),
    number(
        Subject::Transcript,
        "last_prompt_at",
        Unit::Position,
        Structure,
        [
            "Position of the last prompt by a human, 0 when none.",
            "tools.last_at > transcript.last_prompt_at",
        ],
        |it, _| {
            let prompts = &it.context().facts.prompts;
            Ok(count(prompts.last.last().or(prompts.first.last()).map_or(0, |it| it.seq)))
        },
    ),
    field(
        Subject::Transcript,
        "interrupted",
        Type::Bool,
        Structure,
        [
            "Whether the turn before the last prompt was cut off: a human interrupted it.",
            "transcript.interrupted",
        ],
        |it, _| Ok(interrupted(&it.context().facts).into()),
    ),
    number(
        Subject::Transcript,
        "position",
        Unit::Position,
        Structure,
        ["How far the transcript goes: lines read, and tool calls.", "transcript.position > 100"],
        |it, _| Ok(count(it.context().facts.seq)),
    ),
    number(
        Subject::Transcript,
        "messages",
        Unit::Count,
        Structure,
        ["Texts by the agent.", "transcript.messages > 0"],
        |it, _| Ok(count(it.context().facts.messages.count)),
    ),
    field(
        Subject::Transcript,
        "first_prompt",
        Type::Text,
        Words,
        ["The first prompt by a human.", "transcript.first_prompt.ends_with(\"?\")"],
        |it, _| Ok(prompt(it.context().facts.prompts.first.first())),
    ),
    field(
        Subject::Transcript,
        "last_prompt",
        Type::Text,
        Words,
        ["The last prompt by a human.", "transcript.last_prompt.contains(\"merge\")"],
        |it, _| {
            let prompts = &it.context().facts.prompts;
            Ok(prompt(prompts.last.last().or(prompts.first.last())))
        },
    ),
    number(
        Subject::Transcript,
        "questions_asked",
        Unit::Count,
        Words,
        ["Prompts by humans that contain a question mark.", "transcript.questions_asked > 0"],
        |it, _| {
            let prompts = &it.context().facts.prompts;
            let all = prompts.first.iter().chain(&prompts.last);
            Ok(count(all.filter(|it| it.text.contains('?')).count()))
        },
    ),
    field(
        Subject::Transcript,
        "last_message",
        Type::Text,
        Words,
        ["The agent's last text.", "transcript.last_message.ends_with(\"?\")"],
        |it, _| Ok(it.context().last_message.clone().into()),
    ),
    number(
        Subject::Transcript,
        "questions_in_message",
        Unit::Count,
        Words,
        [
            "Questions in the agent's last text, code left out.",
            "transcript.questions_in_message > 3",
        ],
        |it, _| Ok(count(it.context().messages().last().map_or(0, Prose::questions))),
    ),
    number(
        Subject::Transcript,
        "compacted_at",
        Unit::Position,
        Structure,
        [
            "Position of the last compaction, 0 when none.",
            "todos.last_at < transcript.compacted_at",
        ],
        |it, _| Ok(count(it.context().facts.compactions.last_seq)),
    ),
    field(
        Subject::Transcript,
        "objective_kept",
        Type::Bool,
        Words,
        [
            "Whether a text since the last compaction speaks of the first prompt; true without one.",
            "transcript.objective_kept",
        ],
        |it, _| Ok(objective_kept(it.context()).into()),
    ),
    number(
        Subject::Transcript,
        "compactions",
        Unit::Count,
        Structure,
        ["Times the context was compacted.", "transcript.compactions > 0"],
        |it, _| Ok(count(it.context().facts.compactions.count)),
    ),
    number(
        Subject::Tokens,
        "context",
        Unit::ContextTokens,
        Structure,
        ["Tokens in the context at the last API call.", "tokens.context > 150000"],
        |it, _| Ok(count(it.context().facts.tokens.meters.occupied)),
    ),
    number(
        Subject::Tokens,
        "input",
        Unit::Other,
        Structure,
        ["Input tokens spent, without caches.", "tokens.input > 1000000"],
        |it, _| Ok(count(it.context().facts.tokens.meters.total().input)),
    ),
    number(
        Subject::Tokens,
        "output",
        Unit::Other,
        Structure,
        ["Output tokens spent.", "tokens.output > 100000"],
        |it, _| Ok(count(it.context().facts.tokens.meters.total().output)),
    ),
    field(
        Subject::Tokens,
        "model",
        Type::Text,
        Neutral,
        ["Model of the last API call, else empty.", "tokens.model.starts_with(\"claude\")"],
        |it, _| Ok(it.context().facts.tokens.meters.model.clone().into()),
    ),
];

/// Whether the newest cut-off of a turn is between the last two prompts.
fn interrupted(facts: &policyd_facts::Facts) -> bool {
    let mut prompts = facts.prompts.last.iter().rev().chain(facts.prompts.first.iter().rev());
    let (last, before) = (prompts.next(), prompts.next());
    let after = |prompt: Option<&policyd_facts::Prompt>| prompt.map_or(0, |it| it.seq);
    facts.cut_off_seq > after(before) && facts.cut_off_seq < after(last)
}

/// Whether a long word of the first prompt occurs in what the agent said since the compaction.
fn objective_kept(context: &super::context::Context) -> bool {
    let facts = &context.facts;
    let since = facts.compactions.last_seq;
    let said = facts.messages.last.iter().filter(|it| it.seq > since).map(|it| it.text.as_str());
    let said: Vec<String> =
        said.chain([context.last_message.as_str()]).flat_map(long_words).collect();
    let objective = facts.prompts.first.first().map(|it| long_words(&it.text)).unwrap_or_default();
    since == 0 || objective.is_empty() || objective.iter().any(|it| said.contains(it))
}

/// Words of five letters or more, which are seldom without a meaning of their own.
fn long_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|it| it.chars().count() >= 5).collect()
}

fn prompt(prompt: Option<&policyd_facts::Prompt>) -> Dynamic {
    prompt.map(|it| it.text.clone()).unwrap_or_default().into()
}

/// Keys of the texts in the result of a tool, as clients name them, in the order in which they are joined.
const OUTPUT_KEYS: [&str; 8] =
    ["stdout", "stderr", "output", "content", "text", "result", "llmContent", "error"];

/// The texts in the result of a tool, one per line.
fn output(result: &serde_json::Value) -> String {
    use serde_json::Value;
    match result {
        Value::String(text) => text.clone(),
        Value::Array(items) => joined_outputs(items.iter()),
        Value::Object(fields) => {
            joined_outputs(OUTPUT_KEYS.iter().filter_map(|key| fields.get(*key)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn joined_outputs<'v>(values: impl Iterator<Item = &'v serde_json::Value>) -> String {
    let texts: Vec<String> = values.map(output).filter(|it| !it.is_empty()).collect();
    texts.join("\n")
}
