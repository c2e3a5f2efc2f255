//! Persistent collective operations, each turn of which is the nonblocking one; the build writes the functions.

use super::Foreign;
use crate::foreign_below::own::{Children, make};
use std::ffi::c_int;

/// What an operation is called with in each turn.
pub struct Given<T>(pub T);

// SAFETY: the addresses are the program's, which leaves arrays and memory alone until the request is freed.
unsafe impl<T> Send for Given<T> {}

/// The request of an operation whose turn `start` begins.
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
    // SAFETY: as the caller says.
    unsafe { request.write(make::<F>(Box::new(Children::persistent(Box::new(again))))) };
    0
}
