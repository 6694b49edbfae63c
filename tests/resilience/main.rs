//! Dead letters, escalations and what feeds them: steps, files, faults and the command line.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; agreement is printed; case files are real"
)]

mod cases;
mod commands;
mod dead_letter;
mod desk;
mod events;
mod humans;
#[path = "../support/machine.rs"]
mod machine;
mod queues;
#[path = "../support/mod.rs"]
mod support;
