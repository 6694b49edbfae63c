//! Arguments of `policyd pack`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PackArguments {
    #[command(subcommand)]
    pub(in crate::cli) action: PackAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PackAction {
    /// Fetch the remote packs that the lock file names, and those that it lacks
    Fetch(RemoteArguments),
    /// Fetch the newest content of each remote pack, and change the lock file
    Update(UpdateArguments),
    /// Verify the remote packs on this machine by the lock file and their signatures, without the network
    Verify(RemoteArguments),
    /// Write `pack.manifest`, the list of the files of a pack, which its publisher signs
    Manifest(ManifestArguments),
    /// Publish a pack, with the signature of `pack.manifest` if there is one
    Push(PushArguments),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RemoteArguments {
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) policies: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UpdateArguments {
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) policies: Option<PathBuf>,
    /// Accept a version that is older than one that the source had before
    #[arg(long)]
    pub(in crate::cli) allow_older: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ManifestArguments {
    /// Directory of the pack to publish
    #[arg(value_name = "DIR")]
    pub(in crate::cli) folder: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PushArguments {
    /// Directory of the pack to publish
    #[arg(value_name = "DIR")]
    pub(in crate::cli) folder: PathBuf,
    /// `oci://REGISTRY/NAME:TAG`, or a file that ends in `.tar.zst`
    #[arg(value_name = "TARGET")]
    pub(in crate::cli) target: String,
    /// Public key of minisign by which the pack must be signed
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,
}
