//! The project, its checkout and its user: directories, switches, time, and whether a human is present.

pub(crate) mod amplihack;
pub(crate) mod attendance;
pub(crate) mod checkout;
pub(crate) mod enclosure;
pub(crate) mod folders;
pub(crate) mod gate_status;
pub(crate) mod git;
pub(crate) mod human;
pub(crate) mod local_time;
pub(crate) mod project;
pub(crate) mod state_root;
