//! The whole program on simulated machines: cases, decisions, effects, hostile input.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; tables of agreement are printed; case files are real"
)]

mod audit_log;
mod breakers;
mod cases;
mod copilot;
mod decisions;
mod explain;
mod forge;
mod init;
mod judge;
mod masking;
mod pause;
mod replay;
mod scene;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod trust;
#[path = "../support/trusting.rs"]
mod trusting;
mod try_out;
