//! Random numbers of a run: each node has its own SplitMix64 generator.

use mpi_base::random::SplitMix64;

/// The generator of one node's random numbers.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Returns the generator of one node; the numbers of different nodes or seeds are independent.
    pub fn new(seed: u64, node: usize) -> Self {
        let mixed = |seed| SplitMix64(seed).next_u64();
        let start = mixed(seed) ^ (node as u64).wrapping_mul(GOLDEN_GAMMA);
        Self(SplitMix64(mixed(start)))
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1, by the method of Box and Muller (1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a uniformly distributed number in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}
