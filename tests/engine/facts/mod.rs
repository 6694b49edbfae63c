//! Facts out of transcripts: what lines say, what commands run, how a growing file is read.

#[path = "../../bench/transcript.rs"]
mod bench_transcript;
mod clients;
mod fold;
mod lens;
mod opencode;
mod patterns;
mod recorded;
mod samples;
mod session;
mod shell;
mod tools;
mod transcript;
