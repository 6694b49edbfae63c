//! Facts whose names a pack defines: text patterns, preferences, probes.

use std::rc::Rc;

use rhai::{Dynamic, ImmutableString};
use serde_json::Value;

use super::FactError;
use super::context::{ContextPart, Object, ProbeResult};
use super::dynamic::{count, text_argument, texts};
use super::invariant::{Invariant, Is};
use super::json_paths::{json_text, texts_at, values, whole_number};
use super::params::KEY;
use super::pattern::TextPattern;
use super::prose::Prose;
use super::reply;
use super::row::{FactRow, field, method, number};
use super::types::{Domain, Evidence::Structure, Evidence::Words, PackName, Subject, Type, Unit};

const PATTERN: &[(Type, Domain)] = &[(Type::Text, PackName::Text.as_domain())];
/// Rows of `patterns` and of a probe. `prefs.<id>` and `probes.<id>` are named by the pack.
pub(super) const ROWS: &[FactRow] = &[
    method(
        Subject::Patterns,
        "in_message",
        PATTERN,
        (Type::Bool, Words),
        ["Whether the agent's last text matches.", "patterns.in_message(\"next_steps\")"],
        |it, args| Ok(message_quote(it, args)?.is_some().into()),
    ),
    method(
        Subject::Patterns,
        "message_quote",
        PATTERN,
        (Type::Text, Words),
        [
            "The sentence of the agent's last text that matches, else empty.",
            "patterns.message_quote(\"next_steps\") != \"\"",
        ],
        |it, args| Ok(message_quote(it, args)?.unwrap_or_default().into()),
    ),
    method(
        Subject::Patterns,
        "in_messages",
        PATTERN,
        (Type::Bool, Words),
        ["Whether one of the agent's last texts matches.", "patterns.in_messages(\"completion\")"],
        |it, args| Ok(any_quote(it, args, it.context().messages())?.is_some().into()),
    ),
    method(
        Subject::Patterns,
        "messages_quote",
        PATTERN,
        (Type::Text, Words),
        [
            "The sentence of one of the agent's last texts that matches, else empty.",
            "patterns.messages_quote(\"completion\") != \"\"",
        ],
        |it, args| Ok(any_quote(it, args, it.context().messages())?.unwrap_or_default().into()),
    ),
    method(
            Subject::Patterns,
            "prompted_at",
            PATTERN,
            (Type::Int, Words),
            [
                "Position of the newest prompt by a human that matches, 0 when none.",
                "files.last_at > patterns.prompted_at(\"operations\")",
            ],
            |it, args| {
                let ((name, pattern), prompts) = (pattern(it, args)?, &it.context().facts.prompts);
                let known = prompts.first.iter().chain(&prompts.last).zip(it.context().prompts());
                let hits = known
                    .filter(|(_, prose)| prose.remembered(&name, |it| pattern.quote(it)).is_some());
                Ok(count(hits.map(|(prompt, _)| prompt.seq).max().unwrap_or(0)))
            },
        ).of_unit(Unit::Position),
    method(
        Subject::Patterns,
        "in_prompts",
        PATTERN,
        (Type::Bool, Words),
        ["Whether a prompt by a human matches.", "patterns.in_prompts(\"operations\")"],
        |it, args| Ok(any_quote(it, args, it.context().prompts())?.is_some().into()),
    ),
    method(
        Subject::Patterns,
        "prompt_quote",
        PATTERN,
        (Type::Text, Words),
        [
            "The sentence of a human's prompt that matches, else empty.",
            "patterns.prompt_quote(\"operations\") != \"\"",
        ],
        |it, args| Ok(any_quote(it, args, it.context().prompts())?.unwrap_or_default().into()),
    ),
    method(
        Subject::Patterns,
        "in_last_prompt",
        PATTERN,
        (Type::Bool, Words),
        ["Whether the last prompt by a human matches.", "patterns.in_last_prompt(\"operations\")"],
        |it, args| Ok(any_quote(it, args, it.context().prompts().last())?.is_some().into()),
    ),
    method(
        Subject::Patterns,
        "last_prompt_quote",
        PATTERN,
        (Type::Text, Words),
        [
            "The sentence of the last prompt by a human that matches, else empty.",
            "patterns.last_prompt_quote(\"operations\") != \"\"",
        ],
        |it, args| {
            Ok(any_quote(it, args, it.context().prompts().last())?.unwrap_or_default().into())
        },
    ),
    field(
            Subject::Probe,
            "ok",
            Type::Bool,
            Structure,
            ["Whether it answered and exited with 0.", "probes.pr.ok"],
            |it, _| with_reading(it, |it| matches!(it, ProbeResult::Answer { code: 0, .. }).into()),
        ).always(&[
            Invariant::Either(Is::False, "code", Is::Zero),
            Invariant::Either(Is::True, "code", Is::NotZero),
            Invariant::Either(Is::False, "error", Is::Empty),
        ]),
    field(
        Subject::Probe,
        "error",
        Type::Text,
        Structure,
        ["Why it could not answer, else empty.", "probes.pr.error == \"\""],
        |it, _| {
            with_reading(it, |it| match it {
                ProbeResult::Failed(why) => why.clone().into(),
                ProbeResult::Answer { .. } => String::new().into(),
            })
        },
    ),
    number(
            Subject::Probe,
            "code",
            Unit::Other,
            Structure,
            ["Exit code, -1 when it could not answer.", "probes.pr.code == 0"],
            |it, _| {
                with_reading(it, |it| match it {
                    ProbeResult::Answer { code, .. } => count(*code),
                    ProbeResult::Failed(_) => count(-1),
                })
            },
        ).with_range((i32::MIN as i64, i32::MAX as i64)),
    method(
        Subject::Probe,
        "text",
        KEY,
        (Type::Text, Structure),
        ["The value at a path as text, else empty.", "probes.pr.text(\"state\") == \"OPEN\""],
        |it, args| {
            at_path(it, args, |found| {
                found.first().map(|it| json_text(it)).unwrap_or_default().into()
            })
        },
    ),
    method(
            Subject::Probe,
            "verdict",
            KEY,
            (Type::Text, Structure),
            [
                "What the reply at a path says: `SATISFIED: …` or `NOT SATISFIED: …` at the start of a line; `unknown` where it says neither, or could not answer.",
                "probes.pr.verdict(\"\") == \"unknown\"",
            ],
            |it, args| {
                let path = text_argument(args, 0)?;
                with_reading(it, |reading| match reading {
                    ProbeResult::Answer { value, .. } => {
                        values(value, &path).first().map_or("unknown", |it| reply::verdict(it))
                    }
                    ProbeResult::Failed(_) => "unknown",
                })
                .map(Dynamic::from)
            },
        ).with_values(&["satisfied", "unsatisfied", "unknown"]),
    method(
        Subject::Probe,
        "flag",
        KEY,
        (Type::Bool, Structure),
        ["Whether the value at a path is true.", "probes.pr.flag(\"isDraft\")"],
        |it, args| {
            at_path(it, args, |found| {
                found.first().is_some_and(|it| it.as_bool() == Some(true)).into()
            })
        },
    ),
    method(
                Subject::Probe,
                "number",
                KEY,
                (Type::Int, Structure),
                ["The whole number at a path; 0 without a value, and unknown for another value.", "probes.pr.number(\"number\") > 0"],
                |it, args| at_path(it, args, |found| whole_number(&found))?,
            ).of_unit(Unit::Unknown).with_range((i64::MIN, i64::MAX)),
    method(
        Subject::Probe,
        "list",
        KEY,
        (Type::Texts, Structure),
        [
            "The values at a path; `[]` is every element of a list, `[0]` the first, `[key=text]` those with that value, `[key!=text]` those with another. A last step `{name,url}` joins the values of several keys with a space. Nulls and empty texts are left out.",
            "probes.pr.list(\"statusCheckRollup[].conclusion\").contains(\"FAILURE\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            with_reading(it, |reading| match reading {
                ProbeResult::Answer { value, .. } => Ok(texts(texts_at(value, &path))),
                ProbeResult::Failed(why) => Err(failed(it, why)),
            })?
        },
    ),
];

/// `prefs.<id>`: whether a preference was found.
pub(super) fn preference(it: &Object, id: &str) -> Result<Dynamic, FactError> {
    match it.view.readings.preferences.get(id) {
        Some(found) => Ok((*found).into()),
        None if it.context().recorded => Err(it.context().miss(&format!("the preference `{id}`"))),
        None => Ok(false.into()),
    }
}

/// `probes.<id>`: the handle of a probe.
pub(super) fn probe(it: &Object, id: &str) -> Dynamic {
    it.part(ContextPart::Probe(Rc::from(id)))
}

fn message_quote(it: &Object, args: &[Dynamic]) -> Result<Option<String>, FactError> {
    any_quote(it, args, it.context().messages().last())
}

/// The text pattern that is asked for, with its name.
fn pattern<'o>(
    it: &'o Object,
    args: &[Dynamic],
) -> Result<(ImmutableString, &'o TextPattern), FactError> {
    let name = text_argument(args, 0)?;
    match it.context().patterns.get(name.as_str()) {
        Some(pattern) => Ok((name, pattern)),
        None => Err(format!("no text pattern `{name}`").into()),
    }
}

fn any_quote<'t>(
    it: &Object,
    args: &[Dynamic],
    said: impl IntoIterator<Item = &'t Prose>,
) -> Result<Option<String>, FactError> {
    let (name, pattern) = pattern(it, args)?;
    let quote = |it: &'t Prose| it.remembered(&name, |it| pattern.quote(it));
    Ok(said.into_iter().find_map(quote).map(|it| it.trim().to_owned()))
}

/// Looks at the reading of a probe.
fn with_reading<T>(it: &Object, look: impl FnOnce(&ProbeResult) -> T) -> Result<T, FactError> {
    let ContextPart::Probe(id) = &it.part else { return Err("not a probe".into()) };
    it.view.readings.probes.get(&**id).map(look).ok_or_else(|| match it.context().recorded {
        true => it.context().miss(&format!("what probe `{id}` answered")),
        false => format!("probe `{id}` was not run").into(),
    })
}

/// Looks at the values at a path of a probe's answer.
fn at_path<T>(
    it: &Object,
    args: &[Dynamic],
    look: impl FnOnce(Vec<&Value>) -> T,
) -> Result<T, FactError> {
    let path = text_argument(args, 0)?;
    with_reading(it, |reading| match reading {
        ProbeResult::Answer { value, .. } => Ok(look(values(value, &path))),
        ProbeResult::Failed(why) => Err(failed(it, why)),
    })?
}

/// Why a probe has no value.
fn failed(it: &Object, why: &str) -> FactError {
    let ContextPart::Probe(id) = &it.part else { return why.into() };
    format!("probe `{id}`: {why}").into()
}
