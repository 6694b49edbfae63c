//! What every part of policyd shares: ids, limits, texts of numbers, names of programs, and the reader of git's index.
//!
//! Contains: values and pure functions without a subject of their own.
//! Does not contain: what a session, a rule, or a store is; files and clocks.
//!
//! ```
//! use policyd_base::id::SessionId;
//!
//! // An id is part of the names of files, so what could leave the directory is rejected.
//! assert_eq!(SessionId::parse("../other"), None);
//! ```

pub mod git_index;
pub mod id;
pub mod limits;
pub mod programs;
pub mod text;
