//! A task of the lists as JSON: the keys of seed 003, and those of our own beside them.

use serde_json::{Map, Value, json};

use crate::limits::{TASK_ATTEMPTS_MAX, TASK_TEXT_CHARS_MAX};
use crate::state::dead_letter::{Attempt, Hints, MARKS, Place, Task};
use crate::time::Timestamp;

/// The id of an item of a list, where it is a task.
pub(super) fn id_of(item: &Value) -> Option<&str> {
    item.get("task_id").or_else(|| item.get("id"))?.as_str().filter(|it| !it.is_empty())
}

/// The task of an item of a list, where it is one: an object with an id.
pub(super) fn task_of(item: &Value, place: Place) -> Option<Task> {
    let id = id_of(item)?;
    let data = item.get("task_data");
    let said = |key: &str| text(data.and_then(|it| it.get(key)).or_else(|| item.get(key)));
    let hints = item.get("hints");
    let hint = |key: &str| text(hints.and_then(|it| it.get(key)));
    let attempts = item.get("attempts").and_then(Value::as_array).map(Vec::as_slice);
    let dependencies =
        data.and_then(|it| it.get("dependencies")).or_else(|| item.get("dependencies"));
    let failures = count(item.get("failure_count"));
    Some(Task {
        id: id.to_owned(),
        place,
        original_queue: Place::find(&text(item.get("original_queue"))).unwrap_or_default(),
        failures,
        first_failure: time(item.get("first_failure")),
        last_failure: time(item.get("last_failure")),
        summary: text(item.get("error_summary")),
        attempts: attempts.unwrap_or_default().iter().map(attempt_of).collect(),
        strategy: text(item.get("recovery_strategy")),
        title: said("title"),
        description: said("description"),
        dependencies: texts(dependencies),
        priority: said("priority"),
        hints: Hints {
            new_approach: hint("new_approach"),
            simpler_scope: hint("simpler_scope"),
            fix_commit: hint("fix_commit"),
            marks: texts(hints.and_then(|it| it.get("marks"))).into_iter().collect(),
        },
        confidence: item.get("confidence").and_then(Value::as_f64),
        redrives: count(item.get("redrives")),
        redriven: time(item.get("redriven_at")),
        waits_for: text(item.get("waits_for")),
        parent: text(item.get("parent")),
        children: texts(item.get("children")),
        scope: text(item.get("scope")),
        fix_commit: text(item.get("fix_commit")),
        reason: text(item.get("reason")),
        abandoned: time(item.get("abandoned_at")),
        revision: item.get("revision").and_then(Value::as_u64).unwrap_or(0),
    })
}

fn attempt_of(value: &Value) -> Attempt {
    Attempt {
        number: count(value.get("attempt_number")),
        at: time(value.get("timestamp")).unwrap_or_default(),
        approach: text(value.get("approach")),
        error_type: text(value.get("error_type")),
        error: text(value.get("error_message")),
        agent: text(value.get("agent_id")),
        counts: value.get("counts").and_then(Value::as_bool).unwrap_or(true),
        key: text(value.get("key")),
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn time(value: Option<&Value>) -> Option<Timestamp> {
    value.and_then(Value::as_str).and_then(Timestamp::parse)
}

fn count(value: Option<&Value>) -> u32 {
    value.and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok()).unwrap_or(0)
}

/// A text as it is stored: its end is cut where it is very long.
fn stored(text: &str) -> String {
    text.chars().take(TASK_TEXT_CHARS_MAX).collect()
}

/// The item of a task, over what the list knew of it.
pub(super) fn record_of(task: &Task, known: Option<&Value>) -> Value {
    let mut record = known.and_then(Value::as_object).cloned().unwrap_or_default();
    let stamp = |at: Option<Timestamp>| at.map_or(Value::Null, |it| it.to_string().into());
    let attempts: Vec<Value> = kept(&task.attempts).map(attempt_record).collect();
    let ours = json!({
        "task_id": task.id,
        "original_queue": task.original_queue.as_str(),
        "failure_count": task.failures,
        "first_failure": stamp(task.first_failure),
        "last_failure": stamp(task.last_failure),
        "error_summary": stored(&task.summary),
        "attempts": attempts,
        "recovery_strategy": task.strategy,
    });
    put_all(&mut record, ours);
    let mut data = record.get("task_data").and_then(Value::as_object).cloned().unwrap_or_default();
    let ours = json!({
        "title": task.title,
        "description": task.description,
        "dependencies": task.dependencies,
        "priority": task.priority,
    });
    put_all(&mut data, ours);
    record.insert("task_data".to_owned(), Value::Object(data));
    let own = json!({
        "status": if task.waits_for.is_empty() { "" } else { "blocked" },
        "waits_for": task.waits_for,
        "hints": hints_record(&task.hints),
        "confidence": task.confidence,
        "redrives": task.redrives,
        "redriven_at": stamp(task.redriven),
        "parent": task.parent,
        "children": task.children,
        "scope": task.scope,
        "fix_commit": task.fix_commit,
        "reason": task.reason,
        "abandoned_at": stamp(task.abandoned),
        "revision": task.revision,
    });
    for (key, value) in own.as_object().into_iter().flatten() {
        let foreign = key == "status" && record.get(key).is_some_and(|it| it != "blocked");
        if is_empty(value) && !foreign {
            record.remove(key);
        } else if !is_empty(value) {
            record.insert(key.clone(), value.clone());
        }
    }
    Value::Object(record)
}

/// The attempts that are kept: the first ones tell how it began, the last ones how it goes on.
fn kept(attempts: &[Attempt]) -> impl Iterator<Item = &Attempt> {
    let over = attempts.len().saturating_sub(TASK_ATTEMPTS_MAX);
    let first = TASK_ATTEMPTS_MAX / 4;
    let middle = first..first.saturating_add(over);
    attempts.iter().enumerate().filter(move |(at, _)| !middle.contains(at)).map(|(_, it)| it)
}

fn attempt_record(attempt: &Attempt) -> Value {
    let mut record = Map::new();
    put_all(
        &mut record,
        json!({
            "attempt_number": attempt.number,
            "timestamp": attempt.at.to_string(),
            "approach": stored(&attempt.approach),
            "error_type": attempt.error_type,
            "error_message": stored(&attempt.error),
            "agent_id": attempt.agent,
        }),
    );
    if !attempt.counts {
        record.insert("counts".to_owned(), false.into());
    }
    if !attempt.key.is_empty() {
        record.insert("key".to_owned(), attempt.key.clone().into());
    }
    Value::Object(record)
}

fn hints_record(hints: &Hints) -> Value {
    let marks: Vec<&String> =
        hints.marks.iter().filter(|it| MARKS.contains(&it.as_str())).collect();
    let all = json!({
        "new_approach": hints.new_approach,
        "simpler_scope": hints.simpler_scope,
        "fix_commit": hints.fix_commit,
        "marks": marks,
    });
    let filled = all.as_object().into_iter().flatten().filter(|(_, it)| !is_empty(it));
    Value::Object(filled.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn put_all(into: &mut Map<String, Value>, values: Value) {
    if let Value::Object(values) = values {
        into.extend(values);
    }
}
