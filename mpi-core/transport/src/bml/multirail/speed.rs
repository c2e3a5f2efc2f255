//! The measured speed of a link to a peer, which determines the link's share of the data.
//!
//! The peer reports the number of bytes that have arrived over each link.
//! A measurement is the number of bytes that arrive during [`ENOUGH`] of busy time of the link; the speed is a running mean of measurements.
//! Before the first measurement, the bond assumes the speed that the interface claims.
//! It sends only little data over such a link.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum duration of one measurement.
/// It exceeds the time in which a network queue delivers faster than the network itself.
const ENOUGH: Duration = Duration::from_millis(4);
/// The number of bytes after which a link without a measurement is avoided until the peer has reported.
const UNMEASURED: u64 = 512 << 10;
/// Penalty on the expected time of a link that is avoided, in nanoseconds.
const AVOIDED: u64 = 1 << 50;

#[derive(Default)]
pub(super) struct Speed {
    /// Bytes sent over the link.
    /// `arrived`: the number of these bytes that the peer has reported as arrived.
    sent: Cell<u64>,
    arrived: Cell<u64>,
    /// Bytes per millisecond; 0 if nothing has been measured.
    rate: Cell<u64>,
    /// Start of the current busy period; `None` while the link is idle.
    since: Cell<Option<Instant>>,
    /// The current measurement: bytes that have arrived. `busy`: busy time of the link.
    bytes: Cell<u64>,
    busy: Cell<Duration>,
}

impl Speed {
    /// Counts bytes that the link has taken.
    pub fn sent(&self, bytes: usize) {
        if self.outstanding() == 0 {
            self.since.set(Some(Instant::now()));
        }
        self.sent.set(self.sent.get() + bytes as u64);
    }

    /// Processes the peer's report of all bytes that have arrived; a report of more bytes than were sent changes nothing.
    pub fn report(&self, arrived: u64) {
        let more = arrived.saturating_sub(self.arrived.get());
        if more == 0 || more > self.outstanding() {
            return;
        }
        self.arrived.set(arrived);
        let now = Instant::now();
        let since = self.since.get().unwrap_or(now);
        self.since.set((self.outstanding() > 0).then_some(now));
        self.measure(more, now.duration_since(since));
    }

    fn measure(&self, bytes: u64, busy: Duration) {
        let (bytes, busy) = (self.bytes.get() + bytes, self.busy.get() + busy);
        if busy < ENOUGH {
            self.bytes.set(bytes);
            self.busy.set(busy);
            return;
        }
        self.bytes.set(0);
        self.busy.set(Duration::ZERO);
        let micros = busy.as_micros().max(1) as u64;
        let measured = (bytes.saturating_mul(1000) / micros).max(1);
        let rate = match self.rate.get() {
            0 => measured,
            before => (3 * before + measured) / 4,
        };
        self.rate.set(rate);
    }

    /// Returns the number of bytes sent whose arrival the peer has not reported.
    fn outstanding(&self) -> u64 {
        self.sent.get() - self.arrived.get()
    }

    /// Returns the measured speed in bytes per millisecond; `None` before the first measurement.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.get()).filter(|rate| *rate > 0)
    }

    /// Returns the time until `len` more bytes have arrived, in nanoseconds; `claimed` is the interface's bandwidth in Mbit/s.
    pub fn time(&self, len: usize, claimed: impl FnOnce() -> u32) -> u64 {
        let bytes = self.outstanding().saturating_add(len as u64);
        // 1 Mbit/s are 125 bytes per millisecond.
        let rate = (self.rate()).unwrap_or_else(|| u64::from(claimed().max(1)) * 125);
        let time = bytes.saturating_mul(1_000_000) / rate;
        let is_avoided = self.rate.get() == 0 && bytes > UNMEASURED;
        time.saturating_add(if is_avoided { AVOIDED } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_speed_replaces_what_the_interface_claims() {
        let speed = Speed::default();
        assert_eq!(speed.time(1000, || 8), 1_000_000);
        speed.measure(20_000_000, ENOUGH);
        assert_eq!(speed.time(5000, || 8), 1000);
    }

    #[test]
    fn a_link_without_a_measurement_is_avoided_after_a_small_amount() {
        let speed = Speed::default();
        speed.sent(UNMEASURED as usize);
        assert!(speed.time(1, || 1000) > AVOIDED);
        speed.measure(1000, ENOUGH);
        assert!(speed.time(1, || 1000) < AVOIDED);
    }

    #[test]
    fn a_false_report_changes_nothing() {
        let speed = Speed::default();
        speed.sent(10);
        for arrived in [11, u64::MAX] {
            speed.report(arrived);
            assert_eq!(speed.outstanding(), 10);
        }
        speed.report(10);
        speed.report(4);
        assert_eq!(speed.outstanding(), 0);
    }
}
