//! Packs: how they are read, what people are told about a faulty one, their cases, schemas and tables.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; cases are tables, and printed; case files are real"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other binaries use the rest of it")]
mod support;

mod advice;
mod builtin_pack;
mod case_drafts;
mod pack_cases;
mod policy_cases;
mod policy_load;
mod rationalizations;
mod schemas;
mod stops;
mod tables;
mod yaml_limits;
mod yaml_reports;
