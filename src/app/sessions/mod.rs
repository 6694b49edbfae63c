//! Sessions of a project: their transcripts, their logged decisions, and their summaries.

pub(crate) mod explained;
pub(crate) mod location;
pub(crate) mod log_reader;
pub(crate) mod log_summary;
pub(crate) mod meter;
pub(crate) mod named;
pub(crate) mod recorded;
pub(crate) mod recordings;

pub(crate) use policyd_gate::summaries;
