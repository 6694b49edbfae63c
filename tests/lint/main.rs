//! Lint from outside: its pages as tests, its forms, its fixes, and what it must never miss.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a broken expectation is a failure; how many mutants are tried is asked of the environment"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other binaries use the rest of it")]
mod support;

mod again;
mod built_in;
mod cases;
mod clients;
mod command;
mod deceptive;
mod facts;
mod forms;
mod guards;
mod ignores;
mod logic;
mod mends;
mod mutations;
mod newcomers;
mod options;
mod pages;
mod places;
mod read_otherwise;
mod slips;
mod soundness;
mod subjects;
mod supervision;
mod trees;
mod vocabulary;
