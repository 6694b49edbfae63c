//! The JSON Schemas of what policyd stores.
//!
//! A stored format is described only by the structure that is saved. Unknown keys are valid, as in its reader.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::block_copies::BlockCopyFile;
use super::breakers::record::BreakerFile;
use super::configuration::ORGANIZATION;
use super::diagnostic::DiagnosticEntry;
use super::escalations::IndexFile;
use super::memory::PackMemoryFile;
use super::pack_lock::PackLock;
use super::queues::{AuditLine, QueueFile};
use super::session_file::SessionRecord;
use super::signals::found::SignalFile;
use super::signals::ledger::{Ledger, SignalEnd};
use super::summaries::SummaryFile;
use policyd_record::decision_log::Entry;
use policyd_record::event_log::EventLine;
use policyd_state::daily_costs::DailyCosts;
use policyd_state::run::Run;
use policyd_yaml::schema::json_schema;

/// Returns the schemas by the names that `policyd schema` takes.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("config", json_schema(&ORGANIZATION.map, "config")),
        derived::<SessionRecord<'_>>("state"),
        derived::<BlockCopyFile>("block-copy"),
        derived::<BreakerFile>("circuit-breakers"),
        derived::<SignalFile<'_>>("signal"),
        derived::<SignalEnd>("signal-history"),
        derived::<Ledger>("signal-ledger"),
        derived::<Entry>("decision-log"),
        derived::<DiagnosticEntry<'_>>("diagnostic-log"),
        derived::<QueueFile<'_>>("tasks"),
        derived::<IndexFile>("escalations"),
        derived::<AuditLine>("task-log"),
        derived::<SummaryFile>("context-summaries"),
        derived::<PackMemoryFile>("pack-memory"),
        derived::<DailyCosts>("daily-costs"),
        derived::<Run>("run-state"),
        derived::<EventLine>("event-log"),
        derived::<PackLock>("policies-lock"),
    ]
}

/// Returns the schema of a structure that is saved or printed.
pub fn derived<T: JsonSchema>(name: &'static str) -> (&'static str, Value) {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(finish));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), name.into());
    (name, schema.to_value())
}

/// Replaces formats that only Rust knows by limits, and drops default values: a reader needs neither.
fn finish(schema: &mut Schema) {
    schema.remove("default");
    let Some(format) = schema.get("format").and_then(Value::as_str) else { return };
    let (least, most) = match format {
        "uint8" => (0, u64::from(u8::MAX)),
        "uint32" => (0, u64::from(u32::MAX)),
        "uint" | "uint64" => (0, u64::MAX),
        "int32" => (i64::from(i32::MIN), i32::MAX.unsigned_abs().into()),
        "int64" => (i64::MIN, i64::MAX.unsigned_abs()),
        "double" => {
            schema.remove("format");
            return;
        }
        _ => return,
    };
    schema.remove("format");
    for (key, limit) in [("minimum", json!(least)), ("maximum", json!(most))] {
        if schema.get(key).is_none() {
            schema.insert(key.to_owned(), limit);
        }
    }
}
