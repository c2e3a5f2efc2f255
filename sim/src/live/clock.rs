//! The board's clock: 25.175 MHz, counted from the board's origin on `CLOCK_MONOTONIC`.

use fpga_model::CLOCK_HZ;
use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// Now, on the clock that all processes of the machine share.
pub(super) fn monotonic_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts from boot: neither part is negative.
    t.tv_sec as u64 * NS_PER_S + t.tv_nsec as u64
}

/// How many edges lie in the first `ns` nanoseconds.
pub(super) fn edges_until(ns: u64) -> u64 {
    (u128::from(ns) * u128::from(CLOCK_HZ) / u128::from(NS_PER_S)) as u64
}

/// When edge `edge` happens, rounded up to a nanosecond, so that `edges_until(time_of(k)) >= k`.
pub(super) fn time_of(edge: u64) -> u64 {
    (u128::from(edge) * u128::from(NS_PER_S)).div_ceil(u128::from(CLOCK_HZ)) as u64
}
