//! The clock of a board's machine, with the pauses that a fault may cause.

use super::Time;
use barrier_board::clock::Clock;

/// The clock of a board's machine, which may stop for some time or for the rest of the run.
#[derive(Debug)]
pub(super) struct Oscillator {
    clock: Clock,
    /// Delay of the first edge: it occurs one period plus `phase` after power-on.
    phase: Time,
    pauses: Vec<(Time, Time)>,
}

impl Oscillator {
    pub fn new(hz: u64, phase: Time, pauses: Vec<(Time, Time)>) -> Self {
        Self {
            clock: Clock {
                hz,
                units_per_s: 1_000_000_000_000,
            },
            phase,
            pauses,
        }
    }

    /// Returns the number of clock edges until `now`.
    pub fn edges_until(&self, now: Time) -> u64 {
        let paused = self.pauses.iter().fold(Time::ZERO, |sum, &(from, to)| {
            sum + (now.min(to) - now.min(from))
        });
        self.clock.edges_until((now - paused - self.phase).ps())
    }

    /// Returns the time of edge `edge`; `None` if the clock stops before that edge and stays
    /// stopped.
    pub fn time_of(&self, edge: u64) -> Option<Time> {
        let mut when = self.phase + Time::from_ps(self.clock.time_of(edge));
        for &(from, to) in &self.pauses {
            if when > from {
                if to.ps() == u64::MAX {
                    return None;
                }
                when = when + (to - from);
            }
        }
        Some(when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_edge_falls_into_a_pause_and_none_is_lost() {
        let us = |us: u64| Time::from_ns(1000 * us);
        let oscillator = Oscillator::new(
            1_000_000,
            Time::ZERO,
            vec![(us(10), us(15)), (us(20), Time::from_ps(u64::MAX))],
        );
        let times: Vec<_> = (9..17).map(|edge| oscillator.time_of(edge)).collect();
        let expected = [Some(9), Some(10), Some(16), Some(17), Some(18), Some(19)];
        assert_eq!(times[..6], expected.map(|t| t.map(us)));
        assert_eq!(times[7], None);
        for (edge, when) in (9..15).zip(expected) {
            let when = when.map(us).expect("before the end");
            assert_eq!(oscillator.edges_until(when), edge);
            assert_eq!(oscillator.edges_until(when - Time::from_ps(1)), edge - 1);
        }
        assert_eq!(oscillator.edges_until(us(1000)), 15);
    }

    #[test]
    fn a_phase_moves_every_edge() {
        let phase = Time::from_ps(300);
        let late = Oscillator::new(1_000_000_000, phase, Vec::new());
        assert_eq!(late.time_of(4), Some(Time::from_ps(4300)));
        assert_eq!(late.edges_until(Time::from_ps(4299)), 3);
        assert_eq!(late.edges_until(Time::from_ps(4300)), 4);
        assert_eq!(late.edges_until(Time::from_ps(100)), 0);
    }
}
