//! The application below the command line: what the commands do, without reading arguments or printing.
//!
//! Contains: supervised runs, the dashboard, cases, replays, alerts, exports, installation, and packs
//! for their authors. Does not contain: the gate, which hooks and commands share (`policyd-gate`), and the language server
//! (`policyd-lsp`).
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_app::programs::is_tools;
//!
//! assert!(is_tools(Path::new("/usr/bin/policyd-tools")));
//! assert!(!is_tools(Path::new("/usr/bin/policyd")));
//! ```

mod abandoned_runs;
mod alert_groups;
pub mod alerts;
pub mod approvals;
mod blocked_calls;
pub mod call_check;
pub mod cases;
pub mod dashboard;
pub mod doctor;
pub mod export;
pub mod folders;
pub mod inbox;
pub mod install;
pub mod metrics;
pub mod morning;
pub mod overview;
pub mod packs;
pub mod programs;
pub mod replay;
pub mod run_answers;
pub mod sessions;
pub mod shared_items;
pub mod suggestions;
pub mod supervisor;
pub mod webhook;

pub use policyd_gate::crash;
pub use policyd_tasks::{channel_program, sharing};
pub use policyd_workspace::error;
pub use {policyd_gate as gate, policyd_tasks as tasks, policyd_workspace as workspace};
