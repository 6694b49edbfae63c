//! Evaluates the rules of `signals.yaml`: due triggers, the response to a drift, and the text of a
//! signal.

use serde_json::{Map, Value};

use super::message;
use policyd_fact_table::record::{FactRecord, RecordValue, Shape};
use policyd_fact_table::types::Type;
use policyd_fact_table::watch::CoverageWatch;
use policyd_fact_table::{FactEvaluator, ScriptError, template};
use policyd_policy::Choice;
use policyd_policy::records;
use policyd_policy::records::signals::{DRIFT, RUN};
use policyd_policy::signals::{DriftRule, SignalKind, SignalTrigger, Signals, record_of};

/// A trigger that fires, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due<'p> {
    pub trigger: &'p SignalTrigger,
    /// Reason, one sentence.
    pub reason: String,
}

/// Response to a drift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftAnswer<'p> {
    /// Responses to any drift: the name of the action, and the text for the agent.
    pub always: Vec<(&'p str, String)>,
    /// The matching rule.
    pub rule: Option<&'p DriftRule>,
    /// Text for the agent.
    pub message: String,
}

/// Returns the record of a run without known values.
#[must_use]
pub fn run() -> FactRecord {
    FactRecord::new(records::shape(&RUN)).with("confidence", 1.0)
}

/// Returns the triggers that fire for a run, and those that could not be evaluated.
#[must_use]
pub fn due<'s>(
    signals: &'s Signals,
    run: FactRecord,
    watch: CoverageWatch<'_>,
) -> (Vec<Due<'s>>, Vec<(&'s SignalTrigger, ScriptError)>) {
    let mut evaluator = FactEvaluator::about(run).watched_by(watch);
    let (mut due, mut failed) = (Vec::new(), Vec::new());
    for trigger in &signals.triggers {
        match evaluator.eval_bool(&trigger.when) {
            Ok(true) => {
                let reason = template::render(&trigger.reason, &mut evaluator);
                due.push(Due { trigger, reason });
            }
            Ok(false) => {}
            Err(error) => failed.push((trigger, error)),
        }
    }
    (due, failed)
}

/// Returns the record of a drift: the fields of its signal, and the number of earlier drifts.
#[must_use]
pub fn drift(fields: &Map<String, Value>, in_task: usize, total: usize) -> FactRecord {
    let shape = records::shape(&DRIFT);
    let mut record = FactRecord::new(shape);
    fill(&mut record, shape, fields);
    let distance = fields.get("drift_distance").and_then(Value::as_f64).unwrap_or_default();
    let count = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
    record.with("distance", distance).with("in_task", count(in_task)).with("total", count(total))
}

/// Returns the response to a drift by the first matching rule. A rule that cannot be evaluated does
/// not match.
#[must_use]
pub fn answer<'s>(
    signals: &'s Signals,
    drift: FactRecord,
    watch: CoverageWatch<'_>,
) -> DriftAnswer<'s> {
    let mut evaluator = FactEvaluator::about(drift).watched_by(watch);
    let steps = signals.drift_always.iter();
    let always = steps.map(|it| (it.id.as_str(), chosen(&it.text, &mut evaluator))).collect();
    let holds = |it: &&DriftRule| evaluator.eval_bool(&it.when).unwrap_or(false);
    let rule = signals.drift.iter().find(holds);
    let message = rule.map(|it| template::render(&it.message, &mut evaluator));
    DriftAnswer { always, rule, message: message.unwrap_or_default() }
}

/// Properties that every signal has, for its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignalInfo<'s> {
    pub id: &'s str,
    pub name: &'s str,
    /// Sender of the signal.
    pub sender: &'s str,
    /// Id of the request that the signal answers.
    pub request: &'s str,
    /// Remark about an irregularity.
    pub note: &'s str,
    /// Age in hours.
    pub age_hours: i64,
}

/// Formats the text that the agent receives for a signal. Empty if the signal has none.
#[must_use]
pub fn format_signal(
    kind: &SignalKind,
    about: SignalInfo<'_>,
    fields: &Map<String, Value>,
) -> String {
    if !kind.shown {
        return String::new();
    }
    let shape = record_of(&kind.fields);
    let before = kind.id.split('*').next().unwrap_or_default();
    let part = kind.id.contains('*').then(|| about.name.strip_prefix(before)).flatten();
    let record = |fields: &Map<String, Value>, text: &dyn Fn(&str) -> String| {
        let mut record = FactRecord::new(&shape);
        fill(&mut record, &shape, fields);
        record
            .with("id", about.id)
            .with("name", about.name)
            .with("sender", text(about.sender).as_str())
            .with("request", text(about.request).as_str())
            .with("note", about.note)
            .with("part", part.unwrap_or_default())
            .with("age_hours", about.age_hours)
    };
    // Conditions read the raw fields. A text quotes them, because they come from another process.
    let plain = record(fields, &str::to_owned);
    let Some(choice) = first_choice(&kind.text, &mut FactEvaluator::about(plain)) else {
        return String::new();
    };
    let quoted = fields.iter().map(|(name, value)| (name.clone(), quoted(value))).collect();
    let mut evaluator = FactEvaluator::about(record(&quoted, &message::quote));
    template::render(&choice.text, &mut evaluator).trim().to_owned()
}

/// Returns a field value with its strings quoted.
fn quoted(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(message::quote(text)),
        Value::Array(items) => Value::Array(items.iter().map(quoted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.clone(),
    }
}

/// Returns the first text whose condition is true.
pub fn chosen(choices: &[Choice], evaluator: &mut FactEvaluator) -> String {
    let choice = first_choice(choices, evaluator);
    choice.map(|it| template::render(&it.text, evaluator)).unwrap_or_default().trim().to_owned()
}

fn first_choice<'c>(choices: &'c [Choice], evaluator: &mut FactEvaluator) -> Option<&'c Choice> {
    let holds = |it: &&Choice| {
        it.when.as_ref().is_none_or(|when| evaluator.eval_bool(when).unwrap_or(false))
    };
    choices.iter().find(holds)
}

/// Sets the fields of a record from JSON values of matching types.
fn fill(record: &mut FactRecord, shape: &Shape, values: &Map<String, Value>) {
    for field in &shape.fields {
        let Some(value) = values.get(&field.name) else { continue };
        let texts = |items: &Vec<Value>| {
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let forms = [
            (Type::Bool, value.as_bool().map(RecordValue::Bool)),
            (Type::Int, value.as_i64().map(RecordValue::Int)),
            (Type::Decimal, value.as_f64().map(RecordValue::Decimal)),
            (Type::Text, value.as_str().map(RecordValue::from)),
            (Type::Texts, value.as_array().map(texts).map(RecordValue::Texts)),
        ];
        let held = forms.into_iter().find(|(it, _)| *it == field.result).and_then(|it| it.1);
        if let Some(held) = held {
            record.set(&field.name, held);
        }
    }
}
