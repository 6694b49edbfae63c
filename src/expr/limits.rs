//! Limits of expressions and patterns.

pub use policyd_yaml::limits::{EXPRESSION_BYTES_MAX, REGEX_SOURCE_MAX};

/// Operations of one evaluation of an expression.
pub const EXPRESSION_OPERATIONS_MAX: u64 = 100_000;
/// Nesting of one expression.
pub const EXPRESSION_DEPTH_MAX: usize = 48;
/// Nesting of calls. Expressions cannot define functions.
pub const EXPRESSION_CALLS_MAX: usize = 8;
/// Length of a string inside an expression, in bytes.
pub const EXPRESSION_STRING_MAX: usize = 64 * 1024;
/// Length of an array inside an expression.
pub const EXPRESSION_ARRAY_MAX: usize = 1_000;
/// Compiled size of one regular expression, in bytes.
pub const REGEX_COMPILED_MAX: usize = 1024 * 1024;
/// Parsed expressions that a thread keeps.
pub const EXPRESSIONS_PARSED_MAX: usize = 32_768;
/// Regular expressions whose check is kept.
pub const REGEXES_CHECKED_MAX: usize = 4_096;
/// Parts of one expression that an explanation shows.
pub const EXPLAINED_PARTS_MAX: usize = 200;

const _: () = assert!(EXPRESSION_BYTES_MAX < 65_535, "Rhai columns are u16");
