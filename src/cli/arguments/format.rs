//! Output formats that several commands have.

use clap::ValueEnum;

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Human-readable text
    Text,
    /// One line per entry
    Compact,
    /// Machine-readable JSON
    Json,
}

/// Output format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Human-readable text
    Text,
    /// Machine-readable JSON
    Json,
}
