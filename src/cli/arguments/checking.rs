//! What `policyd lint` and `policyd test` may say.

use std::path::PathBuf;

use clap::ValueEnum;

/// Form of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LintFormat {
    /// For people: the lines with carets, and cures as diffs
    Text,
    /// One line each
    Compact,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// JUnit XML, for test dashboards
    Junit,
}

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProfileName {
    /// Errors, and what is almost certainly a mistake
    Default,
    /// What a team wants of a pack that others rely on
    Strict,
    /// Style and suspicion
    Pedantic,
}

/// Findings that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FailLevel {
    /// Any finding
    Note,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
}

/// Fixes to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FixLevel {
    /// Those that change no decision
    Safe,
    /// All of them
    All,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LintArguments {
    /// Packs: their folders, files of them, or folders to look for packs in; the project's own pack
    /// by default
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Form of the findings
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: LintFormat,
    /// How much is asked for
    #[arg(long, value_enum, default_value = "default")]
    pub(in crate::cli) profile: ProfileName,
    /// The least level of a finding that makes the exit code 1
    #[arg(long, value_enum, default_value = "warning", value_name = "LEVEL")]
    pub(in crate::cli) fail_level: FailLevel,
    /// Make fixes: those that change no decision, or all
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "safe", require_equals = true)]
    pub(in crate::cli) fix: Option<FixLevel>,
    /// Show what `--fix` would change, and change nothing
    #[arg(long)]
    pub(in crate::cli) diff: bool,
    /// Take no notice of `# policyd: ignore[…]`
    #[arg(long)]
    pub(in crate::cli) no_ignores: bool,
    /// Findings that this file names are known, and do not count
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) baseline: Option<PathBuf>,
    /// Write all findings into this file, so that from now on only new ones count
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(in crate::cli) write_baseline: Option<PathBuf>,
    /// Look at what this client cannot do, too
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) harness: Option<String>,
    /// Explain a rule, by its code or name
    #[arg(long, value_name = "CODE")]
    pub(in crate::cli) explain: Option<String>,
    /// List all rules
    #[arg(long)]
    pub(in crate::cli) list: bool,
}

/// Form of test results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TestFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For CI systems: JUnit XML
    Junit,
}

/// What becomes of a snapshot that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Update {
    /// What was seen is the snapshot from now on
    All,
    /// It is written beside the snapshot (`.snap.new`) for `cargo insta review`
    Review,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TestArguments {
    /// Folders of packs, their `tests` folders or single case files; the project's pack by default
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Only cases whose name, or file, contains this
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) filter: Option<String>,
    /// Write snapshots that are missing or differ
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "all")]
    pub(in crate::cli) update: Option<Update>,
    /// Show which rules and which operands of conditions no case reaches
    #[arg(long)]
    pub(in crate::cli) coverage: bool,
    /// Fail where less than this share of the branches is reached, in percent; means --coverage
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(in crate::cli) threshold: Option<u8>,
    /// Form of the results
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: TestFormat,
}
