//! Times of clock edges: edge `k` is at `k / hz` after power-on; the first edge has number 1.

/// An oscillator, with time in units of `1 / units_per_s` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Edges per second.
    pub hz: u64,
    /// Units of time per second.
    pub units_per_s: u64,
}

impl Clock {
    /// Returns the number of clock edges in the first `time` units after power-on.
    pub fn edges_until(self, time: u64) -> u64 {
        (u128::from(time) * u128::from(self.hz) / u128::from(self.units_per_s)) as u64
    }

    /// Returns the time of edge `edge`, rounded up to a whole unit.
    /// At that time, but not one unit earlier, the edge has happened.
    pub fn time_of(self, edge: u64) -> u64 {
        (u128::from(edge) * u128::from(self.units_per_s)).div_ceil(u128::from(self.hz)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fpga_model::CLOCK_HZ;

    #[test]
    fn edges_are_counted_exactly_in_nanoseconds_and_picoseconds() {
        for units_per_s in [1_000_000_000, 1_000_000_000_000] {
            let clock = Clock {
                hz: CLOCK_HZ,
                units_per_s,
            };
            assert_eq!(clock.edges_until(units_per_s), CLOCK_HZ);
            for edge in (0..10_000).chain([CLOCK_HZ * 86_400 * 100]) {
                let at = clock.time_of(edge);
                assert_eq!(
                    clock.edges_until(at),
                    edge,
                    "the edge has happened at its time"
                );
                assert!(
                    at == 0 || clock.edges_until(at - 1) < edge,
                    "and not a unit before"
                );
            }
        }
    }
}
