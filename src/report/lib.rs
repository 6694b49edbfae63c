//! Reports: results as human-readable text and machine-readable data.
//!
//! Contains: views over decisions, packs, and stores, without a single effect.
//! Does not contain: what is measured for them (`policyd-app`), and the entries of the logs (`policyd-record`).
//!
//! ```
//! let schemas = policyd_report::schemas::all();
//! assert!(schemas.iter().any(|(name, _)| *name == "guards"));
//! ```

pub mod cases;
pub mod checked_call;
pub mod dead_letter;
pub mod diagnostics;
pub mod explanation;
pub mod fact_pages;
pub mod html;
pub mod junit;
pub mod lint;
pub mod log_summary;
pub mod metrics;
pub mod morning;
pub mod ocsf;
pub mod otlp;
pub mod overview;
pub mod plot;
pub mod replay;
pub mod replay_overview;
pub mod rule_patterns;
pub mod rules;
pub mod run;
pub mod sarif;
pub mod schemas;
pub mod standing;
pub mod text_changes;
pub mod top;
