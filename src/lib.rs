#![doc = include_str!("ARCHITECTURE.md")]

mod app;
pub mod book;
pub mod cases;
pub mod cli;
mod cores;
pub mod editor;
pub mod evaluation;
pub mod fact_table;
pub mod facts;
pub mod git_index;
pub mod harness;
pub mod hook;
pub mod id;
pub mod limits;
pub mod lint;
pub mod policy;
pub mod probe;
pub mod replay;
pub mod report;
pub mod state;
pub mod store;
pub mod world;

pub use fact_table as expr; // The language of expressions over the table of facts.
pub use policyd_shell::path;
pub use policyd_yaml as source;
pub use policyd_yaml::{checksum, deferred, pairs, time};
