//! Limits of the analysis of command lines.

/// Globs that the braces of one glob can expand to.
pub const GLOB_ALTERNATIVES_MAX: usize = 64;
/// Programs that one tool call would start. A program that is started again with the same arguments
/// counts once.
pub const CALL_PROGRAMS_MAX: usize = 512;
/// Steps of the analysis of one tool call. Each statement is one step, in each iteration of a loop.
/// Each `CALL_STEP_BYTES` of statements and of expanded values are one more step.
pub const CALL_STEPS_MAX: usize = 10_000;
/// Text that counts as one step, in bytes.
pub const CALL_STEP_BYTES: usize = 256;
/// Nesting of shells in shells (`bash -c "sh -c …"`).
pub const SHELL_DEPTH_MAX: usize = 6;
/// Nesting of one command line, in all texts of it together: groups, substitutions, bodies, parts of words, and
/// commands that start commands. Every function that calls itself over the text of an agent counts it.
pub const SHELL_NESTING_MAX: usize = 64;
/// Parser steps, in hundreds, for one shell text. A text that needs more counts as not understood.
pub const SHELL_STEPS_MAX: usize = 1_000;
/// A file that a call runs, in bytes.
pub const SCRIPT_TEXT_MAX: usize = 256 * 1024;
/// A command line that is parsed as shell, in bytes.
pub const SHELL_TEXT_MAX: usize = 64 * 1024;
/// Programs that are read from one command line.
pub const COMMAND_PROGRAMS_MAX: usize = 64;
