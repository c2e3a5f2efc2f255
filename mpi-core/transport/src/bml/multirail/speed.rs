//! The measured speed of a link to a peer, from which the link's share of the data is calculated.
//!
//! The peer reports the number of bytes that have arrived over each link (ACK).
//! A measurement is the number of bytes that arrive while the link is busy for [`ENOUGH`]. The speed is a running mean of measurements.
//! Before the first measurement, the bond uses the bandwidth that the interface reports,
//! and sends only little data over the link.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum duration of one measurement.
/// Longer than the time in which the queue of a network interface accepts data faster than the network transmits them.
const ENOUGH: Duration = Duration::from_millis(4);
/// A link without a measurement is avoided while at least this number of bytes sent over it are unreported by the peer.
const UNMEASURED: u64 = 512 << 10;
/// Nanoseconds that are added to the expected delivery time of an avoided link.
const AVOIDED: u64 = 1 << 50;

#[derive(Default)]
pub(super) struct Speed {
    /// Number of bytes sent over the link.
    /// `arrived` is the number of these bytes that the peer has reported as arrived.
    sent: Cell<u64>,
    arrived: Cell<u64>,
    /// Measured speed in bytes per millisecond; 0 before the first measurement.
    rate: Cell<u64>,
    /// Start of the current busy period; `None` while the link is idle.
    since: Cell<Option<Instant>>,
    /// Bytes that have arrived in the current measurement. `busy` is the time during which the link was busy.
    bytes: Cell<u64>,
    busy: Cell<Duration>,
}

impl Speed {
    /// Counts `bytes` bytes that the link has accepted.
    pub fn sent(&self, bytes: usize) {
        if self.outstanding() == 0 {
            self.since.set(Some(Instant::now()));
        }
        self.sent.set(self.sent.get() + bytes as u64);
    }

    /// Processes the peer's report that `arrived` bytes have arrived in total. A report of more bytes than were sent has no effect.
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

    /// Returns the number of sent bytes that the peer has not reported as arrived.
    fn outstanding(&self) -> u64 {
        self.sent.get() - self.arrived.get()
    }

    /// Returns the measured speed in bytes per millisecond; `None` before the first measurement.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.get()).filter(|rate| *rate > 0)
    }

    /// Returns the expected time until `len` more bytes have arrived, in nanoseconds. `claimed` returns the interface's bandwidth in Mbit/s.
    pub fn time(&self, len: usize, claimed: impl FnOnce() -> u32) -> u64 {
        let bytes = self.outstanding().saturating_add(len as u64);
        // 1 Mbit/s = 125 bytes per millisecond.
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
