//! What this library remembers of a communicator goes with it.

use super::{original, put_in_front};
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::ffi::c_int;
use std::sync::Mutex;

/// What is told the number of a communicator that goes.
static TOLD: Mutex<Vec<fn(usize)>> = Mutex::new(Vec::new());

/// From now on `left` is called with the number of each communicator that the program frees.
pub fn watch<F: Foreign>(left: fn(usize)) {
    lock(&TOLD).push(left);
    put_in_front! { MPI_Comm_free MPI_Comm_disconnect }
}

unsafe fn going<F: Foreign>(comm: *mut F::Below) {
    if comm.is_null() {
        return;
    }
    // SAFETY: an argument of the caller that is read.
    let number = F::request_number(unsafe { comm.read() });
    let told = lock(&TOLD).clone();
    for left in told {
        left(number);
    }
}

unsafe extern "C" fn MPI_Comm_free<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: called as the function of the library below.
    unsafe {
        going::<F>(comm);
        original!(MPI_Comm_free)(comm)
    }
}

unsafe extern "C" fn MPI_Comm_disconnect<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: as above.
    unsafe {
        going::<F>(comm);
        original!(MPI_Comm_disconnect)(comm)
    }
}
