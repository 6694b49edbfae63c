//! The cursor: facts with the place in the transcript they reach to, as bytes that prove themselves.
//! It is a cache: whatever does not fit exactly is no cursor, and the transcript is read again.

use serde::{Deserialize, Serialize};

use super::Facts;
use super::lens::Lens;
use crate::checksum::{checksum, fingerprint};
use crate::limits::{CURSOR_BYTES_MAX, CURSOR_PROOF_BYTES};

const MAGIC: &[u8; 8] = b"policyd\x03"; // the last byte is the version of the format
const HASH_BYTES: usize = 8;

type Hash = [u8; HASH_BYTES];

/// The sources of the types that a cursor holds and of the table by which its texts are masked, and the version of
/// the program.
const SHAPES: u64 = fingerprint(&[
    env!("CARGO_PKG_VERSION"),
    include_str!("mod.rs"),
    include_str!("command.rs"),
    include_str!("meters.rs"),
    include_str!("../source/secrets.rs"),
    include_str!("../source/secrets/formats.rs"),
    include_str!("../source/secrets/arguments.rs"),
]);

/// What a cursor depends on beside the transcript and the program: the lens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key(Hash);

impl Key {
    /// The key of a lens.
    #[must_use]
    pub fn of(lens: &Lens) -> Self {
        let encoded = postcard::to_stdvec(lens).unwrap_or_default();
        Self(checksum(&[&encoded]))
    }
}

/// A place in a transcript, with what proves that it is still the same file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bytes absorbed: the start of the first line that was not.
    pub offset: u64,
    /// Identity of the file on its device, 0 where unknown.
    pub identity: u64,
    /// See `proof`.
    pub proof: Hash,
}

impl Position {
    /// Where the bytes that prove this position begin, and how many they are.
    #[must_use]
    pub fn proof_range(offset: u64) -> (u64, usize) {
        let start = offset.saturating_sub(CURSOR_PROOF_BYTES as u64);
        (start, usize::try_from(offset - start).unwrap_or(CURSOR_PROOF_BYTES))
    }
}

/// What the last bytes before an offset come to.
#[must_use]
pub fn proof(bytes_before: &[u8]) -> Hash {
    checksum(&[bytes_before])
}

/// Bytes of a cursor; `None` when they would be more than is kept.
#[must_use]
pub fn encode(position: &Position, facts: &Facts, key: Key) -> Option<Vec<u8>> {
    let body = postcard::to_stdvec(&(position, facts)).ok()?;
    if body.len() > CURSOR_BYTES_MAX {
        return None;
    }
    let proof = checksum(&[&SHAPES.to_le_bytes(), &key.0, &body]);
    Some([MAGIC.as_slice(), &key.0, &proof, &body].concat())
}

/// The cursor that `encode` made under the same key; anything else is `None`.
#[must_use]
pub fn decode(bytes: &[u8], key: Key) -> Option<(Position, Facts)> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (proof, body) = rest.split_at_checked(HASH_BYTES)?;
    if body.len() > CURSOR_BYTES_MAX || proof != checksum(&[&SHAPES.to_le_bytes(), &key.0, body]) {
        return None;
    }
    postcard::from_bytes(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Position, Facts) {
        let facts = Facts { seq: 7, branch: "main".to_owned(), ..Facts::default() };
        (Position { offset: 99, identity: 3, proof: proof(b"x") }, facts)
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let (position, facts) = sample();
        let key = Key::of(&Lens::default());
        let bytes = encode(&position, &facts, key).unwrap();
        assert_eq!(decode(&bytes, key), Some((position, facts)));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_no_cursor() {
        let (position, facts) = sample();
        let key = Key::of(&Lens::default());
        let bytes = encode(&position, &facts, key).unwrap();
        for index in 0..bytes.len() {
            assert_eq!(decode(&bytes[..index], key), None, "cut at {index}");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1 << bit;
                assert_eq!(decode(&flipped, key), None, "bit {bit} of byte {index}");
            }
        }
    }

    #[test]
    fn another_lens_is_another_key() {
        let (position, facts) = sample();
        let lens = Lens { shell_tools: vec!["Bash".to_owned()], ..Lens::default() };
        let bytes = encode(&position, &facts, Key::of(&Lens::default())).unwrap();
        assert_eq!(decode(&bytes, Key::of(&lens)), None);
    }

    #[test]
    fn the_proof_covers_the_bytes_before_the_offset() {
        assert_eq!(Position::proof_range(0), (0, 0));
        assert_eq!(Position::proof_range(10), (0, 10));
        let far = CURSOR_PROOF_BYTES as u64 + 10;
        assert_eq!(Position::proof_range(far), (10, CURSOR_PROOF_BYTES));
    }
}
