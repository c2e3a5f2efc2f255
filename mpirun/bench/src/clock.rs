//! The clock that all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock's time in milliseconds.
pub fn now_ms() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}
