//! A remote pack as this machine has it: its files, or why it cannot be used.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use policyd_yaml::Source;

/// A remote pack as the lock file and the cache of this machine have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemotePack {
    /// The source as the manifest states it.
    pub source: String,
    /// SHA-256 of the content in the lock file. `None`: the lock file lacks the source.
    pub sha256: Option<String>,
    /// The files, or why the pack cannot be used.
    pub files: Result<Vec<(String, Arc<Source>)>, RemoteProblem>,
}

/// Why a remote pack cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RemoteProblem {
    /// The lock file or the cache lacks the pack.
    #[error("is not fetched yet")]
    NotFetched,
    /// A file of the cache is missing, or is not the file that was fetched.
    #[error("is damaged in the cache: `{0}` is missing or has changed")]
    Damaged(String),
    /// The lock file and the manifest contradict each other.
    #[error("must have the SHA-256 `{wanted}`, but the lock file contains `{locked}`")]
    OtherHash {
        /// The hash in the manifest.
        wanted: String,
        /// The hash in the lock file.
        locked: String,
    },
    /// The lock file cannot be read.
    #[error("cannot be found, because `policies.lock` is invalid: {0}")]
    InvalidLock(String),
    /// The configuration is invalid, so it is unknown which signatures are required.
    #[error("cannot be verified, because the key `packs` of `{0}` is invalid")]
    Configuration(String),
    /// The pack is not signed as required.
    #[error(transparent)]
    Signature(#[from] SignatureProblem),
    /// A remote pack extends another remote pack.
    #[error("extends another source, but a remote pack can extend only `builtin`")]
    Nested,
}

impl RemoteProblem {
    /// Returns how to fix the problem.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotFetched | Self::Damaged(_) => "run `policyd pack fetch`",
            Self::OtherHash { .. } => "run `policyd pack update`",
            Self::InvalidLock(_) => "restore the file, or delete it and run `policyd pack fetch`",
            Self::Configuration(_) => "run `policyd doctor`, and fix the file",
            Self::Signature(problem) => problem.help(),
            Self::Nested => "list both sources in the manifest of this pack",
        }
    }
}

/// Who requires a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Requirer {
    Organization,
    User,
    Manifest,
    LockFile,
    /// An option of the command line.
    Option,
}

impl fmt::Display for Requirer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Organization => "the organization",
            Self::User => "your configuration",
            Self::Manifest => "the manifest",
            Self::LockFile => "the lock file",
            Self::Option => "the option `--key`",
        })
    }
}

/// Why a pack does not count as signed. `by` names who requires the signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SignatureProblem {
    /// The pack has no signature.
    #[error("is not signed, but {by} requires a signature")]
    Missing {
        /// Who requires it.
        by: Requirer,
    },
    /// The signature is by another key.
    #[error("is signed by another key than {by} requires")]
    OtherKey {
        /// Who requires the key.
        by: Requirer,
    },
    /// The signature is for other content, or was made without the secret key.
    #[error("has a signature that does not fit its content")]
    OtherContent,
    /// The signature is not one of minisign.
    #[error("has a signature that is not one of minisign")]
    Malformed,
    /// A signature is required, but no key is named.
    #[error("cannot be verified: {by} requires a signature, but names no key")]
    NoKey {
        /// Who requires it.
        by: Requirer,
    },
    /// A key is not one of minisign.
    #[error("cannot be verified: {by} names `{key}`, which is not a public key of minisign")]
    InvalidKey {
        /// Who names it.
        by: Requirer,
        /// The key.
        key: String,
    },
}

impl SignatureProblem {
    /// Returns how to fix the problem.
    const fn help(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "ask the publisher to sign it, then run `policyd pack update`",
            Self::OtherKey { .. } => {
                "if the publisher has a new key, set it in the key `packs` of `config.yaml`"
            }
            Self::OtherContent | Self::Malformed => {
                "the pack could be forged; report this to its publisher"
            }
            Self::NoKey { .. } | Self::InvalidKey { .. } => {
                "set the public key of the publisher; `minisign -R` prints it"
            }
        }
    }
}

/// Schemes of the sources of remote packs, which begin the names of their files.
const SCHEMES: [&str; 3] = ["https://", "git+", "oci://"];

/// Whether a file of this name is one of a remote pack. Directories never have such a name.
#[must_use]
pub fn has(file: &str) -> bool {
    SCHEMES.iter().any(|scheme| file.starts_with(scheme))
}
