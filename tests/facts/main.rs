//! Facts out of transcripts: what lines say, what commands run, how a growing file is read.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../bench/transcript.rs"]
mod bench_transcript;
mod clients;
mod fold;
mod lens;
mod opencode;
mod patterns;
mod samples;
mod session;
mod shell;
mod tools;
mod transcript;
