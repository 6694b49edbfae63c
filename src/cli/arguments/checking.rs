//! Arguments of `policyd check`, `policyd lint`, `policyd test`, and `policyd lsp`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::format::ListFormat;
use policyd_lint::Profile;

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArguments {
    /// Command line, in quotes; with `--tool`, the path, URL or pattern; default: standard input
    ///
    /// Several words are one command line.
    #[arg(value_name = "LINE")]
    pub(crate) words: Vec<String>,
    /// Tool of the call, such as `Write` or `Read`; default: `Bash`
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// JSON file with the input of the tool; `-` is standard input
    #[arg(long, value_name = "FILE", requires = "tool", conflicts_with_all = ["words", "lines"])]
    pub(crate) input: Option<PathBuf>,
    /// Check each line of this file and print a table; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub(crate) lines: Option<PathBuf>,
    /// Working directory of the call; default: the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Client whose agent makes the call; default: Claude Code
    #[arg(long, visible_alias = "client", value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Output format; `compact` prints one line per call
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

/// Output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// Human-readable text: source lines with carets, and fixes as diffs
    Text,
    /// One line per finding
    Compact,
    /// Machine-readable JSON
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
    /// JUnit XML for test dashboards
    Junit,
}

/// Set of lint rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// Errors and almost certain mistakes
    Default,
    /// Also what a pack needs that other people rely on
    Strict,
    /// Same as strict
    Pedantic,
}

impl ProfileName {
    /// The profile of lint.
    pub(crate) const fn profile(self) -> Profile {
        match self {
            Self::Default => Profile::Default,
            Self::Strict => Profile::Strict,
            Self::Pedantic => Profile::Pedantic,
        }
    }
}

/// Levels of findings that fail the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailLevel {
    /// Any finding
    Note,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
}

/// Fixes to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FixLevel {
    /// Fixes that do not change any decision
    Safe,
    /// All fixes
    All,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LintArguments {
    /// Pack directories, pack files, or directories to search for packs; default: the project's pack
    pub(crate) paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: LintFormat,
    /// Set of lint rules to check
    #[arg(long, value_enum, default_value = "default")]
    pub(crate) profile: ProfileName,
    /// Minimum level of a finding that makes the exit code 1
    #[arg(long, value_enum, default_value = "warning", value_name = "LEVEL")]
    pub(crate) fail_level: FailLevel,
    /// Apply fixes
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "safe", require_equals = true)]
    pub(crate) fix: Option<FixLevel>,
    /// Show the changes of `--fix` without writing them
    #[arg(long)]
    pub(crate) diff: bool,
    /// Report suppressed findings too (disregard `# policyd: ignore[…]`)
    #[arg(long)]
    pub(crate) no_ignores: bool,
    /// Disregard the findings that this baseline file lists
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write all findings to this baseline file, so that later runs report only new ones
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Also report what this client does not support
    #[arg(long, value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Lint again at each change of the pack, until Ctrl-C
    #[arg(long, conflicts_with_all = ["fix", "diff", "write_baseline"])]
    pub(crate) watch: bool,
    /// Explain the lint rule with this code or name
    #[arg(long, value_name = "CODE")]
    pub(crate) explain: Option<String>,
    /// List all lint rules
    #[arg(long)]
    pub(crate) list: bool,
}

/// Output format of test results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// Human-readable text
    Text,
    /// Machine-readable JSON
    Json,
    /// JUnit XML for CI systems
    Junit,
}

/// How to write a snapshot that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Update {
    /// Overwrite the snapshot with the actual output
    All,
    /// Write a `.snap.new` file beside the snapshot for `cargo insta review`
    Review,
}

/// Reads the name of a recorded tool call.
fn recorded_call(text: &str) -> Result<(String, String), &'static str> {
    let call =
        text.rsplit_once(':').filter(|(session, call)| !session.is_empty() && !call.is_empty());
    let (session, call) = call.ok_or("write SESSION:CALL, such as 4f0c21:toolu_01 or 4f0c21:7")?;
    Ok((session.to_owned(), call.to_owned()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct TestArguments {
    /// Pack directories, their `tests` directories or case files; default: the project's pack
    pub(crate) paths: Vec<PathBuf>,
    /// Run only cases whose name or file contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write snapshots that are missing or differ
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "all")]
    pub(crate) update: Option<Update>,
    /// Show the rules and operands of conditions that no case covers
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Fail if branch coverage is below this percentage; implies --coverage
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) threshold: Option<u8>,
    /// Run the cases again at each change of the pack, until Ctrl-C
    #[arg(long, conflicts_with = "update")]
    pub(crate) watch: bool,
    /// Write a recorded tool call as a case: the session, and the id or the number of the call
    #[arg(long, value_name = "SESSION:CALL", value_parser = recorded_call,
        conflicts_with_all = ["filter", "update", "coverage", "threshold", "watch", "format"])]
    pub(crate) record: Option<(String, String)>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TestFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LspArguments {
    /// Use standard input and output (default); some editors pass this option
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Set of lint rules to check, unless the editor sets `policyd.profile`
    #[arg(long, value_enum, default_value = "default")]
    pub(crate) profile: ProfileName,
}
