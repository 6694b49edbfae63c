//! Variants of a seed: cut, joined, repeated, bytes changed. What is done follows from the seed, so that
//! a failure comes again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Bytes that mean something to one of the readers.
const TELLING: &[u8] = b"\"'`$(){}[]<>|&;\\\n\t #:,*~!=-+0123456789\x00\xff\xc3\xa9";

/// Numbers that follow from a seed (splitmix64).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap().max(1);
        usize::try_from(self.next() % end).unwrap()
    }
}

/// So many variants of a seed.
pub(crate) fn of(seed: &[u8], others: &[(PathBuf, Vec<u8>)], count: usize) -> Vec<Vec<u8>> {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let mut numbers = Numbers(hasher.finish());
    (0..count)
        .map(|_| {
            let mut bytes = seed.to_vec();
            for _ in 0..=numbers.below(3) {
                change(&mut bytes, others, &mut numbers);
            }
            bytes
        })
        .collect()
}

fn change(bytes: &mut Vec<u8>, others: &[(PathBuf, Vec<u8>)], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len() + 1);
    let end = (at + numbers.below(16)).min(bytes.len());
    match numbers.below(6) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let again = bytes[at..end].to_vec();
            let many = again.repeat(1 + numbers.below(40));
            drop(bytes.splice(at..at, many));
        }
        3 => {
            let other = &others[numbers.below(others.len())].1;
            let from = numbers.below(other.len() + 1);
            let to = (from + numbers.below(60)).min(other.len());
            drop(bytes.splice(at..end, other[from..to].to_vec()));
        }
        _ => {
            let telling = TELLING[numbers.below(TELLING.len())];
            match bytes.get_mut(at) {
                Some(byte) => *byte = telling,
                None => bytes.push(telling),
            }
        }
    }
}
