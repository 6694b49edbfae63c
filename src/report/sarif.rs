//! A review in SARIF 2.1.0 (OASIS), as code scanning reads it: rules, places, fixes, suppressions, and
//! fingerprints that stay when lines move.

use serde_json::{Value, json};

use super::diagnostics::{in_order, level_name};
use super::lint::LintReview;
use policyd_lint::baseline::fingerprints;
use policyd_lint::{self as lint, Rule};
use policyd_yaml::{Diagnostic, Span};

/// The official schema.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The log.
#[must_use]
pub fn sarif(review: &LintReview) -> Value {
    let mut results = results(&in_order(&review.findings), &|_| Vec::new());
    results.extend(results_of_ignored(review));
    results.extend(results_of_known(review));
    let invocation = json!({
        "executionSuccessful": review.unreadable.is_empty(),
        "toolExecutionNotifications": review.unreadable.iter().map(|it| json!({
            "level": "error", "message": { "text": it },
        })).collect::<Vec<Value>>(),
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "policyd",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": lint::rules().iter().map(descriptor).collect::<Vec<Value>>(),
            }},
            "invocations": [invocation],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": { "text": rule.summary },
        "help": { "text": rule.page, "markdown": rule.page },
        "defaultConfiguration": { "level": level_name(rule.level) },
    })
}

fn results_of_ignored(review: &LintReview) -> Vec<Value> {
    let findings: Vec<&Diagnostic> = review.ignored.iter().map(|it| &it.finding).collect();
    let reason = |at: usize| {
        let reason = review.ignored.get(at).map(|it| it.reason.as_str()).unwrap_or_default();
        vec![json!({ "kind": "inSource", "status": "accepted", "justification": reason })]
    };
    results(&findings, &reason)
}

fn results_of_known(review: &LintReview) -> Vec<Value> {
    let findings: Vec<&Diagnostic> = review.known.iter().collect();
    results(&findings, &|_| {
        vec![
            json!({ "kind": "external", "status": "accepted", "justification": "in the baseline" }),
        ]
    })
}

fn results(findings: &[&Diagnostic], suppressions: &dyn Fn(usize) -> Vec<Value>) -> Vec<Value> {
    let prints = fingerprints(findings);
    let both = findings.iter().zip(prints).enumerate();
    both.map(|(at, (finding, print))| result(finding, &print, suppressions(at))).collect()
}

fn result(finding: &Diagnostic, fingerprint: &str, suppressions: Vec<Value>) -> Value {
    let text: Vec<&str> = [Some(&finding.message), finding.note.as_ref(), finding.help.as_ref()]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let mut result = json!({
        "ruleId": lint::code_of(finding.code),
        "level": level_name(finding.level),
        "message": { "text": text.join("; ") },
        "locations": [{ "physicalLocation": location(&finding.span) }],
        "partialFingerprints": { "policyd/v1": fingerprint },
        "suppressions": suppressions,
    });
    if let Some(index) = lint::rules().iter().position(|it| it.name == finding.code) {
        set(&mut result, "ruleIndex", json!(index));
    }
    let related = finding.related.iter().enumerate().map(|(id, (span, role))| {
        let role = if role.is_empty() { "the rule" } else { role };
        json!({ "id": id, "physicalLocation": location(span), "message": { "text": role } })
    });
    let related: Vec<Value> = related.collect();
    if !related.is_empty() {
        set(&mut result, "relatedLocations", json!(related));
    }
    if let Some(fix) = &finding.fix {
        let changes = fix.edits.iter().map(|(span, text)| json!({
            "artifactLocation": artifact(span),
            "replacements": [{ "deletedRegion": region(span), "insertedContent": { "text": text } }],
        }));
        let help = finding.help.clone().unwrap_or_default();
        let changes: Vec<Value> = changes.collect();
        set(
            &mut result,
            "fixes",
            json!([{ "description": { "text": help }, "artifactChanges": changes }]),
        );
    }
    result
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}

fn location(span: &Span) -> Value {
    json!({ "artifactLocation": artifact(span), "region": region(span) })
}

/// A path as a relative URI; what a URI may not hold is encoded.
fn artifact(span: &Span) -> Value {
    let path = span.source.name.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(&path);
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    json!({ "uri": path.bytes().map(encode).collect::<String>() })
}

fn region(span: &Span) -> Value {
    let end = Span { start: span.end, ..span.clone() };
    let ((line, column), (end_line, end_column)) = (span.line_column(), end.line_column());
    json!({
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    })
}
