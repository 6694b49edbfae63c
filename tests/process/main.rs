//! The real binary as real processes: concurrency, kill -9, hostile input, usage errors, recorded
//! clients, worktrees, the seed's layout and environment.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests of real processes on a real disk; what was skipped or measured is printed"
)]

mod boundary;
mod crowd;
mod doctor;
mod environment;
mod hostile;
#[path = "../support/human.rs"]
mod human;
mod install;
mod kill;
mod layouts;
mod machine;
mod opencode;
mod outside;
mod replay;
mod samples;
mod usage;
