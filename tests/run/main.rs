//! Supervised runs: the step, whole runs on a simulated machine with a virtual clock, and real ones.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; agreement is printed; real runs are real"
)]

mod cases;
mod clients;
mod display;
mod gate;
#[path = "../support/machine.rs"]
mod machine;
mod process;
mod seed;
mod stage;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod triggers;
mod whole;
