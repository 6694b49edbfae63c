//! Exit codes. `eval` in hook format always exits with 0.

/// Clean, or released.
pub const EXIT_OK: u8 = 0;
/// Findings, failed, rejected or blocked.
pub const EXIT_FOUND: u8 = 1;
/// Usage error.
pub const EXIT_USAGE: u8 = 2;
/// Could not do the job.
pub const EXIT_BROKEN: u8 = 3;
