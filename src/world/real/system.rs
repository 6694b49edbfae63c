//! What differs between operating systems: the same functions for each system, and nothing else. `unix.rs` has what
//! Linux and macOS share.
//! Does not contain: decisions.
//!
//! The page `systems.md` of the book names the calls, what each system guarantees, and what policyd does where a system
//! guarantees less.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(target_os = "macos", test))]
mod process_list;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use linux::{
    adopt_orphans, ancestry, kill_marked, lock_holder, owner_on_way, reap_orphans,
};
#[cfg(target_os = "macos")]
pub(super) use macos::{
    adopt_orphans, ancestry, kill_marked, lock_holder, owner_on_way, reap_orphans,
};
#[cfg(unix)]
pub(super) use unix::*;
#[cfg(windows)]
pub(super) use windows::*;

/// The first process of a machine, where every chain of parents ends.
#[cfg(any(unix, test))]
const FIRST_PROCESS: u32 = 1;

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!("policyd runs on Linux, macOS, and Windows");
