//! Monotonic clock, which all processes of a machine share.

/// Returns the monotonic time in milliseconds.
pub fn now_ms() -> f64 {
    mpi_base::clock::now_ns() as f64 / 1e6
}
