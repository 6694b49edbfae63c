//! A pack as it was read: the texts of its files, and the remote packs that it names.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::remote_pack::RemotePack;
use policyd_yaml::Source;

/// The files of a pack.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Pack {
    /// Displayed name: the directory, or `builtin`.
    pub name: String,
    /// File names within the directory, each with its text.
    pub files: Vec<(String, Arc<Source>)>,
    /// The remote packs that the manifest names.
    pub remote: Vec<RemotePack>,
}
