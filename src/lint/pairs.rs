//! The comparison of each item with others. Items and others that did not change since the last review are not compared
//! again.

use std::collections::BTreeSet;

/// Pairs of a former review.
///
/// INVARIANT: no item of `unrelated` is related to one of `others`.
#[derive(Debug, Default)]
pub(crate) struct KnownPairs {
    /// Hashes of items.
    unrelated: BTreeSet<u64>,
    /// Hashes of others.
    others: BTreeSet<u64>,
}

impl KnownPairs {
    /// Returns the first of `others` to which each item is related. Each value comes with a hash of all that
    /// `is_related` reads of it.
    pub(crate) fn first_related<'o, I, O>(
        &mut self,
        items: &[(u64, I)],
        others: &'o [(u64, O)],
        is_related: impl Fn(&I, &O) -> bool,
    ) -> Vec<Option<&'o O>> {
        let known = std::mem::take(self);
        let all: Vec<&(u64, O)> = others.iter().collect();
        let is_new = |it: &&&(u64, O)| !known.others.contains(&it.0);
        let new: Vec<&(u64, O)> = all.iter().filter(is_new).copied().collect();
        self.others = others.iter().map(|(hash, _)| *hash).collect();
        let mut compare = |(hash, item): &(u64, I)| {
            let compared = if known.unrelated.contains(hash) { &new } else { &all };
            let found = compared.iter().copied().find(|(_, other)| is_related(item, other));
            if found.is_none() {
                self.unrelated.insert(*hash);
            }
            found.map(|(_, other)| other)
        };
        items.iter().map(&mut compare).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Reports the first divisor of each number, and how many pairs were compared.
    fn divisors(known: &mut KnownPairs, items: &[u64], others: &[u64]) -> (Vec<Option<u64>>, u32) {
        let compared = Cell::new(0);
        let is_related = |item: &u64, other: &u64| {
            compared.set(compared.get() + 1);
            item.is_multiple_of(*other)
        };
        let hashed = |all: &[u64]| all.iter().map(|it| (*it, *it)).collect::<Vec<_>>();
        let (items, others) = (hashed(items), hashed(others));
        let found = known.first_related(&items, &others, is_related);
        (found.into_iter().map(|it| it.copied()).collect(), compared.get())
    }

    #[test]
    fn pairs_that_did_not_change_are_not_compared_again() {
        let mut known = KnownPairs::default();
        let primes: Vec<u64> = (0..100).map(|it| it * 6 + 1).collect();
        let others = [2, 3, 5000, 4];
        let first = divisors(&mut known, &primes, &others);
        assert_eq!(first, (vec![None; 100], 400));
        assert_eq!(divisors(&mut known, &primes, &others), (vec![None; 100], 0));
        let changed: Vec<u64> = primes.iter().copied().chain([10]).collect();
        let (found, compared) = divisors(&mut known, &changed, &others);
        assert_eq!((found.last(), compared), (Some(&Some(2)), 1));
        let (found, compared) = divisors(&mut known, &changed, &[7, 2, 3, 5000, 4]);
        assert_eq!((found[1], found.last(), compared), (Some(7), Some(&Some(2)), 102));
        // An other that was not compared meanwhile is compared again.
        divisors(&mut known, &changed, &[3]);
        assert_eq!(divisors(&mut known, &changed, &[3, 5]).0.last(), Some(&Some(5)));
    }
}
