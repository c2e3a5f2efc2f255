//! Random numbers by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
//!
//! A golden waveform must not change with the version of a library, so the ten lines are here.

/// One stream of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Returns the stream of one node: streams of different nodes, or of different seeds, are independent.
    pub fn new(seed: u64, node: usize) -> Self {
        let mut mixed = Self(seed);
        let start = mixed.word();
        let mut mixed = Self(start ^ (node as u64).wrapping_mul(GOLDEN_GAMMA));
        Self(mixed.word())
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1, by the method of Box and Muller (1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a number of at least 0 and less than 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.word(), 6_457_827_717_110_365_317);
        assert_eq!(random.word(), 3_203_168_211_198_807_973);
    }
}
