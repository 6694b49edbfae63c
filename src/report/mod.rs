//! Reports: results as human-readable text and machine-readable data.

pub mod activity;
pub mod breakers;
pub mod cases;
pub mod context;
pub mod dead_letter;
pub mod decision_log;
pub mod diagnostics;
pub mod drawing;
pub mod event_log;
pub mod explanation;
pub mod fact_pages;
pub mod junit;
pub mod lint;
pub mod mask;
pub mod outcome;
pub mod overview;
pub mod paint;
pub mod replay;
pub mod replay_overview;
pub mod rules;
pub mod run;
pub mod sarif;
pub mod schemas;
pub mod standing;
pub mod summary;
pub mod table;
