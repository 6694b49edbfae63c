//! Arguments of `policyd pack`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(crate) struct PackArguments {
    #[command(subcommand)]
    pub(crate) action: PackAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PackAction {
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
pub(crate) struct RemoteArguments {
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpdateArguments {
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Accept a version that is older than one that the source had before
    #[arg(long)]
    pub(crate) allow_older: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManifestArguments {
    /// Directory of the pack to publish
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PushArguments {
    /// Directory of the pack to publish
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// `oci://REGISTRY/NAME:TAG`, or a file that ends in `.tar.zst`
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Public key of minisign by which the pack must be signed
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}
