//! A generator of random numbers (xorshift), so that a failure can be repeated.

pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}
