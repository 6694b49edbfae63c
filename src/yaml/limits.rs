//! Limits of policy files.

/// One policy file, in bytes.
pub const POLICY_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Nesting depth of YAML collections in a policy file.
pub const YAML_DEPTH_MAX: usize = 32;
/// Nodes in one policy file.
pub const YAML_NODES_MAX: usize = 100_000;
/// Findings that are reported for one policy file. The next run reports the rest.
pub const FILE_FINDINGS_MAX: usize = 100;
/// One expression, in bytes. Rhai columns saturate at 65,535; this limit is far below.
pub const EXPRESSION_BYTES_MAX: usize = 8 * 1024;
/// Source length of one regular expression.
pub const REGEX_SOURCE_MAX: usize = 4 * 1024;
