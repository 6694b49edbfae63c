//! Output of `policyd signal`: human-readable lines, or one JSON object per line.

use serde_json::{Map, Value, json};

use crate::{Console, EXIT_OK, ListFormat};
use policyd_evaluation::message::in_one_line;
use policyd_evaluation::signals::{DriftAnswer, Due};
use policyd_policy::field_value::Word;
use policyd_policy::signals::Signals;
use policyd_record::mask::mask;
use policyd_state::signal::{End, SignalPhase};
use policyd_store::signals::{AppendedDrift, FollowUpResult, SignalFollowUp, StoredSignal};
use policyd_yaml::time::{Timestamp, duration_text, rough_text};

/// Characters that end a line, in a terminal or in a log of CI.
const LINE_ENDS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A row of a list: what an agent wrote breaks no line.
fn one_row(row: &str) -> String {
    row.split(LINE_ENDS).collect::<Vec<_>>().join(" ")
}

fn line(console: &mut Console<'_>, value: &Value) {
    console.print(&format!("{value}\n"));
}

/// What a signal says, a line for each field, secrets masked.
fn said(fields: &Map<String, Value>) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items =
                items.iter().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join("; ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    let lines = fields
        .iter()
        .map(|(name, value)| format!("    {}: {}\n", in_one_line(name), own_lines(&text(value))));
    lines.collect()
}

/// A text of an agent, masked. Further lines are indented, so that none looks like a row of the list.
fn own_lines(text: &str) -> String {
    let masked = mask(text).0;
    masked.split(LINE_ENDS).collect::<Vec<_>>().join("\n        | ")
}

/// Returns the state of a signal for the list.
pub(super) fn state(found: &StoredSignal, signals: &Signals, now: Timestamp) -> String {
    let human = signals.kind(&found.name).is_some_and(|it| it.awaits_human(signals));
    match &found.signal.phase {
        SignalPhase::Claimed { by, until } if *until > now => {
            format!("claimed by {by} for {}", rough_text(until.since(now)))
        }
        SignalPhase::Ended(end) => end.as_str().to_owned(),
        SignalPhase::Pending | SignalPhase::Claimed { .. } => match found.signal.answer_by {
            _ if found.signal.expires.is_some_and(|at| at <= now) => "expired".to_owned(),
            Some(by) if by <= now => "not answered in time".to_owned(),
            Some(by) if human => format!("waits for a human, {} left", rough_text(by.since(now))),
            Some(by) => format!("waits, {} left", rough_text(by.since(now))),
            None if human => "waits for a human".to_owned(),
            None => "waits".to_owned(),
        },
    }
}

/// One signal that is not over.
pub(super) fn signal(
    console: &mut Console<'_>,
    it: &StoredSignal,
    state: &str,
    format: ListFormat,
    now: Timestamp,
) {
    if format == ListFormat::Json {
        return line(console, &it.shown());
    }
    let age = rough_text(now.since(it.signal.created));
    let from = if it.sender.is_empty() { String::new() } else { format!(" from {}", it.sender) };
    let from = mask(&from).0.into_owned();
    let answers =
        if it.request.is_empty() { String::new() } else { format!(", answers {}", it.request) };
    let odd = if it.note.is_empty() { String::new() } else { format!(" ({})", it.note) };
    let row = format!("{}  {}{from}: {state}; {age} old{answers}{odd}", it.id, it.name);
    console.print(&format!("{}\n", one_row(&row)));
    if format == ListFormat::Text {
        console.print(&said(&it.fields));
    }
}

pub(super) fn emitted(console: &mut Console<'_>, it: &StoredSignal, format: ListFormat) {
    match format {
        ListFormat::Json => line(console, &it.shown()),
        ListFormat::Text | ListFormat::Compact => {
            console.print(&format!("{}  {}\n", it.id, it.name))
        }
    }
}

/// One that ended just now.
pub(super) fn ended(
    console: &mut Console<'_>,
    it: &StoredSignal,
    end: End,
    other: Option<&StoredSignal>,
    format: ListFormat,
) {
    if format == ListFormat::Json {
        let mut shown = it.shown();
        if let (Some(shown), Some(other)) = (shown.as_object_mut(), other) {
            let key = if end == End::Approved { "approval" } else { "approved" };
            shown.insert(key.to_owned(), other.shown());
        }
        return line(console, &shown);
    }
    console.print(&format!("{}  {} {}\n", it.id, it.name, end.as_str()));
    if end == End::Consumed {
        console.print(&said(&it.fields));
        if let Some(request) = other {
            console.print(&format!("    approves {} {}\n", request.name, request.id));
            console.print(&said(&request.fields));
        }
    }
}

/// An entry of the history, or a line of a log.
pub(super) fn over(console: &mut Console<'_>, entry: &Value, format: ListFormat) {
    if format == ListFormat::Json {
        return line(console, entry);
    }
    let text = |key: &str| {
        let text = entry.get(key).and_then(Value::as_str).unwrap_or_default();
        mask(text).0.into_owned()
    };
    let outcome = text("outcome").replace('_', " ");
    let by = if text("by").is_empty() { String::new() } else { format!(" by {}", text("by")) };
    let why =
        ["decision", "reason", "detected_drift"].map(text).into_iter().find(|it| !it.is_empty());
    let why = why.map(|it| format!(": {it}")).unwrap_or_default();
    let time = if text("time").is_empty() { text("timestamp") } else { text("time") };
    let name = if text("signal").is_empty() {
        format!("signals/{}", text("file"))
    } else {
        text("signal")
    };
    console.print(&format!("{time}  {}  {name} {outcome}{by}{why}\n", text("id")));
}

pub(super) fn kinds(console: &mut Console<'_>, signals: &Signals, format: ListFormat) -> u8 {
    for it in &signals.kinds {
        if format == ListFormat::Json {
            let fields: Vec<Value> = it
                .fields
                .iter()
                .map(|it| {
                    json!({"name": it.name, "type": it.kind.name(), "required": it.required,
                        "description": it.description})
                })
                .collect();
            let shown = json!({
                "signal": it.id, "form": it.form.name(), "purpose": it.purpose,
                "created_by": it.created_by, "consumed_by": it.consumed_by, "fields": fields,
                "answer_within": it.answer_within.map(duration_text),
                "on_timeout": it.on_timeout.iter().map(|it| it.name()).collect::<Vec<_>>(),
                "expires": it.expires.map(duration_text), "approves": it.approves,
                "interrupts": it.interrupts, "shown": it.shown,
            });
            line(console, &shown);
            continue;
        }
        let fields: Vec<String> = it
            .fields
            .iter()
            .map(|it| format!("{}{}", it.name, if it.required { "" } else { "?" }))
            .collect();
        let fields =
            if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
        console.print(&format!("{}{fields}: {}\n", it.id, it.purpose));
    }
    EXIT_OK
}

pub(super) fn drift(
    console: &mut Console<'_>,
    it: &DriftAnswer<'_>,
    emitted: &[StoredSignal],
    format: ListFormat,
) {
    if format == ListFormat::Json {
        let always: Vec<Value> =
            it.always.iter().map(|(id, text)| json!({"do": id, "text": text})).collect();
        let shown = json!({
            "immediate": always,
            "rule": it.rule.map(|it| &it.id), "action": it.rule.map(|it| &it.action),
            "message": it.message, "pause_task": it.rule.is_some_and(|it| it.pause_task),
            "escalate": it.rule.is_some_and(|it| it.escalate),
            "reviewer": it.rule.map(|it| it.reviewer.as_str()).filter(|it| !it.is_empty()),
            "emitted": emitted.iter().map(StoredSignal::shown).collect::<Vec<_>>(),
        });
        return line(console, &shown);
    }
    for (number, (_, text)) in it.always.iter().enumerate() {
        console.print(&format!("{}. {text}\n", number + 1));
    }
    if let Some(rule) = it.rule {
        console.print(&format!("{}: {}\n", rule.action, it.message));
    }
    emitted.iter().for_each(|it| console.print(&format!("created {} {}\n", it.name, it.id)));
}

pub(super) fn due(
    console: &mut Console<'_>,
    it: &Due<'_>,
    made: Option<&StoredSignal>,
    emit: bool,
    format: ListFormat,
) {
    if format == ListFormat::Json {
        let shown = json!({"signal": it.trigger.emit, "trigger": it.trigger.id,
            "severity": it.trigger.severity, "reason": it.reason,
            "emitted": made.map(StoredSignal::shown)});
        return line(console, &shown);
    }
    let made = match made {
        Some(made) => format!(" (created {})", made.id),
        None if emit => " (already pending)".to_owned(),
        None => String::new(),
    };
    let trigger = it.trigger;
    console.print(&format!(
        "{} {} ({}): {}{made}\n",
        trigger.emit, trigger.id, trigger.severity, it.reason
    ));
}

/// A drift that another program reported, as JSON and as a line of text.
fn shown_drift(kind: &str, drift: &AppendedDrift, why: &str) -> (Value, String) {
    let task = drift.fields.get("task_id").and_then(Value::as_str).unwrap_or_default();
    let shown = json!({"did": kind, "signal": {"signal": drift.name, "fields": drift.fields},
        "in_task": drift.in_task, "total": drift.total, "reason": why});
    let task = if task.is_empty() { String::new() } else { format!(" {task}") };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    (shown, format!("{}: {kind} {}{task}{why}\n", drift.name, drift.total))
}

pub(super) fn processed(
    console: &mut Console<'_>,
    deeds: &[SignalFollowUp],
    done: &FollowUpResult,
    format: ListFormat,
) {
    let shown = |kind: &str, it: &StoredSignal, why: &str| {
        let mut shown = json!({"did": kind, "signal": it.shown()});
        if let Some(shown) = shown.as_object_mut().filter(|_| !why.is_empty()) {
            shown.insert("reason".to_owned(), why.into());
        }
        let task = it.text("task_id");
        let task = if task.is_empty() { String::new() } else { format!(" {task}") };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        (shown, format!("{} {}: {}{task}{why}\n", it.name, it.id, kind.replace('_', " ")))
    };
    let mut all = Vec::new();
    for deed in deeds {
        all.push(match deed {
            SignalFollowUp::Unblock { request, approval } => {
                shown("unblock", request, approval.text("decision"))
            }
            SignalFollowUp::DeadLetter { request } => shown("dead_letter", request, ""),
            SignalFollowUp::Alert { request } => shown("alert", request, ""),
            SignalFollowUp::Drift { drift, message } => shown_drift("drift", drift, message),
        });
    }
    all.extend(done.ended.iter().map(|(it, end)| shown(end.as_str(), it, "")));
    all.extend(done.given_back.iter().map(|it| shown("given_back", it, "")));
    all.extend(done.stale.iter().map(|(it, why)| shown("approves_nothing", it, why)));
    all.extend(done.failed.iter().map(|(it, why)| shown("failed", it, why)));
    all.extend(done.failed_drifts.iter().map(|(it, why)| shown_drift("failed", it, why)));
    for (file, why) in &done.quarantined {
        let text = format!("signals/{file}: quarantined: {why}\n");
        all.push((json!({"did": "quarantined", "file": file, "reason": why}), text));
    }
    for (shown, text) in &all {
        match format {
            ListFormat::Json => line(console, shown),
            ListFormat::Text | ListFormat::Compact => console.print(text),
        }
    }
    if all.is_empty() && format == ListFormat::Text {
        console.print("nothing is due\n");
    }
}
