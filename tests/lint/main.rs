//! Lint from outside: its pages as tests, its forms, its fixes, and what it must never miss.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken expectation is a failure")]

mod pages;
mod subjects;
