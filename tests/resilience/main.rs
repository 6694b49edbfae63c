//! Dead letters, escalations and what feeds them: steps, files, faults and the command line.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing case is a failing test"
)]

mod dead_letter;
#[path = "../support/mod.rs"]
mod support;
