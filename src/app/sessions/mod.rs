//! Sessions of a project: their transcripts, their logged decisions, and their summaries.

pub mod explained;
pub mod location;
pub mod log_reader;
pub mod logged_entries;
pub mod named;
pub mod recorded;
pub mod recordings;

pub use policyd_gate::summaries;
