//! The built-in pack, embedded: `policies/` of this repository.

use std::sync::Arc;

use super::load::Pack;
use crate::source::Source;

/// Name of the built-in pack in `extends` and in messages.
pub const NAME: &str = "builtin";

/// Files of the built-in pack and their texts.
pub const FILES: &[(&str, &str)] = &[
    ("policyd.yaml", include_str!("../../policies/policyd.yaml")),
    ("vocabulary.yaml", include_str!("../../policies/vocabulary.yaml")),
    ("preferences.yaml", include_str!("../../policies/preferences.yaml")),
    ("probes.yaml", include_str!("../../policies/probes.yaml")),
    ("breakers.yaml", include_str!("../../policies/breakers.yaml")),
    ("session_types.yaml", include_str!("../../policies/session_types.yaml")),
    ("checkers.yaml", include_str!("../../policies/checkers.yaml")),
    ("considerations.yaml", include_str!("../../policies/considerations.yaml")),
    ("messages.yaml", include_str!("../../policies/messages.yaml")),
];

/// A number that changes with every byte of the built-in pack (FNV-1a), known at compile time so
/// that no call has to hash what cannot change.
pub const FINGERPRINT: u64 = fingerprint();

const fn fingerprint() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = FILES;
    while let [(name, text), tail @ ..] = rest {
        hash = absorb(absorb(hash, name.as_bytes()), text.as_bytes());
        rest = tail;
    }
    hash
}

const fn absorb(mut hash: u64, mut bytes: &[u8]) -> u64 {
    while let [byte, tail @ ..] = bytes {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
        bytes = tail;
    }
    hash
}

/// Whether a source is a file of the built-in pack. Folders never have its name.
#[must_use]
pub fn wrote(source: &Source) -> bool {
    source.name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('/'))
}

/// The built-in pack as if read from a folder.
#[must_use]
pub fn pack() -> Pack {
    let files = FILES.iter().map(|(file, text)| {
        let source = Source { name: format!("{NAME}/{file}"), text: (*text).to_owned() };
        ((*file).to_owned(), Arc::new(source))
    });
    Pack { name: NAME.to_owned(), files: files.collect() }
}
