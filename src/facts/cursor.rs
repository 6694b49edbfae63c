//! The cursor: facts and the transcript position that they reach, in a form that detects damage and
//! stale data.
//!
//! It is a cache. Any mismatch discards it, and the transcript is read again.

use serde::{Deserialize, Serialize};

use super::Facts;
use super::lens::MatcherConfig;
use policyd_base::limits::{CURSOR_BYTES_MAX, CURSOR_PROOF_BYTES};
use policyd_yaml::checksum::checksum;

const MAGIC: &[u8; 8] = b"policyd\x03"; // the last byte is the version of the format
const HASH_BYTES: usize = 8;

type Hash = [u8; HASH_BYTES];

/// The sources of the stored types and of the fold, and the program's version.
const SHAPES: &[u8] =
    concat!(env!("CARGO_PKG_VERSION"), " ", env!("POLICYD_FACT_SOURCES")).as_bytes();

/// Hash of the lens, on which a cursor depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key(Hash);

impl Key {
    /// Returns the key of a lens.
    #[must_use]
    pub fn of(lens: &MatcherConfig) -> Self {
        let encoded = postcard::to_stdvec(lens).unwrap_or_default();
        Self(checksum(&[&encoded]))
    }
}

/// A position in a transcript, with a proof that the file is still the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Number of ingested bytes: the start of the first line that was not ingested.
    pub offset: u64,
    /// File id on its device; 0 if unknown.
    pub identity: u64,
    /// Result of [`Position::proof`] for the bytes before `offset`.
    pub proof: Hash,
}

impl Position {
    /// Returns the start and the length of the bytes that prove a position.
    #[must_use]
    pub fn proof_range(offset: u64) -> (u64, usize) {
        let start = offset.saturating_sub(CURSOR_PROOF_BYTES as u64);
        (start, usize::try_from(offset - start).unwrap_or(CURSOR_PROOF_BYTES))
    }
}

/// Returns the hash of the last bytes before an offset.
#[must_use]
pub fn proof(bytes_before: &[u8]) -> Hash {
    checksum(&[bytes_before])
}

/// Encodes a cursor. `None` if it would exceed `CURSOR_BYTES_MAX`.
#[must_use]
pub fn encode(position: &Position, facts: &Facts, key: Key) -> Option<Vec<u8>> {
    let body = postcard::to_stdvec(&(position, facts)).ok()?;
    if body.len() > CURSOR_BYTES_MAX {
        return None;
    }
    let proof = checksum(&[SHAPES, &key.0, &body]);
    Some([MAGIC.as_slice(), &key.0, &proof, &body].concat())
}

/// Decodes a cursor that [`encode`] made with the same key. `None` for any other bytes.
#[must_use]
pub fn decode(bytes: &[u8], key: Key) -> Option<(Position, Facts)> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (proof, body) = rest.split_at_checked(HASH_BYTES)?;
    if body.len() > CURSOR_BYTES_MAX || proof != checksum(&[SHAPES, &key.0, body]) {
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
        let key = Key::of(&MatcherConfig::default());
        let bytes = encode(&position, &facts, key).unwrap();
        assert_eq!(decode(&bytes, key), Some((position, facts)));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_no_cursor() {
        let (position, facts) = sample();
        let key = Key::of(&MatcherConfig::default());
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
        let lens =
            MatcherConfig { shell_tools: vec!["Bash".to_owned()], ..MatcherConfig::default() };
        let bytes = encode(&position, &facts, Key::of(&MatcherConfig::default())).unwrap();
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
