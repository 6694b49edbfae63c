//! Remote packs: addresses, downloads, signatures, and publication.

pub(crate) mod address;
mod archive;
mod credentials;
pub(crate) mod fetch;
mod git;
mod https;
pub(crate) mod publish;
pub(crate) mod registry;

pub(crate) use policyd_packs::remote::*;
