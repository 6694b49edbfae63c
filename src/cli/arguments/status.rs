//! Arguments of `policyd status`, `policyd metrics`, `policyd dashboard`, and `policyd top`.

use std::path::PathBuf;

use super::format::ListFormat;

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArguments {
    /// Directories of projects; default: the project of the working directory
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Show every project in which policyd evaluated something
    #[arg(long, conflicts_with = "directories")]
    pub(crate) all: bool,
    /// Count decisions within this duration before now
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    pub(crate) since: String,
    /// Removed: `policyd top` refreshes the same rows
    #[arg(long, hide = true)]
    pub(crate) watch: bool,
    /// Removed with `--watch`
    #[arg(long, value_name = "DURATION", hide = true)]
    pub(crate) every: Option<String>,
    /// Remove the directories from the list of projects; with `--all`, those that do not exist any more
    #[arg(long)]
    pub(crate) forget: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArguments {
    /// Write the metrics to this file; default: standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) textfile: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DashboardArguments {
    /// Port of this machine; default: any free port
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Show everything and change nothing; needs no confirmation
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Use the address 127.0.0.1 in links, for a browser that does not resolve `*.localhost`
    #[arg(long)]
    pub(crate) by_address: bool,
    /// File with a token with which Prometheus can read `/metrics`
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_token: Option<PathBuf>,
    /// File with the key of signed webhooks that may answer questions at `/reply`
    #[arg(long, value_name = "FILE", conflicts_with = "read_only")]
    pub(crate) reply_key: Option<PathBuf>,
    /// Count decisions within this duration before now
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    pub(crate) since: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TopArguments {
    /// Count decisions within this duration before now
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    pub(crate) since: String,
}
