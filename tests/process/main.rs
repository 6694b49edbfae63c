//! The real binary as real processes: concurrency, kill -9, hostile input, usage errors, recorded
//! clients, worktrees, the seed's layout and environment; supervised runs; commands for humans.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests of real processes on a real disk; what was skipped or measured is printed"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other binaries use the rest of it")]
mod support;

mod boundary;
mod check_command;
mod clients;
#[cfg(target_os = "linux")]
mod clocks;
mod crowd;
mod dashboard;
mod dashboard_answers;
mod doctor;
mod environment;
mod fail_closed;
#[cfg(target_os = "linux")]
mod fleet;
mod foreign;
mod hostile;
mod human_commands;
mod inbox;
mod install;
mod kill;
mod layers;
mod layouts;
mod learning;
mod lsp;
mod machine;
mod never_trapped;
mod opencode;
mod operator;
mod outside;
mod packs;
mod replay;
mod replies;
mod rule_command;
mod run;
mod samples;
mod session_project;
mod shared_answers;
mod shared_faults;
mod shared_outbox;
mod shared_roles;
mod shared_store;
mod trust_changes;
mod trying;
mod two_programs;
mod usage;
mod waits;
