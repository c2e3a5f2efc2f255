//! What this library remembers of a communicator goes with it.

use super::{Original, put};
use crate::below::{self, slot};
use crate::foreign_below::Foreign;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// What is told the number of a communicator that goes.
static TOLD: Mutex<Vec<fn(usize)>> = Mutex::new(Vec::new());

/// From now on `left` is called with the number of each communicator that the program frees.
pub fn watch<F: Foreign>(left: fn(usize)) {
    TOLD.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(left);
    put(slot::MPI_Comm_free, MPI_Comm_free::<F> as *mut c_void);
    put(
        slot::MPI_Comm_disconnect,
        MPI_Comm_disconnect::<F> as *mut c_void,
    );
}

unsafe fn going<F: Foreign>(comm: *mut F::Below) {
    if comm.is_null() {
        return;
    }
    // SAFETY: an argument of the caller that is read.
    let number = F::request_number(unsafe { comm.read() });
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for left in told {
        left(number);
    }
}

unsafe extern "C" fn MPI_Comm_free<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: called as the function of the library below.
    unsafe {
        going::<F>(comm);
        Original(slot::MPI_Comm_free).get(below::MPI_Comm_free::<F>())(comm)
    }
}

unsafe extern "C" fn MPI_Comm_disconnect<F: Foreign>(comm: *mut F::Below) -> c_int {
    // SAFETY: as above.
    unsafe {
        going::<F>(comm);
        Original(slot::MPI_Comm_disconnect).get(below::MPI_Comm_disconnect::<F>())(comm)
    }
}
