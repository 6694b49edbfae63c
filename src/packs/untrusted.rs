//! A pack that is not used, because it is not trusted or not allowed.

use std::path::PathBuf;

/// A pack that lies nearer than the one that is used, and is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedPack {
    /// Directory of the pack.
    pub folder: PathBuf,
    pub reason: UntrustedReason,
}

/// Why a pack is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UntrustedReason {
    /// The user did not trust it.
    Unknown,
    /// Its files changed since the user trusted it.
    Changed,
    /// The organization allows only other packs. Contains its content hash.
    NotAllowed(String),
}

impl UntrustedPack {
    /// Tells the user that the pack is not used, how to inspect it, and how to trust it.
    pub fn text(&self) -> String {
        let folder = self.folder.display();
        let why = match &self.reason {
            UntrustedReason::Changed => "has changed since it was trusted",
            UntrustedReason::Unknown => {
                "is not trusted: it may run commands and speak to the agent"
            }
            UntrustedReason::NotAllowed(hash) => {
                return format!(
                    "the pack in {folder} is not used, because the organization allows only certain packs. Ask the \
                     administrator to allow this content: {hash}"
                );
            }
        };
        format!(
            "the pack in {folder} {why}, so it is not used. Look at it: policyd lint {folder}; \
             then trust it: policyd trust {folder}"
        )
    }
}
