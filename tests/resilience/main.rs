//! What goes wrong, and what is kept: failures, breakers, dead letters, escalations and signals;
//! the store under faults, crowds and power losses.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; agreement is printed; case files are real"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other binaries use the rest of it")]
mod support;

mod breakers;
mod cases;
mod chance;
mod commands;
mod crash;
mod dead_letter;
mod desk;
mod events;
mod failures;
mod humans;
mod queues;
mod shared_faults;
mod shared_state_cases;
mod shared_store;
mod signal_command;
mod signals;
mod signals_simulation;
mod store_real;
mod unread;
