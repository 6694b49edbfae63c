//! Lint from outside: its pages as tests, its forms, its fixes, and what it must never miss.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken expectation is a failure")]

#[path = "../support/mod.rs"]
mod support;

mod forms;
mod ignores;
mod mends;
mod mutations;
mod pages;
mod places;
mod soundness;
mod subjects;
mod trees;
