//! The way from a hook's payload to its answer, on simulated machines: facts, expressions, guards,
//! the gate, the clients, and how full a context is.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; tables of agreement are printed; case files are real"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other binaries use the rest of it")]
mod support;

mod context;
mod facts;
mod gate;
mod guards;
mod harness;
mod script;
