#![doc = include_str!("ARCHITECTURE.md")]

pub mod checksum;
pub mod cli;
pub mod facts;
pub mod hook;
pub mod id;
pub mod judge;
pub mod limits;
pub mod policy;
pub mod probe;
pub mod report;
pub mod script;
pub mod source;
pub mod state;
pub mod store;
pub mod time;
pub mod world;
