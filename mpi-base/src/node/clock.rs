//! The clock of an event ring: the time stamp counter if the kernel uses it as clock source,
//! otherwise CLOCK_MONOTONIC in nanoseconds.
//!
//! Reading the counter takes half the time of `clock_gettime`; each message causes several readings.
//! The kernel's watchdog checks that the counter runs at a constant rate,
//! also through sleep states, and synchronously on all processors.
//! If the kernel uses another clock source, this module does not use the counter either.
//!
//! A [`Moment`] is a simultaneous reading of both clocks.
//! The [`Line`] is the linear map through two moments:
//! the start of an event ring, and the time at which the ring is decoded.
//! All event rings of a node use the same line, so their events keep their order.
#![allow(unsafe_code)]

use crate::clock::now_ns as kernel_ns;
use std::path::Path;

/// The file in which the kernel names its clock source (`Documentation/ABI/testing/sysfs-devices-system-clocksource`).
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The clock of an event ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Kernel,
    Counter,
}

impl Clock {
    /// Returns the fastest clock that is reliable on this machine.
    pub fn choose() -> Clock {
        Clock::of(Path::new(CLOCKSOURCE))
    }

    fn of(source: &Path) -> Clock {
        let counts = cfg!(target_arch = "x86_64")
            && std::fs::read(source).is_ok_and(|name| name.trim_ascii() == b"tsc");
        match counts {
            true => Clock::Counter,
            false => Clock::Kernel,
        }
    }

    #[inline]
    pub fn now(self) -> u64 {
        match self {
            Clock::Kernel => kernel_ns(),
            Clock::Counter => counter(),
        }
    }
}

#[inline]
#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction `rdtsc`.
    // If a process is forbidden to use it (prctl(2), PR_SET_TSC), the kernel's vDSO,
    // which uses it too, would have ended the process long before.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    kernel_ns()
}

/// A simultaneous reading of both clocks; all zeroes if there is no reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub ticks: u64,
    pub ns: u64,
}

/// Number of readings for a moment; the reading that took the fewest ticks is used.
const READINGS: usize = 8;

impl Moment {
    pub fn now() -> Moment {
        let read = || {
            let before = counter();
            let ns = kernel_ns();
            let took = counter().saturating_sub(before);
            let ticks = before + took / 2;
            (took, Moment { ticks, ns })
        };
        let readings = (0..READINGS).map(|_| read());
        let best = readings.min_by_key(|(took, _)| *took);
        best.map_or_else(Moment::default, |(_, moment)| moment)
    }
}

/// The linear map from a counter's ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    from: Moment,
    to: Moment,
}

impl Line {
    pub fn between(from: Moment, to: Moment) -> Line {
        Line { from, to }
    }

    /// Converts a tick count to nanoseconds; the result is monotonic in `ticks`.
    pub fn ns(&self, ticks: u64) -> u64 {
        let wide = i128::from;
        let whole = wide(self.to.ticks) - wide(self.from.ticks);
        let since = wide(ticks) - wide(self.from.ticks);
        let took = wide(self.to.ns) - wide(self.from.ns);
        if whole <= 0 || took < 0 {
            return self.from.ns;
        }
        let ns = wide(self.from.ns) + (since * took).div_euclid(whole);
        ns.clamp(0, u64::MAX.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_used_only_if_the_kernel_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("current_clocksource");
        assert_eq!(Clock::of(&file), Clock::Kernel);
        std::fs::write(&file, "hpet\n").unwrap();
        assert_eq!(Clock::of(&file), Clock::Kernel);
        std::fs::write(&file, "tsc\n").unwrap();
        let with_tsc = match cfg!(target_arch = "x86_64") {
            true => Clock::Counter,
            false => Clock::Kernel,
        };
        assert_eq!(Clock::of(&file), with_tsc);
    }

    #[test]
    fn ticks_lie_on_a_straight_line_through_both_moments() {
        let moment = |ticks, ns| Moment { ticks, ns };
        let line = Line::between(moment(1000, 500), moment(4000, 1500));
        let ns = [1000, 2500, 4000, 7000, 400].map(|ticks| line.ns(ticks));
        assert_eq!(ns, [500, 1000, 1500, 2500, 300]);
        assert_eq!(line.ns(0), 166);
    }

    #[test]
    fn moments_without_a_speed_have_one_time() {
        let same = Moment { ticks: 7, ns: 9 };
        let line = Line::between(same, same);
        assert_eq!((line.ns(0), line.ns(u64::MAX)), (9, 9));
        let back = Line::between(same, Moment::default());
        assert_eq!(back.ns(100), 9);
    }

    #[test]
    fn times_of_the_counter_are_those_of_the_kernel() {
        let from = Moment::now();
        let until = from.ns + 20_000_000;
        while kernel_ns() < until {
            std::thread::yield_now();
        }
        let (before, ticks, after) = (kernel_ns(), counter(), kernel_ns());
        let ns = Line::between(from, Moment::now()).ns(ticks);
        // A moment's error is less than the time of one reading,
        // unless this thread was interrupted in each of the eight readings.
        const READING: u64 = 1_000_000;
        assert!(
            (before - READING..=after + READING).contains(&ns),
            "{before} {ns} {after}"
        );
    }
}
