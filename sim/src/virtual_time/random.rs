//! Random numbers that are the same for ever: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
//!
//! A golden waveform must not change with the version of a library, so the ten lines are here.

/// One stream of numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of one node: streams of different nodes, or of different seeds, have nothing in common.
    pub(super) fn new(seed: u64, node: usize) -> Self {
        let mut mixed = Self(seed);
        let start = mixed.next();
        let mut mixed = Self(start ^ (node as u64).wrapping_mul(GOLDEN_GAMMA));
        Self(mixed.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// At least 0 and less than 1, with 53 random bits.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
