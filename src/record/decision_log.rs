//! Entries of the decision log, `logs/decisions.jsonl`: decisions, with the results of all rules and the inputs.
//! Contains: the stored form, both ways. Secrets are masked.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::mask::{mask, mask_json};
use super::notice::Notice;
use super::outcome::{LoggedGuard, ReportContext, blocks, guard_json, is_false};
use policyd_base::id::SessionId;
use policyd_base::limits;
use policyd_evaluation::called::LoggedEvent;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_evaluation::inputs::{DecisionSubject, Inputs};
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict, ConditionExplanation};
use policyd_evaluation::{StopOutcome, message};
use policyd_fact_table::parts::{Found, Part};
use policyd_fact_table::{FactError, Value};
use policyd_facts::event::{Event, EventKind};
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::time::Timestamp;

/// Version of the entries.
pub const ENTRY_VERSION: u32 = 1;

/// A line of `logs/decisions.jsonl`. Fields that another version lacks are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend(
    "required" = ["version", "timestamp", "event", "session_id", "decision", "verdicts"]
))]
pub struct Entry {
    /// Version of the entry.
    pub version: u32,
    /// Time of the decision.
    #[schemars(with = "Timestamp")]
    pub timestamp: String,
    /// Id of the entry, 8 hexadecimal digits, as `policyd explain` takes it.
    pub id: String,
    /// Neutral name of the event; the command with which the user turned policyd off or on; or `run_end`,
    /// `escalation`, `breaker_open`, `breaker_change`, or `dead_letter`.
    #[schemars(length(min = 1))]
    pub event: String,
    /// Id of the session; empty for the whole project.
    pub session_id: String,
    /// Id of the subagent that wanted to stop; `null` for the main agent.
    pub agent_id: Option<String>,
    /// Id of the prompt that the agent worked on.
    pub prompt_id: Option<String>,
    /// The decision; for a stop `block` or `none`.
    #[schemars(extend("enum" = ["none", "allow", "defer", "ask", "block", "halt"]))]
    pub decision: String,
    /// Whether a block was sent.
    pub spoken: bool,
    /// Why the block limiter released the agent, or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Whether rules were only logged, because policyd observed.
    #[serde(skip_serializing_if = "is_false")]
    pub observed: bool,
    /// Type of the session; absent if no check was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_type: Option<String>,
    /// Blocks of this episode, including this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_blocks: Option<u32>,
    /// Guards that fired or are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<LoggedGuard>")]
    pub guards: Vec<Json>,
    /// Tool that the event was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Results of all evaluated checks.
    pub verdicts: Vec<LoggedVerdict>,
    /// Ids of skipped checks, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, Vec<String>>,
    /// Values of the preferences that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferences: Option<BTreeMap<String, bool>>,
    /// Name of the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// Whether the rules are those of the organization, which are evaluated beside the pack of the project.
    #[serde(skip_serializing_if = "is_false")]
    pub organization: bool,
    /// Inputs of the decision about a stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// SHA-256 of the tool call, if guards blocked it or asked about it: over session, directory, tool, and input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_digest: Option<String>,
    /// Inputs of the guards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<LoggedEvent>,
    /// Why nothing was evaluated, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_opinion: Option<String>,
    /// Why nothing was evaluated. Entries of older versions have only the sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_opinion_kind: Option<NoOpinionKind>,
    /// Who turned policyd off or on: the user, and the program that started the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What happened, for an entry beside decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// Trace that the process belonged to, in the form of the variable `TRACEPARENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Time from the start of the process to this entry, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// How the state was saved.
    pub saved: String,
    /// Other messages to the user.
    pub problems: Vec<String>,
    /// Hash of the line before: the first 32 hexadecimal digits of its SHA-256. Empty in the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Whether another process held the lock of the log, so that two lines can follow the same line.
    #[serde(skip_serializing_if = "is_false")]
    pub unlocked: bool,
}

/// Why nothing was evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoOpinionKind {
    /// The user paused policyd.
    Paused,
    /// The user or the pack disabled policyd.
    Disabled,
}

impl NoOpinionKind {
    /// Returns the kind of a stored entry.
    #[must_use]
    pub fn of_entry(entry: &Json) -> Option<Self> {
        match entry.get("no_opinion_kind") {
            Some(kind) => Self::deserialize(kind).ok(),
            None => Self::of_sentence(entry.get("no_opinion")?.as_str()?),
        }
    }

    /// Returns the kind of an entry without one.
    fn of_sentence(sentence: &str) -> Option<Self> {
        // stored v1
        match sentence {
            paused if paused.starts_with("paused") => Some(Self::Paused),
            disabled if disabled.starts_with("disabled") => Some(Self::Disabled),
            _ => None,
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["id", "status", "consequence", "micros"]))]
pub struct LoggedVerdict {
    /// Id of the check.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Result: `satisfied`, `unsatisfied`, or `unknown`.
    #[schemars(length(min = 1))]
    pub status: String,
    /// Effect: `none`, `recorded`, `warns`, or `blocks`.
    #[schemars(length(min = 1))]
    pub consequence: String,
    /// Duration of the evaluation in microseconds.
    pub micros: u64,
    /// The problem in one sentence; absent if the check passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Evidence of the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<String>>,
    /// Error of a probe or another input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why a blocker only warned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softened: Option<String>,
    /// Whether the check was only logged, because policyd observed.
    #[serde(skip_serializing_if = "is_false")]
    pub observed: bool,
    /// Allowance of the user by which the check did not block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// Whether the check would have blocked the stop if it had been enforced.
    #[serde(skip_serializing_if = "is_false")]
    pub would_block: bool,
    /// Conditions with the values of their parts, if the check did not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LoggedCondition>,
}

/// A condition with the values of its parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["key", "place", "expression", "parts"]))]
pub struct LoggedCondition {
    /// Key of the condition in the pack.
    #[schemars(length(min = 1))]
    pub key: String,
    /// Location of the condition in the pack.
    #[schemars(length(min = 1))]
    pub place: String,
    /// The expression.
    #[schemars(length(min = 1))]
    pub expression: String,
    /// Parts, innermost first: start, end, and position of the operator in bytes, and the value. An object is an
    /// error, and null a part that was not evaluated.
    pub parts: Vec<(usize, usize, usize, Json)>,
}

impl LoggedCondition {
    /// What is logged of a condition: secrets masked, long texts cut.
    #[must_use]
    pub fn new(it: &ConditionExplanation) -> Self {
        let part = |it: &Part| (it.start, it.end, it.at, found_json(&it.found));
        Self {
            key: it.key.to_owned(),
            place: it.place.to_string(),
            expression: it.expression.clone(),
            parts: it.parts.iter().map(part).collect(),
        }
    }

    /// Its parts, to be drawn.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let part = |(start, end, at, value): &(usize, usize, usize, Json)| Part {
            start: *start,
            end: *end,
            at: *at,
            found: found(value),
        };
        self.parts.iter().map(part).collect()
    }
}

/// Parts with what may be shown of their values: secrets masked, long texts cut.
#[must_use]
pub fn masked_parts(parts: &[Part]) -> Vec<Part> {
    let masked = |it: &Part| Part { found: found(&found_json(&it.found)), ..it.clone() };
    parts.iter().map(masked).collect()
}

/// A text as it is shown or logged: secrets masked, the rest cut.
fn shown(text: &str) -> String {
    message::cut(&mask(text).0, limits::EVIDENCE_CHARS_MAX)
}

/// Returns the result of a part as JSON: a value, an object with an error, or null if it was not evaluated.
/// Secrets are masked, and long texts are cut.
#[must_use]
pub fn found_json(found: &Found) -> Json {
    match found {
        Found::Value(Value::Bool(value)) => (*value).into(),
        Found::Value(Value::Int(value)) => (*value).into(),
        Found::Value(Value::Text(text)) => shown(text).into(),
        Found::Value(Value::Texts(texts)) => {
            let more = texts.len().saturating_sub(limits::EVIDENCE_MAX);
            let cut = (more > 0).then(|| format!("… {more} more"));
            texts.iter().take(limits::EVIDENCE_MAX).map(|it| shown(it)).chain(cut).collect()
        }
        Found::Failed(error) => json!({"error": shown(&error.message)}),
        Found::NotReached => Json::Null,
    }
}

fn found(value: &Json) -> Found {
    match value {
        Json::Null => Found::NotReached,
        Json::Bool(value) => Found::Value(Value::Bool(*value)),
        Json::Number(value) => Found::Value(Value::Int(value.as_i64().unwrap_or_default())),
        Json::String(text) => Found::Value(Value::Text(text.clone())),
        Json::Array(items) => {
            let texts = items.iter().filter_map(Json::as_str).map(str::to_owned);
            Found::Value(Value::Texts(texts.collect()))
        }
        Json::Object(fields) => {
            let message = fields.get("error").and_then(Json::as_str).unwrap_or_default().to_owned();
            Found::Failed(FactError::from(message).into())
        }
    }
}

impl LoggedVerdict {
    /// What is logged of a verdict.
    #[must_use]
    pub fn new(it: &CheckVerdict) -> Self {
        let amiss = it.status != CheckStatus::Satisfied;
        let masked = |text: &str| mask(text).0.into_owned();
        Self {
            id: it.id.clone(),
            status: it.status.as_str().to_owned(),
            consequence: it.consequence.as_str().to_owned(),
            micros: it.micros,
            details: amiss.then(|| masked(&it.details)),
            evidence: amiss.then(|| it.evidence.iter().map(|it| masked(it)).collect()),
            error: it.error.as_deref().filter(|_| amiss).map(masked),
            softened: it.softened.map(str::to_owned),
            observed: it.observed,
            allowed: it.allowed.clone(),
            would_block: it.would_block(),
            conditions: it.explanation.iter().map(LoggedCondition::new).collect(),
        }
    }
}

/// What was decided.
#[derive(Clone, Copy)]
pub struct Decided<'a> {
    /// The outcome.
    pub outcome: &'a StopOutcome,
    /// What it rested on.
    pub inputs: &'a Inputs,
    /// Whether a block was said.
    pub blocked: bool,
}

/// The entry of a decision.
#[must_use]
pub fn entry(now: Timestamp, event: &Event, around: &ReportContext, decided: Decided<'_>) -> Json {
    let Decided { outcome, inputs, blocked } = decided;
    let mut verdicts = Vec::new();
    let mut skipped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for it in &outcome.verdicts {
        match &it.status {
            CheckStatus::Skipped(why) => {
                skipped.entry((*why).to_owned()).or_default().push(it.id.clone());
            }
            CheckStatus::Satisfied | CheckStatus::Unsatisfied | CheckStatus::Unknown(_) => {
                verdicts.push(LoggedVerdict::new(it));
            }
        }
    }
    let entry = Entry {
        decision: outcome.decision.as_str().to_owned(),
        spoken: blocked,
        release: Some(outcome.release.to_owned()),
        observed: outcome.verdicts.iter().any(|it| it.observed),
        session_type: Some(outcome.session_type.clone()),
        consecutive_blocks: Some(blocks(outcome, event.agent_id.as_deref())),
        verdicts,
        skipped,
        preferences: Some(around.preferences.clone()),
        pack: Some(around.pack.clone()),
        inputs: Some(inputs.clone()),
        ..begun(now, event, around)
    };
    entry.to_json()
}

/// The entry of what guards said.
#[must_use]
pub fn guard_entry(
    now: Timestamp,
    event: &Event,
    around: &ReportContext,
    guarded: &GuardsOutcome,
    call: LoggedEvent,
) -> Json {
    let guards: Vec<Json> = guarded
        .verdicts
        .iter()
        .map(|it| {
            let mut value = guard_json(it);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("id".to_owned(), it.id.clone().into());
            }
            value
        })
        .collect();
    let refused = matches!(guarded.decision, Decision::Block | Decision::Halt);
    let ids: Vec<&str> = guarded.verdicts.iter().map(|it| it.id.as_str()).collect();
    let begun = begun(now, event, around);
    let entry = Entry {
        id: entry_id(&[&begun.id, event.tool_name.as_deref().unwrap_or_default(), &ids.join(",")]),
        decision: guarded.decision.as_str().to_owned(),
        spoken: refused,
        observed: guarded.verdicts.iter().any(|it| it.observed),
        guards,
        tool: event.tool_name.clone(),
        call: Some(call),
        call_digest: guarded.digest.clone(),
        pack: Some(around.pack.clone()),
        ..begun
    };
    entry.to_json()
}

/// The entry where nothing could be judged.
#[must_use]
pub fn unjudged_entry(
    now: Timestamp,
    event: &Event,
    around: &ReportContext,
    blocked: bool,
) -> Json {
    let decision = if blocked { "block" } else { "none" }.to_owned();
    Entry { decision, spoken: blocked, ..begun(now, event, around) }.to_json()
}

/// Returns the id of an entry: its first digits are the same for the same parts.
pub(super) fn entry_id(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|it| it.as_bytes()).collect();
    hex(&checksum(&parts)).chars().take(8).collect()
}

/// What every entry says.
fn begun(now: Timestamp, event: &Event, around: &ReportContext) -> Entry {
    let mut problems = json!(around.problems);
    mask_json(&mut problems);
    let problems = problems.as_array().into_iter().flatten();
    let (timestamp, agent) = (now.to_string(), event.agent_id.as_deref().unwrap_or_default());
    let session = event.session_id.as_str();
    // The same event has two entries if the organization has rules for it.
    let layer = around.of_organization.then_some("organization");
    let parts: Vec<&str> = [timestamp.as_str(), session, agent].into_iter().chain(layer).collect();
    Entry {
        version: ENTRY_VERSION,
        id: entry_id(&parts),
        organization: around.of_organization,
        timestamp,
        event: event.kind.name().to_owned(),
        session_id: session.to_owned(),
        agent_id: event.agent_id.clone(),
        prompt_id: event.prompt_id.clone(),
        no_opinion: around.no_opinion.clone(),
        no_opinion_kind: around.no_opinion_kind,
        saved: around.saved.to_string(),
        problems: problems.filter_map(Json::as_str).map(str::to_owned).collect(),
        ..Entry::default()
    }
}

impl Entry {
    /// As it is logged. Nothing in it can refuse to be JSON.
    pub(super) fn to_json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads an entry of any version.
    #[must_use]
    pub fn read(value: &Json) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }

    /// Returns whether checks or guards were evaluated: not for a switch, a pause, a broken pack or a
    /// transcript that was not read.
    #[must_use]
    pub fn is_evaluated(&self) -> bool {
        self.session_type.is_some() || !self.guards.is_empty()
    }

    /// Gives rules that were renamed since the entry was logged their present ids.
    pub fn rename_rules(&mut self, present: impl Fn(&str) -> Option<String>) {
        let rename = |id: &mut String| {
            if let Some(now) = present(id) {
                *id = now;
            }
        };
        self.verdicts.iter_mut().for_each(|it| rename(&mut it.id));
        self.skipped.values_mut().flatten().for_each(rename);
        for guard in &mut self.guards {
            if let Some(Json::String(id)) = guard.get_mut("id") {
                rename(id);
            }
        }
    }

    /// Returns whether a rule was only logged, because policyd observed.
    #[must_use]
    pub fn observes(&self, rule: &str) -> bool {
        let has = |it: &Json, key: &str, value: &Json| it.get(key) == Some(value);
        self.verdicts.iter().any(|it| it.observed && it.id == rule)
            || self
                .guards
                .iter()
                .any(|it| has(it, "observed", &true.into()) && has(it, "id", &rule.into()))
    }

    /// Returns the rules that the user let pass, each with the text of the allowance.
    #[must_use]
    pub fn allowed(&self) -> BTreeMap<String, String> {
        let checks =
            self.verdicts.iter().filter_map(|it| Some((it.id.clone(), it.allowed.clone()?)));
        let guards = self.guards.iter().filter_map(|it| {
            let text = |key: &str| it.get(key).and_then(Json::as_str).map(str::to_owned);
            Some((text("id")?, text("allowed")?))
        });
        checks.chain(guards).collect()
    }

    /// Whose decision it was, and when; nothing where the entry does not say it.
    #[must_use]
    pub fn whose(&self) -> Option<DecisionSubject> {
        Some(DecisionSubject {
            kind: EventKind::find(&self.event)?,
            session: SessionId::parse(&self.session_id)?,
            agent: self.agent_id.clone(),
            prompt: self.prompt_id.clone(),
            at: Timestamp::parse(&self.timestamp)?,
        })
    }
}
