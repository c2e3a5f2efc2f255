//! Notifications that the program frees a communicator, so that modules drop their data of it.

use super::{original, put_in_front};
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::ffi::c_int;
use std::sync::Mutex;

/// The functions to call when a communicator is freed.
static TOLD: Mutex<Vec<fn(usize)>> = Mutex::new(Vec::new());

/// Registers `left`, to be called with the communicator's [`Foreign::request_number`] before the
/// program frees or disconnects a communicator.
pub fn watch<F: Foreign>(left: fn(usize)) {
    lock(&TOLD).push(left);
    put_in_front! { MPI_Comm_free MPI_Comm_disconnect }
}

unsafe fn going<F: Foreign>(comm: *mut F::Below) {
    if comm.is_null() {
        return;
    }
    // SAFETY: `comm` is the argument of the calling MPI function, a valid pointer by the standard.
    let number = F::request_number(unsafe { comm.read() });
    let told = lock(&TOLD).clone();
    for left in told {
        left(number);
    }
}

unsafe extern "C-unwind" fn MPI_Comm_free<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        going::<F>(comm);
        original!(MPI_Comm_free)(comm)
    }
}

unsafe extern "C-unwind" fn MPI_Comm_disconnect<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        going::<F>(comm);
        original!(MPI_Comm_disconnect)(comm)
    }
}
