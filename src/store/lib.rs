//! Durable memory: one value in one file, session state under a lock, logs, the transcript's tail.
//!
//! Contains: the order of effects that makes saving safe.
//! Does not contain: what a value means (`policyd-state`), and what an entry of a log says (`policyd-record`).
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_store::file::{Durability, save};
//! use policyd_world::World;
//! use policyd_world::fake::FakeWorld;
//!
//! let world = FakeWorld::new();
//! let path = Path::new("/work/value.json");
//! save(&world, path, b"{}\n", &Durability::default());
//! assert_eq!(world.read(path, 100).unwrap(), b"{}\n");
//! ```

pub mod administrator;
pub mod alert_settings;
pub mod allowance;
pub mod block_copies;
pub mod breakers;
pub mod choice_files;
pub mod choice_record;
pub mod configuration;
pub mod crash_record;
pub mod daily_costs;
pub mod decision_log;
pub mod diagnostic;
pub mod document;
pub mod edit_log;
pub mod enforcement;
mod escalation_record;
pub mod escalations;
pub mod file;
pub mod foreign_choices;
pub mod health;
pub mod hook_calls;
pub mod layout;
pub mod log;
pub mod log_chain;
pub mod log_files;
pub mod log_position;
pub mod log_tail;
mod log_witness;
pub mod memory;
pub mod pack_cache;
pub mod pack_history;
pub mod pack_lock;
pub mod pack_rules;
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
pub mod session_projects;
pub mod shared;
pub mod signals;
pub mod subagents;
pub mod summaries;
mod task_record;
pub mod transcript;
pub mod trust;
pub mod trusted_texts;
pub mod user;
pub mod user_choices;
pub mod user_file;
pub mod user_state;
pub mod validate;
