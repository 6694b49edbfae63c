//! Arguments of `policyd report` and `policyd export`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::values::duration;

/// Output format of `policyd report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MorningFormatName {
    /// Human-readable text
    Text,
    /// Markdown
    Md,
    /// One HTML file with plots, without scripts
    Html,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {
    /// Directories of projects; default: the project of the working directory
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Report on every project in which policyd evaluated something
    #[arg(long, conflicts_with = "directories")]
    pub(crate) all: bool,
    /// Report on this duration before now
    #[arg(long, value_name = "DURATION", default_value = "12h")]
    pub(crate) since: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: MorningFormatName,
    /// Write the report to this file; default: standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Make the reports of `config.yaml` that are due, such as by cron
    #[arg(long, conflicts_with_all = ["directories", "all", "output"])]
    pub(crate) due: bool,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ExportArguments {
    #[command(subcommand)]
    pub(crate) action: Option<ExportAction>,
    /// Print new entries in this format, one JSON object per line
    #[arg(long, value_enum, required = true)]
    pub(crate) format: Option<ExportFormat>,
    /// Append to this file; default: standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportAction {
    /// Send to an OpenTelemetry collector by OTLP/HTTP with JSON
    Otlp(ExportTo),
}

/// Format of exported entries.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Detection Findings of OCSF 1.4
    Ocsf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportTo {
    /// Base URL of the collector, such as `http://localhost:4318`
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    pub(crate) endpoint: String,
    /// Repeat until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    /// Interval of `--watch`
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) every: Duration,
}
