//! Generator of random stimulus, the same in every run: the xorshift generator of G. Marsaglia, "Xorshift RNGs", 2003.
//!
//! The Verilated C++ programs in the `dv` folders contain the same generator, so a stimulus is the same in both languages.

/// The generator. The value is its state, which starts as the seed and is never 0.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }
}

impl Random {
    /// Returns the next random number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a random number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// Returns true in one of `n` calls on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
