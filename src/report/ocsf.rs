//! Entries of decision logs as events of the Open Cybersecurity Schema Framework (OCSF 1.4), class Detection Finding.

use serde_json::{Value, json};

use policyd_base::limits::NOTICE_CHARS_MAX;
use policyd_evaluation::message::cut;
use policyd_record::exported::{ExportedContent, ExportedEntry, ExportedFinding};
use policyd_record::notice::NoticeSeverity;

/// Class Detection Finding, and its category.
const CLASS: u32 = 2004;
const CATEGORY: u32 = 2;
/// Activity: a finding is created.
const CREATE: u32 = 1;

/// Returns the event of an entry. `None` for a line that is not an entry.
#[must_use]
pub fn event(exported: ExportedEntry<'_>) -> Option<Value> {
    let ExportedContent { entry, at, kind, findings } = exported.read()?;
    let notice = entry.notice.clone().unwrap_or_default();
    let is_released = entry.release_reason().is_some();
    // Actions: 1 allowed, 2 denied, 3 observed. Dispositions: 1 allowed, 2 blocked, 17 logged.
    let (action, disposition) = match (kind, entry.decision.as_str()) {
        (Some(_), _) => (3, 17),
        (None, "block" | "halt") if entry.spoken => (2, 2),
        (None, "block" | "halt") => (3, 17),
        (None, "ask") => (3, 17),
        (None, _) => (1, 1),
    };
    let severity = match (kind, entry.decision.as_str()) {
        (Some(kind), _) => match kind.severity(&notice.outcome) {
            NoticeSeverity::Low => 1,
            NoticeSeverity::Medium => 3,
            NoticeSeverity::High => 4,
            NoticeSeverity::Critical => 5,
        },
        (None, "block" | "halt") => 3,
        (None, "ask") => 2,
        (None, _) if is_released => 2,
        (None, _) => 1,
    };
    let title = match kind {
        Some(kind) => format!("policyd {} {}", kind.name(), notice.outcome).trim().to_owned(),
        None if is_released => format!("policyd {} released", entry.event),
        None => format!("policyd {} {}", entry.event, entry.decision),
    };
    let said: Vec<String> = findings.iter().map(|it| format!("{}: {}", it.rule, it.text)).collect();
    let message = if notice.text.is_empty() { said.join("; ") } else { notice.text };
    let analytic = |it: &ExportedFinding| json!({"name": it.rule, "type_id": 1, "type": "Rule"});
    let analytics: Vec<Value> = findings.iter().map(analytic).collect();
    let rule = analytics.first().cloned();
    let mut event = json!({
        "class_uid": CLASS, "class_name": "Detection Finding",
        "category_uid": CATEGORY, "category_name": "Findings",
        "activity_id": CREATE, "activity_name": "Create",
        "type_uid": CLASS.saturating_mul(100).saturating_add(CREATE),
        "time": at.millis(),
        "severity_id": severity,
        "action_id": action, "disposition_id": disposition,
        "status_id": 1,
        "message": cut(&message, NOTICE_CHARS_MAX),
        "metadata": {
            "version": "1.4.0", "profiles": ["security_control"], "uid": exported.uid, "log_name": "decisions",
            "product": {"name": "policyd", "vendor_name": "policyd", "version": env!("CARGO_PKG_VERSION")},
        },
        "finding_info": {"uid": exported.uid, "title": title, "related_analytics": analytics},
        "resources": [{"type": "project", "name": exported.project, "uid": exported.project}],
        "unmapped": {"event": entry.event, "decision": entry.decision, "decision_id": entry.id,
            "release": entry.release, "session_id": entry.session_id, "tool": entry.tool, "subject": notice.subject},
    });
    if let (Some(rule), Some(info)) =
        (rule, event.get_mut("finding_info").and_then(Value::as_object_mut))
    {
        info.insert("analytic".to_owned(), rule);
    }
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_denied_and_a_run_that_needs_a_human_is_high() {
        let of = |entry: Value| {
            let line = entry.to_string();
            event(ExportedEntry { project: "/w/app", uid: "u1", line: line.as_bytes() }).unwrap()
        };
        let blocked = of(json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z",
            "event": "pre_tool_use", "decision": "block", "spoken": true,
            "guards": [{"id": "rm", "message": "No."}]}));
        assert_eq!((&blocked["action_id"], &blocked["disposition_id"]), (&json!(2), &json!(2)));
        assert_eq!(
            (&blocked["type_uid"], &blocked["time"]),
            (&json!(200_401), &json!(1_767_323_045_000_i64))
        );
        assert_eq!(blocked["finding_info"]["analytic"]["name"], "rm");
        let released = of(json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z", "event": "stop",
            "decision": "none", "release": "max_blocks"}));
        assert_eq!(released["finding_info"]["title"], "policyd stop released");
        assert_eq!(
            (&released["unmapped"]["release"], &released["severity_id"]),
            (&json!("max_blocks"), &json!(2))
        );
        let ended = of(json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z", "event": "run_end",
            "decision": "none", "notice": {"subject": "r", "outcome": "human_needed", "text": "why"}}));
        assert_eq!((&ended["severity_id"], &ended["message"]), (&json!(4), &json!("why")));
    }
}
