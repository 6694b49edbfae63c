//! Entries of decision logs as OTLP: log records, and spans of supervised runs, in the JSON mapping. Attributes follow the
//! semantic conventions for generative AI where these have a name.

use serde_json::{Map, Value, json};

use policyd_base::limits::NOTICE_CHARS_MAX;
use policyd_evaluation::message::cut;
use policyd_record::decision_log::Entry;
use policyd_record::exported::{ExportedContent, ExportedEntry, ExportedFinding};
use policyd_record::notice::{Notice, NoticeKind, NoticeSeverity};
use policyd_record::trace::TraceContext;
use policyd_state::run::RunStatus;
use policyd_yaml::time::Timestamp;

/// Name of the instrumentation scope.
const SCOPE: &str = "policyd";

/// An entry in the form of OTLP: a log record, and the span of a run that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpRecord {
    pub log: Value,
    pub span: Option<Value>,
}

/// A list of attributes.
#[derive(Default)]
struct Attributes(Vec<Value>);

impl Attributes {
    fn text(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.0.push(json!({"key": key, "value": {"stringValue": value}}));
        }
    }

    fn number(&mut self, key: &str, value: u64) {
        // The JSON mapping writes 64-bit integers as strings.
        self.0.push(json!({"key": key, "value": {"intValue": value.to_string()}}));
    }

    fn double(&mut self, key: &str, value: f64) {
        self.0.push(json!({"key": key, "value": {"doubleValue": value}}));
    }

    fn truth(&mut self, key: &str, value: bool) {
        self.0.push(json!({"key": key, "value": {"boolValue": value}}));
    }

    fn texts(&mut self, key: &str, values: Vec<String>) {
        if !values.is_empty() {
            let values: Vec<Value> =
                values.into_iter().map(|it| json!({"stringValue": it})).collect();
            self.0.push(json!({"key": key, "value": {"arrayValue": {"values": values}}}));
        }
    }
}

/// Returns a time in nanoseconds since 1970, as the JSON mapping writes it.
fn nanos(at: Timestamp) -> String {
    (i128::from(at.millis()).max(0).saturating_mul(1_000_000)).to_string()
}

/// Returns the records of an entry. `None` for a line that is not an entry.
#[must_use]
pub fn record(exported: ExportedEntry<'_>, now: Timestamp) -> Option<OtlpRecord> {
    let ExportedContent { entry, at, kind, findings } = exported.read()?;
    let trace = entry.trace.as_deref().and_then(TraceContext::parse);
    let mut attributes = Attributes::default();
    attributes.text("log.record.uid", exported.uid);
    attributes.text("policyd.decision.id", &entry.id);
    attributes.text("policyd.project", exported.project);
    attributes.text("policyd.event", &entry.event);
    attributes.text("session.id", &entry.session_id);
    attributes.text("gen_ai.conversation.id", &entry.session_id);
    attributes.text("gen_ai.agent.id", entry.agent_id.as_deref().unwrap_or_default());
    let (name, severity, body) = match (kind, &entry.notice) {
        (Some(kind), notice) => {
            let notice = notice.clone().unwrap_or_default();
            attributes.text("policyd.subject", &notice.subject);
            attributes.text("policyd.outcome", &notice.outcome);
            attributes.text("enduser.id", entry.by.as_deref().unwrap_or_default());
            let text = entry.no_opinion.clone().unwrap_or(notice.text);
            (format!("policyd.{}", kind.name()), severity_of(kind, &notice.outcome), text)
        }
        (None, _) => {
            let findings = add_decision(&mut attributes, &entry, &findings);
            let severity = match entry.decision.as_str() {
                "block" | "halt" | "ask" => WARN,
                _ if entry.release_reason().is_some() => WARN,
                _ => INFO,
            };
            let findings = cut(&findings.join("; "), NOTICE_CHARS_MAX);
            let text = format!("{} {}: {findings}", entry.event, entry.decision);
            ("policyd.decision".to_owned(), severity, text)
        }
    };
    let mut log = json!({
        "timeUnixNano": nanos(at),
        "observedTimeUnixNano": nanos(now),
        "severityNumber": severity.0,
        "severityText": severity.1,
        "eventName": name,
        "body": {"stringValue": body},
        "attributes": attributes.0,
    });
    let span = run_span(exported, &entry, at, trace.as_ref());
    let joined = match &span {
        // The end of a run belongs to its own span.
        Some((context, _)) => Some(context.clone()),
        None => trace,
    };
    if let (Some(context), Some(fields)) = (joined, log.as_object_mut()) {
        fields.insert("traceId".to_owned(), context.trace_id.into());
        fields.insert("spanId".to_owned(), context.span_id.into());
        fields.insert("flags".to_owned(), u32::from(context.sampled).into());
    }
    Some(OtlpRecord { log, span: span.map(|it| it.1) })
}

/// Numbers and names of severities of OTLP.
const INFO: (u32, &str) = (9, "INFO");
const WARN: (u32, &str) = (13, "WARN");
const ERROR: (u32, &str) = (17, "ERROR");
const FATAL: (u32, &str) = (21, "FATAL");

fn severity_of(kind: NoticeKind, outcome: &str) -> (u32, &'static str) {
    match kind.severity(outcome) {
        NoticeSeverity::Low => INFO,
        NoticeSeverity::Medium => WARN,
        NoticeSeverity::High => ERROR,
        NoticeSeverity::Critical => FATAL,
    }
}

/// Adds what was decided. Returns what was found, a text for each rule.
fn add_decision(
    attributes: &mut Attributes,
    entry: &Entry,
    findings: &[ExportedFinding],
) -> Vec<String> {
    attributes.text("policyd.decision", &entry.decision);
    attributes.truth("policyd.decision.sent", entry.spoken);
    attributes.text("policyd.release", entry.release_reason().unwrap_or_default());
    attributes.text("policyd.pack", entry.pack.as_deref().unwrap_or_default());
    attributes.text("policyd.session_type", entry.session_type.as_deref().unwrap_or_default());
    attributes.text("policyd.saved", &entry.saved);
    if let Some(micros) = entry.micros {
        attributes.number("policyd.duration_us", micros);
    }
    if let Some(tool) = &entry.tool {
        attributes.text("gen_ai.operation.name", "execute_tool");
        attributes.text("gen_ai.tool.name", tool);
    }
    attributes.texts("policyd.rules", findings.iter().map(|it| it.rule.clone()).collect());
    let line = |it: &ExportedFinding| {
        cut(&format!("{} ({}): {}", it.rule, it.effect, it.text), NOTICE_CHARS_MAX)
    };
    let findings: Vec<String> = findings.iter().map(line).collect();
    attributes.texts("policyd.findings", findings.clone());
    findings
}

/// Returns the span of a run that ended. Its id is that which the run gave to its agent. A resumed run is another span in
/// the same trace, with the usage since then.
fn run_span(
    exported: ExportedEntry<'_>,
    entry: &Entry,
    at: Timestamp,
    caller: Option<&TraceContext>,
) -> Option<(TraceContext, Value)> {
    let Notice { subject, outcome, text, run } = entry.notice.as_ref()?;
    let run = run.as_ref()?;
    let context = TraceContext::of_run(caller, exported.project, subject, run.resumes);
    let usage = run.unreported();
    let mut attributes = Attributes::default();
    attributes.text("gen_ai.operation.name", "invoke_agent");
    attributes.text("gen_ai.agent.name", &run.program);
    attributes.number("gen_ai.usage.input_tokens", usage.input_tokens);
    attributes.number("gen_ai.usage.output_tokens", usage.output_tokens);
    attributes.number("policyd.run.cached_tokens", usage.cached_tokens);
    if let Some(usd) = usage.cost().usd() {
        attributes.double("policyd.run.cost_usd", usd);
    }
    attributes.number("policyd.run.resumes", run.resumes.into());
    attributes.number("policyd.run.turns", run.turns.into());
    attributes.number("policyd.run.restarts", run.restarts.into());
    attributes.number("policyd.run.worked_ms", usage.worked_ms);
    attributes.text("policyd.run.id", subject);
    attributes.text("policyd.run.goal", &run.goal);
    attributes.text("policyd.run.ending", outcome);
    attributes.text("policyd.project", exported.project);
    let is_complete = RunStatus::find(outcome) == Some(RunStatus::Complete);
    if !is_complete {
        attributes.text("error.type", outcome);
    }
    let status = match is_complete {
        true => json!({"code": 1}),
        false => json!({"code": 2, "message": text}),
    };
    let mut span = json!({
        "traceId": context.trace_id,
        "spanId": context.span_id,
        "flags": u32::from(context.sampled),
        "name": format!("invoke_agent {}", run.program),
        "kind": 1,
        "startTimeUnixNano": nanos(run.resumed.unwrap_or(run.started).min(at)),
        "endTimeUnixNano": nanos(at),
        "attributes": attributes.0,
        "status": status,
    });
    if let (Some(caller), Some(fields)) = (caller, span.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), caller.span_id.clone().into());
    }
    Some((context, span))
}

/// The resource that all records come from.
fn resource(host: &str) -> Value {
    let mut attributes = Attributes::default();
    attributes.text("service.name", "policyd");
    attributes.text("service.version", env!("CARGO_PKG_VERSION"));
    attributes.text("host.name", host);
    json!({"attributes": attributes.0})
}

/// Returns the body of a request to `/v1/logs`.
#[must_use]
pub fn logs_request(records: &[OtlpRecord], host: &str) -> Value {
    let logs: Vec<&Value> = records.iter().map(|it| &it.log).collect();
    let scope = scope();
    json!({"resourceLogs": [{"resource": resource(host), "scopeLogs": [
        {"scope": scope, "logRecords": logs}]}]})
}

/// Returns the body of a request to `/v1/traces`. `None` without a span.
#[must_use]
pub fn traces_request(records: &[OtlpRecord], host: &str) -> Option<Value> {
    let spans: Vec<&Value> = records.iter().filter_map(|it| it.span.as_ref()).collect();
    let scope = scope();
    let request = json!({"resourceSpans": [{"resource": resource(host), "scopeSpans": [
        {"scope": scope, "spans": spans}]}]});
    (!spans.is_empty()).then_some(request)
}

fn scope() -> Value {
    let fields = [("name", SCOPE), ("version", env!("CARGO_PKG_VERSION"))];
    let fields = fields.map(|(key, value)| (key.to_owned(), Value::from(value)));
    Value::Object(Map::from_iter(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported(entry: &Value) -> OtlpRecord {
        let line = entry.to_string();
        let exported = ExportedEntry { project: "/w/app", uid: "u1", line: line.as_bytes() };
        record(exported, Timestamp::from_millis(5)).unwrap()
    }

    fn attribute<'a>(record: &'a Value, key: &str) -> &'a Value {
        let attributes = record["attributes"].as_array().unwrap();
        &attributes.iter().find(|it| it["key"] == key).unwrap()["value"]
    }

    #[test]
    fn a_blocked_call_joins_the_trace_of_its_process() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let entry = json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z", "event": "pre_tool_use",
            "session_id": "s", "decision": "block", "spoken": true, "tool": "Bash", "trace": trace,
            "guards": [{"id": "rm", "decision": "block", "message": "PGPASSWORD=hunter2 is there"}]});
        let OtlpRecord { log, span } = exported(&entry);
        assert_eq!(log["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((&log["spanId"], &log["flags"]), (&json!("00f067aa0ba902b7"), &json!(1)));
        assert_eq!(log["timeUnixNano"], "1767323045000000000");
        assert_eq!(
            (&log["severityNumber"], &log["eventName"]),
            (&json!(13), &json!("policyd.decision"))
        );
        assert_eq!(attribute(&log, "log.record.uid")["stringValue"], "u1");
        assert_eq!(attribute(&log, "gen_ai.tool.name")["stringValue"], "Bash");
        assert!(!log.to_string().contains("hunter2"), "{log}");
        assert_eq!(span, None);
    }

    #[test]
    fn a_run_is_a_span_whose_id_its_agent_had() {
        let entry = json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z", "event": "run_end",
            "decision": "none", "notice": {"subject": "r1", "outcome": "stuck", "text": "why",
            "run": {"program": "claude", "started": "2026-01-02T02:04:05Z", "input_tokens": 7}}});
        let OtlpRecord { log, span } = exported(&entry);
        let span = span.unwrap();
        let context = TraceContext::of_run(None, "/w/app", "r1", 0);
        assert_eq!(
            (&span["traceId"], &span["spanId"]),
            (&json!(context.trace_id), &json!(context.span_id))
        );
        assert_eq!(log["spanId"], span["spanId"]);
        assert_eq!(
            (&span["name"], &span["status"]["code"]),
            (&json!("invoke_agent claude"), &json!(2))
        );
        assert_eq!(attribute(&span, "gen_ai.usage.input_tokens")["intValue"], "7");
        assert_eq!(span["startTimeUnixNano"], "1767319445000000000");
        assert!(span.get("parentSpanId").is_none());
        let records = [OtlpRecord { log, span: Some(span) }];
        assert!(traces_request(&records, "host").is_some());
        assert_eq!(traces_request(&[], "host"), None);
    }

    #[test]
    fn a_resumed_run_is_another_span_of_its_trace_with_its_own_usage() {
        let entry = |run: Value| {
            json!({"id": "a1", "timestamp": "2026-01-02T03:04:05Z", "event": "run_end",
                "decision": "none", "notice": {"subject": "r1", "outcome": "stuck", "run": run}})
        };
        let first = entry(json!({"started": "2026-01-02T02:04:05Z", "input_tokens": 7}));
        let second =
            entry(json!({"started": "2026-01-02T02:04:05Z", "resumes": 1, "input_tokens": 10,
            "resumed": "2026-01-02T03:04:00Z", "reported": {"input_tokens": 7}}));
        let [first, second] = [first, second].map(|it| exported(&it).span.unwrap());
        assert_eq!(first["traceId"], second["traceId"]);
        assert_ne!(first["spanId"], second["spanId"]);
        assert_eq!(attribute(&second, "gen_ai.usage.input_tokens")["intValue"], "3");
        assert_eq!(second["startTimeUnixNano"], "1767323040000000000");
    }
}
