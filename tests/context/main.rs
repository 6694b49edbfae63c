//! How full a context is: meters, tiers, what is said, and what is carried over. On simulated machines.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed; the seed's cases are read from the real disk"
)]

mod hooks;
#[path = "../support/machine.rs"]
mod machine;
mod memory;
mod meters;
mod seed;
mod status;

mod steps;
mod summary;
#[path = "../support/mod.rs"]
mod support;
