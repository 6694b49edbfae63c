//! Entries of the decision log, `logs/decisions.jsonl`: decisions, with the results of all rules and the inputs.
//! Contains: the stored form, both ways. Secrets are masked. Every reader of a log gets its entries from [`Entry::parse`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::logged_part::LoggedPart;
use super::mask::{mask, mask_json};
use super::notice::Notice;
use super::outcome::{ReportContext, blocks, mode};
use policyd_base::id::SessionId;
use policyd_base::limits;
use policyd_evaluation::called::LoggedEvent;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::inputs::{DecisionSubject, Inputs, TranscriptPosition};
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict, ConditionExplanation};
use policyd_evaluation::{StopOutcome, message};
use policyd_fact_table::parts::{Part, PartValue};
use policyd_fact_table::{FactError, Value};
use policyd_facts::event::{Event, EventKind};
use policyd_policy::guards::GuardAction;
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
    pub guards: Vec<LoggedGuard>,
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
    #[schemars(with = "Option<Inputs>")]
    pub inputs: Option<LoggedPart<Inputs>>,
    /// SHA-256 of the tool call, if guards blocked it or asked about it: over session, directory, tool, and input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_digest: Option<String>,
    /// Inputs of the guards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<LoggedEvent>")]
    pub call: Option<LoggedPart<LoggedEvent>>,
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

/// Result of one guard, as it is logged and reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = [
    "id", "set", "status", "decision", "mode", "message", "program", "place"
]))]
pub struct LoggedGuard {
    /// Set of the guard: its file without the extension.
    #[schemars(length(min = 1))]
    pub set: String,
    /// Result of the guard.
    #[schemars(extend("enum" = ["fired", "unknown"]))]
    pub status: String,
    /// Effect of the guard.
    #[schemars(extend(
        "enum" = ["allow", "defer", "ask", "block", "halt", "context", "warn"]
    ))]
    pub decision: String,
    /// Mode of the guard.
    #[schemars(extend("enum" = ["enforce", "warn", "shadow"]))]
    pub mode: String,
    /// Whether the guard was only logged, because policyd observed.
    #[serde(skip_serializing_if = "is_false")]
    pub observed: bool,
    /// What the guard would have done if it had been enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = ["ask", "block", "halt"]))]
    pub would: Option<String>,
    /// Allowance of the user by which the decision of the guard was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub allowed: Option<String>,
    /// Message of the guard, with masked secrets.
    #[schemars(length(min = 1))]
    pub message: String,
    /// Why the result is unknown.
    pub why: Option<String>,
    /// Program that the guard is about; may be empty.
    pub program: String,
    /// Location of the guard in the pack.
    #[schemars(length(min = 1))]
    pub place: String,
    /// Id of the guard; only in the decision log.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub id: String,
}

impl LoggedGuard {
    /// Returns the result of a guard, with masked secrets.
    #[must_use]
    pub fn new(it: &GuardVerdict) -> Self {
        Self {
            set: it.set.clone(),
            status: it.status().to_owned(),
            decision: it.verb.as_str().to_owned(),
            mode: mode(it.mode).to_owned(),
            observed: it.observed,
            would: it.would().map(|it| GuardAction::as_str(it).to_owned()),
            allowed: it.allowed.as_deref().map(masked),
            message: masked(&it.message),
            why: it.unknown.as_deref().map(masked),
            program: masked(&it.program),
            place: it.place.clone(),
            id: it.id.clone(),
        }
    }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(it: &bool) -> bool {
    !*it
}

fn masked(text: &str) -> String {
    mask(text).0.into_owned()
}

/// A text as it is shown or logged: secrets masked, the rest cut.
fn shown(text: &str) -> String {
    message::cut(&mask(text).0, limits::EVIDENCE_CHARS_MAX)
}

/// Returns the result of a part as JSON: a value, an object with an error, or null if it was not evaluated.
/// Secrets are masked, and long texts are cut.
#[must_use]
pub fn found_json(found: &PartValue) -> Json {
    match found {
        PartValue::Value(Value::Bool(value)) => (*value).into(),
        PartValue::Value(Value::Int(value)) => (*value).into(),
        PartValue::Value(Value::Text(text)) => shown(text).into(),
        PartValue::Value(Value::Texts(texts)) => {
            let more = texts.len().saturating_sub(limits::EVIDENCE_MAX);
            let cut = (more > 0).then(|| format!("… {more} more"));
            texts.iter().take(limits::EVIDENCE_MAX).map(|it| shown(it)).chain(cut).collect()
        }
        PartValue::Failed(error) => json!({"error": shown(&error.message)}),
        PartValue::NotReached => Json::Null,
    }
}

fn found(value: &Json) -> PartValue {
    match value {
        Json::Null => PartValue::NotReached,
        Json::Bool(value) => PartValue::Value(Value::Bool(*value)),
        Json::Number(value) => PartValue::Value(Value::Int(value.as_i64().unwrap_or_default())),
        Json::String(text) => PartValue::Value(Value::Text(text.clone())),
        Json::Array(items) => {
            let texts = items.iter().filter_map(Json::as_str).map(str::to_owned);
            PartValue::Value(Value::Texts(texts.collect()))
        }
        Json::Object(fields) => {
            let message = fields.get("error").and_then(Json::as_str).unwrap_or_default().to_owned();
            PartValue::Failed(FactError::from(message).into())
        }
    }
}

impl LoggedVerdict {
    /// What is logged of a verdict.
    #[must_use]
    pub fn new(it: &CheckVerdict) -> Self {
        let amiss = it.status != CheckStatus::Satisfied;
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

impl LoggedVerdict {
    /// Returns the id of the check and the problem.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{}: {}", self.id, self.details.as_deref().unwrap_or_default())
    }
}

/// What was decided.
#[derive(Clone, Copy)]
pub struct LoggedDecision<'a> {
    /// The outcome.
    pub outcome: &'a StopOutcome,
    /// What it rested on.
    pub inputs: &'a Inputs,
    /// Whether a block was said.
    pub blocked: bool,
}

/// The entry of a decision.
#[must_use]
pub fn entry(
    now: Timestamp,
    event: &Event,
    around: &ReportContext,
    decided: LoggedDecision<'_>,
) -> Json {
    let LoggedDecision { outcome, inputs, blocked } = decided;
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
        inputs: Some(LoggedPart::new(inputs.clone())),
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
    let refused = matches!(guarded.decision, Decision::Block | Decision::Halt);
    let ids: Vec<&str> = guarded.verdicts.iter().map(|it| it.id.as_str()).collect();
    let begun = begun(now, event, around);
    let entry = Entry {
        id: entry_id(&[&begun.id, event.tool_name.as_deref().unwrap_or_default(), &ids.join(",")]),
        decision: guarded.decision.as_str().to_owned(),
        spoken: refused,
        observed: guarded.verdicts.iter().any(|it| it.observed),
        guards: guarded.verdicts.iter().map(LoggedGuard::new).collect(),
        tool: event.tool_name.clone(),
        call: Some(LoggedPart::new(call)),
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

    /// Parses a line of the log. `None` for a line that is not an entry.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        // serde also takes the fields of a structure from a list.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let mut entry: Self = serde_json::from_slice(line).ok()?;
        entry.upgrade();
        Some(entry)
    }

    /// Fills what earlier versions logged otherwise.
    fn upgrade(&mut self) {
        if self.no_opinion_kind.is_none() {
            let sentence = self.no_opinion.as_deref();
            self.no_opinion_kind = sentence.and_then(NoOpinionKind::of_sentence);
        }
    }

    /// Decodes the inputs of the decision about a stop.
    #[must_use]
    pub fn read_inputs(&self) -> Option<Inputs> {
        self.inputs.as_ref()?.read()
    }

    /// Decodes the inputs of the guards.
    #[must_use]
    pub fn read_call(&self) -> Option<LoggedEvent> {
        self.call.as_ref()?.read()
    }

    /// Returns the transcript that the decision about a stop read.
    #[must_use]
    pub fn transcript(&self) -> Option<TranscriptPosition> {
        /// The inputs without the rest, which is larger.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct InputTranscript {
            transcript: TranscriptPosition,
        }
        match self.inputs.as_ref()? {
            LoggedPart::Value(inputs) => Some(inputs.transcript.clone()),
            LoggedPart::Text(text) => {
                Some(serde_json::from_str::<InputTranscript>(text.get()).ok()?.transcript)
            }
        }
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
        self.guards.iter_mut().for_each(|it| rename(&mut it.id));
    }

    /// Returns whether a rule was only logged, because policyd observed.
    #[must_use]
    pub fn observes(&self, rule: &str) -> bool {
        self.verdicts.iter().any(|it| it.observed && it.id == rule)
            || self.guards.iter().any(|it| it.observed && it.id == rule)
    }

    /// Returns the rules that the user let pass, each with the text of the allowance.
    #[must_use]
    pub fn allowed(&self) -> BTreeMap<String, String> {
        let checks =
            self.verdicts.iter().filter_map(|it| Some((it.id.clone(), it.allowed.clone()?)));
        let guards = self.guards.iter().filter_map(|it| Some((it.id.clone(), it.allowed.clone()?)));
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
