//! The clients: what each sends at each event, what is understood, and what it is answered.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod codex_schemas;
mod detection;
mod table;
