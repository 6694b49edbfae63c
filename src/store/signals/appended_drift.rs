//! A drift that another program appended to a log of signals, as the ledger keeps it until its effect is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use policyd_state::stored::{count, or_default};
use policyd_yaml::time::Timestamp;

/// A drift that another program reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AppendedDrift {
    /// Name of the signal.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Fields of the line.
    #[serde(deserialize_with = "or_default")]
    pub fields: Map<String, Value>,
    /// Number of drifts of its task, itself included.
    #[serde(deserialize_with = "count")]
    pub in_task: u32,
    /// Number of drifts, itself included.
    #[serde(deserialize_with = "count")]
    pub total: u32,
    /// End of the lease of the process that does its effect. Absent: no process does.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
}

impl AppendedDrift {
    /// Whether both are the same drift, without the lease of its effect.
    pub(super) fn is(&self, other: &Self) -> bool {
        Self { until: None, ..self.clone() } == Self { until: None, ..other.clone() }
    }
}
