//! How long the name of a port may be.
//!
//! A program of the standard has room for 1024 characters. MPICH writes no more than the 256 of its own header unless the hint
//! `port_name_size` says that there is more, and its names over InfiniBand's and others' networks (UCX) are longer than that. So each
//! call that asks for a name gets the hint; other libraries do not know it, and leave it alone, as the standard demands of hints.

use super::{original, put_in_front};
use crate::below;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use std::ffi::{CStr, c_char, c_int};

const HINT: &CStr = c"port_name_size";
/// `MPI_MAX_PORT_NAME` of the standard ABI.
const ROOM: &CStr = c"1024";

/// For all libraries, before the program calls anything.
pub fn prepare<F: Foreign>() {
    put_in_front! { MPI_Open_port MPI_Lookup_name }
}

/// Calls a function with the program's hints and this one.
///
/// # Safety
/// Between init and finalize, with an info of the program or the null one.
unsafe fn with_room<F: Foreign>(info: F::Below, call: impl FnOnce(F::Below) -> c_int) -> c_int {
    let mut hints = F::null(Kind::Info);
    // SAFETY: as the caller says; the copy is freed below.
    let mut code = unsafe {
        match info == hints {
            true => (below::MPI_Info_create::<F>())(&raw mut hints),
            false => (below::MPI_Info_dup::<F>())(info, &raw mut hints),
        }
    };
    if code != 0 {
        return code;
    }
    // SAFETY: the copy of this function.
    unsafe {
        code = (below::MPI_Info_set::<F>())(hints, HINT.as_ptr(), ROOM.as_ptr());
        if code == 0 {
            code = call(hints);
        }
        (below::MPI_Info_free::<F>())(&raw mut hints);
    }
    code
}

unsafe extern "C" fn MPI_Open_port<F: Foreign>(info: F::Below, port_name: *mut c_char) -> c_int {
    // SAFETY: called as the function of the library below.
    unsafe { with_room::<F>(info, |info| original!(MPI_Open_port)(info, port_name)) }
}

unsafe extern "C" fn MPI_Lookup_name<F: Foreign>(
    service_name: *const c_char,
    info: F::Below,
    port_name: *mut c_char,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        with_room::<F>(info, |info| {
            original!(MPI_Lookup_name)(service_name, info, port_name)
        })
    }
}
