//! The repository itself: its source text, its documents, and the examples of the README.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "the real source tree and the real binary are read and run; a failure fails the test"
)]

mod benches;
mod case_keys;
mod circles;
mod comparison;
mod crates;
mod language;
mod limits;
mod names;
mod packages;
mod readme;
mod reference;
mod secret_formats;
mod statements;
mod texts;
mod tidy;
