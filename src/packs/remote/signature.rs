//! Signatures of packs: which keys are accepted, and whether a pack is signed by one of them.
//!
//! The configuration of the organization and of the user decide whether a signature is required. A manifest can require
//! one, too, and the lock file remembers the key; nothing in a pack can lower what the others require.

use minisign_verify::{Error, PublicKey, Signature};

pub use policyd_policy::remote::Requirer;
use policyd_policy::remote::SignatureProblem;

/// A requirement: one of the keys must have signed the pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub by: Requirer,
    /// Public keys of minisign.
    pub keys: Vec<String>,
}

/// Verifies the signature of a file list against every requirement. Returns the key that signed it; `None` if no
/// signature is required.
///
/// # Errors
/// [`SignatureProblem`] if a requirement is not met.
pub fn verify(
    list: &str,
    signature: Option<&str>,
    requirements: &[Requirement],
) -> Result<Option<String>, SignatureProblem> {
    let mut signer = None;
    for requirement in requirements {
        let by = requirement.by;
        if requirement.keys.is_empty() {
            return Err(SignatureProblem::NoKey { by });
        }
        let text = signature.ok_or(SignatureProblem::Missing { by })?;
        let parsed = Signature::decode(text).map_err(|_| SignatureProblem::Malformed)?;
        signer = Some(signed_by(list, &parsed, requirement)?);
    }
    Ok(signer)
}

/// Returns the key of a requirement that signed a list.
fn signed_by(
    list: &str,
    signature: &Signature,
    requirement: &Requirement,
) -> Result<String, SignatureProblem> {
    let by = requirement.by;
    let mut problem = SignatureProblem::OtherKey { by };
    for key in &requirement.keys {
        let public = PublicKey::from_base64(key)
            .map_err(|_| SignatureProblem::InvalidKey { by, key: key.clone() })?;
        // Signatures of the old kind cover the whole file, and are not made by default any more.
        match public.verify(list.as_bytes(), signature, false) {
            Ok(()) => return Ok(key.clone()),
            Err(Error::UnexpectedKeyId) => {}
            Err(_) => problem = SignatureProblem::OtherContent,
        }
    }
    Err(problem)
}
