//! Tasks that failed, as text and JSON: one line each, or all that is known of one.

use serde_json::{Value, json};

use policyd_base::text::counted;
use policyd_evaluation::dead_letter::cause;
use policyd_state::dead_letter::Task;
use policyd_yaml::time::{Timestamp, rough_text};

/// One line of a list.
#[must_use]
pub fn line(task: &Task, now: Timestamp) -> String {
    let title = if task.title.is_empty() { String::new() } else { format!("  {}", task.title) };
    let waits = match task.waits_for.as_str() {
        "" => String::new(),
        id => format!(", waits for a human ({id})"),
    };
    let reason = if task.reason.is_empty() { String::new() } else { format!(", {}", task.reason) };
    let strategy = match task.strategy.as_str() {
        "" | "permanent_abandon" => String::new(),
        strategy => format!(", {strategy}"),
    };
    let claim = match &task.claim {
        Some(it) if task.is_claimed(now) => {
            format!(", claimed by {} until {}", it.holder, it.until)
        }
        Some(_) | None => String::new(),
    };
    format!(
        "{}  {}: {}, the last {}{strategy}{reason}{waits}{claim}{title}\n",
        task.id,
        task.place.as_str(),
        counted(task.failed_attempts(), "failed attempt"),
        ago(task.last_failure, now),
    )
}

fn ago(at: Option<Timestamp>, now: Timestamp) -> String {
    match at.map(|at| now.since(at)) {
        None => "never".to_owned(),
        Some(age) if age.as_secs() == 0 => "just now".to_owned(),
        Some(age) => format!("{} ago", rough_text(age)),
    }
}

/// All that is known of a task.
#[must_use]
pub fn details(task: &Task, now: Timestamp) -> String {
    let mut text = line(task, now);
    let rows = [
        ("summary", task.summary.clone()),
        ("description", task.description.clone()),
        ("priority", task.priority.clone()),
        ("needs", task.dependencies.join(", ")),
        ("part of", task.parent.clone()),
        ("parts", task.children.join(", ")),
        ("new approach", task.hints.new_approach.clone()),
        ("simpler scope", task.hints.simpler_scope.clone()),
        ("fixed by", [&task.hints.fix_commit, &task.fix_commit].map(String::as_str).concat()),
        ("marks", task.hints.marks.iter().cloned().collect::<Vec<_>>().join(", ")),
        ("confidence", task.confidence.map(|it| it.to_string()).unwrap_or_default()),
        (
            "put back",
            if task.redrives == 0 { String::new() } else { counted(task.redrives, "time") },
        ),
        ("cause", cause(task).unwrap_or_default()),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("  {name:<14} {value}\n"));
    }
    for it in &task.attempts {
        let counts = if it.counts { "" } else { "  (does not count)" };
        let error = it.error.lines().next().unwrap_or_default();
        let what = [it.approach.as_str(), it.error_type.as_str(), error];
        let what: Vec<&str> = what.into_iter().filter(|it| !it.is_empty()).collect();
        text.push_str(&format!("  {:>3}. {}  {}{counts}\n", it.number, it.at, what.join(" · ")));
    }
    text
}

/// Returns all details as JSON.
#[must_use]
pub fn to_json(task: &Task) -> Value {
    json!({
        "task_id": task.id,
        "place": task.place.as_str(),
        "title": task.title,
        "failure_count": task.failures,
        "attempts": task.failed_attempts(),
        "recovery_strategy": task.strategy,
        "first_failure": task.first_failure.map(|it| it.to_string()),
        "last_failure": task.last_failure.map(|it| it.to_string()),
        "error_summary": task.summary,
        "cause": cause(task),
        "waits_for": task.waits_for,
        "claim": task.claim.as_ref().filter(|it| !it.holder.is_empty()),
        "redrives": task.redrives,
        "reason": task.reason,
    })
}
