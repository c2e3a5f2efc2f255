//! Disturbances of a wire: each computes the disturbed level at a time from the driven level.

use crate::virtual_time::{Disturbance, Random, Time};

/// A wire that is stuck at a level: a short to ground or supply, or an open wire with a pull-up or
/// pull-down.
#[derive(Debug, Clone, Copy)]
pub struct Stuck {
    /// Time at which the wire becomes stuck.
    pub from: Time,
    /// The level at which the wire is stuck.
    pub high: bool,
}

impl Disturbance for Stuck {
    fn level(&self, now: Time, input: bool, _: Time) -> bool {
        if now < self.from { input } else { self.high }
    }

    fn instants(&self) -> Vec<Time> {
        vec![self.from]
    }
}

/// An inverted wire:
/// a wire at the wrong pin (BUSY of a parallel port inverts), or one inverting buffer too many.
#[derive(Debug, Clone, Copy)]
pub struct Inverted;

impl Disturbance for Inverted {
    fn level(&self, _: Time, input: bool, _: Time) -> bool {
        !input
    }

    fn instants(&self) -> Vec<Time> {
        vec![Time::ZERO]
    }
}

/// A glitch: the opposite level for a limited time.
#[derive(Debug, Clone, Copy)]
pub struct Glitch {
    /// Start time of the glitch.
    pub from: Time,
    /// Duration of the glitch.
    pub width: Time,
}

impl Disturbance for Glitch {
    fn level(&self, now: Time, input: bool, _: Time) -> bool {
        input != (now >= self.from && now < self.from + self.width)
    }

    fn instants(&self) -> Vec<Time> {
        vec![self.from, self.from + self.width]
    }
}

/// Contact bounce:
/// after each change the level alternates several times before it stays at the new level.
#[derive(Debug, Clone, Copy)]
pub struct Bounce {
    /// Time from which changes bounce.
    pub from: Time,
    /// Duration of each intermediate level.
    pub period: Time,
    /// Number of times that the old level returns after a change.
    pub times: u64,
}

impl Disturbance for Bounce {
    fn level(&self, now: Time, input: bool, since: Time) -> bool {
        if since < self.from {
            return input;
        }
        let part = (now - since).ps() / self.period.ps().max(1);
        // The output alternates new, old, new, old ..., and finally stays new.
        input != (part < 2 * self.times && part % 2 == 1)
    }

    fn echoes(&self, since: Time) -> Vec<Time> {
        let parts = if since < self.from { 0 } else { 2 * self.times };
        (1..=parts)
            .map(|part| since + self.period.scaled(part as f64))
            .collect()
    }
}

/// An open wire without a pull-up: a random level in each `period`, for a limited time.
#[derive(Debug, Clone, Copy)]
pub struct Floating {
    /// Start time of the noise.
    pub from: Time,
    /// Duration of the noise.
    pub lasts: Time,
    /// Duration of each noise level.
    pub period: Time,
    /// Seed of the noise levels.
    pub seed: u64,
}

impl Disturbance for Floating {
    fn level(&self, now: Time, input: bool, _: Time) -> bool {
        if now < self.from {
            return input;
        }
        let part = (now - self.from).ps() / self.period.ps().max(1);
        coin(self.seed, part)
    }

    fn instants(&self) -> Vec<Time> {
        let parts = self.lasts.ps() / self.period.ps().max(1);
        (0..=parts)
            .map(|part| self.from + self.period.scaled(part as f64))
            .collect()
    }
}

/// Metastability: each change arrives exactly at the clock edge that samples it.
/// A random bit decides whether that edge or the next edge sees the change.
///
/// An edge inside the set-up window makes the first synchroniser stage resolve to the old or to the
/// new level. The second stage prevents any other effect
/// (Dike and Burton, IEEE JSSC 1999, measure how seldom that fails).
#[derive(Debug, Clone, Copy)]
pub struct Metastable {
    /// Time from which changes are metastable.
    pub from: Time,
    /// Frequency of the machine's clock, in hertz.
    pub clock_hz: u64,
    /// Seed of the random bits.
    pub seed: u64,
}

impl Metastable {
    /// Returns the time at which a change at `since` takes effect:
    /// just before or just after an edge.
    fn resolved(&self, since: Time) -> Time {
        // The level at power-on is not a change, so it is not delayed.
        if since < self.from || since == Time::ZERO {
            return since;
        }
        let edges = u128::from(since.ps()) * u128::from(self.clock_hz) / 1_000_000_000_000 + 1;
        let next = (edges * 1_000_000_000_000).div_ceil(u128::from(self.clock_hz)) as u64;
        match coin(self.seed, since.ps()) {
            // A change 1 ps before the edge is sampled by that edge,
            // a change 1 ps after it by the next edge.
            true => Time::from_ps(next - 1),
            false => Time::from_ps(next + 1),
        }
    }
}

impl Disturbance for Metastable {
    fn level(&self, now: Time, input: bool, since: Time) -> bool {
        input != (now < self.resolved(since))
    }

    fn echoes(&self, since: Time) -> Vec<Time> {
        vec![self.resolved(since)]
    }
}

fn coin(seed: u64, number: u64) -> bool {
    Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0).unit() < 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    /// Returns the output of a wire that goes high at 100 ns, sampled every 10 ns, as text.
    fn trace(disturbance: &dyn Disturbance) -> String {
        let at = |t: u64| {
            let (input, since) = if t < 100 { (false, 0) } else { (true, 100) };
            disturbance.level(ns(t), input, ns(since))
        };
        let level = |t: u64| if at(t) { '^' } else { '_' };
        (0..20).map(|k| level(k * 10)).collect()
    }

    #[test]
    fn each_disturbance_looks_like_its_name() {
        let healthy = "__________^^^^^^^^^^";
        for (disturbance, expected) in [
            (
                &Stuck {
                    from: ns(50),
                    high: true,
                } as &dyn Disturbance,
                "_____^^^^^^^^^^^^^^^",
            ),
            (
                &Stuck {
                    from: ns(150),
                    high: false,
                },
                "__________^^^^^_____",
            ),
            (&Inverted, "^^^^^^^^^^__________"),
            (
                &Glitch {
                    from: ns(30),
                    width: ns(20),
                },
                "___^^_____^^^^^^^^^^",
            ),
            (
                &Bounce {
                    from: ns(0),
                    period: ns(10),
                    times: 2,
                },
                "_^_^______^_^_^^^^^^",
            ),
            (
                &Bounce {
                    from: ns(200),
                    period: ns(10),
                    times: 2,
                },
                healthy,
            ),
        ] {
            assert_eq!(trace(disturbance), expected);
        }
    }

    #[test]
    fn a_metastable_change_ends_within_a_period_on_either_side_of_an_edge() {
        let mut sides = [0, 0];
        for at in 0..1000 {
            let disturbance = Metastable {
                from: Time::ZERO,
                clock_hz: 25_000_000,
                seed: 1,
            };
            let since = Time::from_ns(1000 + 7 * at);
            let resolved = disturbance.resolved(since);
            assert!(resolved > since && resolved <= since + ns(41));
            let within = resolved.ps() % 40_000;
            assert!(within == 1 || within == 39_999, "{resolved:?}");
            sides[usize::from(within == 1)] += 1;
        }
        assert!(sides.iter().all(|&side| side > 400), "{sides:?}");
    }

    #[test]
    fn a_floating_wire_shows_both_levels_and_looks_at_each() {
        let noise = Floating {
            from: ns(0),
            lasts: ns(1000),
            period: ns(10),
            seed: 3,
        };
        let instants = noise.instants();
        assert_eq!(instants.len(), 101);
        let highs = instants
            .iter()
            .filter(|&&now| noise.level(now, false, Time::ZERO));
        assert!((30..70).contains(&highs.count()));
    }
}
