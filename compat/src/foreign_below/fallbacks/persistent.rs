//! Helpers of the fallbacks for persistent collectives. A start calls the nonblocking collective.
//!
//! The build generates the fallbacks themselves.

use super::Foreign;
use crate::foreign_below::emulated_requests::{Children, make};
use std::ffi::c_int;

/// The arguments of a persistent collective, kept for every start.
pub struct Given<T>(pub T);

// SAFETY: MPI forbids the program to change these arrays and buffers before the request is freed.
// So another thread may use them.
unsafe impl<T> Send for Given<T> {}

/// Creates an emulated persistent request. Each start of the request calls `start`.
///
/// # Safety
/// `request` is an output argument of the program.
pub unsafe fn persist<F: Foreign>(
    request: *mut F::Below,
    mut start: impl FnMut(*mut F::Below) -> c_int + Send + 'static,
) -> c_int {
    let again = move || {
        let mut started = F::null(crate::family::Kind::Request);
        match start(&raw mut started) {
            0 => Ok(vec![started]),
            code => Err(code),
        }
    };
    let operation =
        Children::persistent(Box::new(again)).uncancellable("a persistent collective operation");
    // SAFETY: `request` is an output argument of the program, by contract.
    unsafe { request.write(make::<F>(Box::new(operation))) };
    0
}
