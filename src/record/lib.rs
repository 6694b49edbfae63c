//! What is kept of an event: entries of the logs, outcomes as text and JSON, notices, and summaries.
//!
//! Contains: the forms of entries and their masking, without a single effect.
//! Does not contain: the files that keep them (`policyd-store`), and the views over them (`policyd-report`).
//!
//! ```
//! use policyd_record::mask::mask;
//!
//! let (text, count) = mask("PGPASSWORD=hunter2 psql");
//! assert_eq!((text.as_ref(), count), ("PGPASSWORD=«masked» psql", 1));
//! ```

pub mod activity;
pub mod alert;
pub mod breaker_view;
pub mod context;
pub mod decision_log;
pub mod drawing;
pub mod event_log;
pub mod exported;
pub mod indexed_decision;
pub mod inert;
pub mod logged_part;
pub mod mask;
pub mod notice;
pub mod outcome;
pub mod pack_layer;
pub mod paint;
pub mod rule_result;
pub mod summary;
pub mod table;
pub mod trace;
