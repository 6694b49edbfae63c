//! The project, its checkout and its user: directories, switches, time, and whether a human is present.
//!
//! Contains: what an event is about, before a pack is loaded. Does not contain: rules.
//!
//! ```
//! use policyd_workspace::project;
//! use policyd_world::fake::FakeWorld;
//!
//! let world = FakeWorld::new();
//! assert!(project::find(&world, None).root.is_absolute());
//! ```

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
pub mod project_variables;
pub mod state_root;
