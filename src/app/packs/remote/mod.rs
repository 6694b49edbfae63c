//! Remote packs: addresses, downloads, signatures, and publication.

pub mod address;
mod archive;
mod credentials;
pub mod fetch;
mod fetch_error;
mod git;
mod https;
pub mod publish;
pub mod registry;

pub use policyd_packs::remote::*;
