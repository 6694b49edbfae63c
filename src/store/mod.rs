//! Durable memory: one value in one file, session state under a lock, logs, the transcript's tail.
//! Lives here: the order of effects that makes them safe. May not live here: what a value means.

pub mod administrator;
pub mod allowance;
pub mod breakers;
pub mod configuration;
pub mod diagnostic;
pub mod document;
pub mod enforcement;
pub mod escalations;
pub mod file;
pub mod health;
pub mod hook_calls;
pub mod layout;
pub mod log;
pub mod log_cursor;
pub mod pause;
pub mod probe_cache;
pub mod projects;
pub mod prune;
pub mod queues;
pub mod recovery;
pub mod root;
pub mod runs;
pub mod schemas;
pub mod session;
mod session_file;
pub mod shared;
pub mod signals;
pub mod subagents;
pub mod summaries;
mod task_record;
pub mod transcript;
pub mod trust;
pub mod user;
pub mod user_choices;
pub mod user_file;
pub mod validate;
