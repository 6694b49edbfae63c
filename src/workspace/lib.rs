//! The project, its checkout and its user: directories, switches, time, and whether a human is present.

pub mod amplihack;
pub mod attendance;
pub mod checkout;
pub mod enclosure;
pub mod error;
pub mod gate_status;
pub mod git;
pub mod human;
pub mod local_time;
pub mod project;
pub mod state_root;
