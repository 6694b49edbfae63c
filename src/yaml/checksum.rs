//! Checksums that detect damage (a torn write, a flipped bit, another file). They do not protect against attackers.
//!
//! Contains: [`checksum`] for ids and records, [`checksum_of_cache`] for large caches, [`fingerprint`] for texts that
//! are known at compile time.
//! Does not contain: SHA-256 of packs and of trust (`sha2`).
//!
//! INVARIANT: the values of [`checksum`] must not change. Ids of decisions and signals, fingerprints of lint
//! baselines, and proofs in decision logs derive from it and are stored in files of users. A standard hash such as
//! XXH3 would give all of them new values.

/// Digits of the golden ratio and of pi: odd numbers without a pattern.
const SEEDS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0x2437_18a3_85a3_08d3, 0x1319_8a2e_0370_7345];

/// Returns the checksum of several parts. The boundaries between the parts are included.
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> [u8; 8] {
    let [mut state, _, _] = SEEDS;
    for part in parts {
        state = absorb(state, part);
    }
    state.to_le_bytes()
}

/// Returns the checksum of a large cache that only this program reads. The value differs from
/// [`checksum`]. Four independent states avoid waiting for each multiplication.
#[must_use]
pub fn checksum_of_cache(bytes: &[u8]) -> [u8; 8] {
    let [state, one, other] = SEEDS;
    let mut lanes = [state, one, other, !state];
    let (stripes, rest) = bytes.as_chunks::<64>();
    for stripe in stripes {
        for (lane, block) in lanes.iter_mut().zip(stripe.as_chunks::<16>().0) {
            *lane = step(*lane, block);
        }
    }
    let state = lanes.into_iter().fold(state, |all, lane| fold(all ^ one, lane ^ other));
    let state = fold(absorb(state, rest), low_half(bytes.len() as u128) ^ one);
    state.to_le_bytes()
}

/// Formats bytes as hexadecimal digits in lower case. With `format!` for each byte, a stop executed 140,000 more
/// instructions (callgrind, x86-64, 2026-11-27).
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Returns the FNV-1a hash of texts at compile time, so that a call does not hash what cannot change.
#[must_use]
pub const fn fingerprint(texts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = texts;
    while let [text, tail @ ..] = rest {
        let mut bytes = text.as_bytes();
        while let [byte, tail @ ..] = bytes {
            hash = (hash ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
            bytes = tail;
        }
        rest = tail;
    }
    hash
}

fn absorb(state: u64, bytes: &[u8]) -> u64 {
    let [_, one, other] = SEEDS;
    let (blocks, rest) = bytes.as_chunks::<16>();
    let mut last = [0; 16];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let state = blocks.iter().chain([&last]).fold(state, step);
    fold(state ^ one, low_half(bytes.len() as u128) ^ other)
}

/// Adds 16 bytes to a state. The product of both halves combines every bit with every other bit.
fn step(state: u64, block: &[u8; 16]) -> u64 {
    let [_, one, other] = SEEDS;
    let both = u128::from_le_bytes(*block);
    let (low, high) = (low_half(both), low_half(both >> 64));
    fold(low ^ state ^ one, high ^ state.rotate_left(32) ^ other)
}

fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    low_half(product) ^ low_half(product >> 64)
}

#[expect(clippy::cast_possible_truncation, reason = "returns the low half")]
const fn low_half(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lengths_cuts_and_single_bits_all_differ() {
        let bytes: Vec<u8> = (1..=100).collect();
        let mut seen = BTreeSet::from([checksum(&[&bytes])]);
        for at in 0..bytes.len() {
            assert!(seen.insert(checksum(&[&bytes[..at]])), "cut at {at}");
            assert!(seen.insert(checksum(&[&bytes[..at], &bytes[at..]])), "parts at {at}");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(seen.insert(checksum(&[&flipped])), "bit {bit} of byte {at}");
            }
        }
        for zeros in 1..64 {
            assert!(seen.insert(checksum(&[&vec![0; zeros]])), "{zeros} zeros");
        }
    }

    #[test]
    fn every_bit_and_every_cut_of_a_cache_counts_too() {
        let bytes: Vec<u8> = (0..4200_usize).map(|it| (it % 251) as u8).collect();
        let mut seen = BTreeSet::from([checksum_of_cache(&bytes)]);
        let mut flipped = bytes.clone();
        for at in 0..bytes.len() {
            flipped[at] ^= 1 << (at % 8);
            assert!(seen.insert(checksum_of_cache(&flipped)), "byte {at}");
            flipped[at] = bytes[at];
        }
        for at in 0..bytes.len() {
            assert!(seen.insert(checksum_of_cache(&bytes[..at])), "cut at {at}");
        }
        // Blocks that swap positions, within a stripe and between stripes.
        for (one, other) in [(0, 16), (16, 48), (0, 64), (32, 96)] {
            let mut swapped = bytes.clone();
            for at in 0..16 {
                swapped.swap(one + at, other + at);
            }
            assert!(seen.insert(checksum_of_cache(&swapped)), "{one} and {other}");
        }
    }

    #[test]
    fn each_byte_is_two_digits() {
        assert_eq!(hex(&[0, 9, 16, 0xab, 255]), "000910abff");
    }

    #[test]
    fn the_value_never_changes() {
        assert_eq!(u64::from_le_bytes(checksum(&[b"policyd"])), 6_855_811_663_403_659_299);
    }
}
