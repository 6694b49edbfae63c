#![doc = include_str!("ARCHITECTURE.md")]

pub mod facts;
pub mod id;
pub mod limits;
pub mod source;
pub mod state;
pub mod time;
pub mod world;
