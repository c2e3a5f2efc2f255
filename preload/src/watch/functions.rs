//! The library's functions that the recorder calls by their profiling names.
//!
//! These calls reach neither a profiler nor this library's wrappers.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::{Handle, Library};
use std::ffi::{CStr, c_int, c_void};

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            pub fn find(library: &Library) -> Result<Functions, String> {
                Ok(Functions {
                    // SAFETY: the standard defines the signature of each function;
                    // a handle fits one register in all ABIs.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(library.symbol($symbol)?)
                    },)*
                })
            }
        }
    };
}

functions! {
    comm_group = c"PMPI_Comm_group" (Handle, *mut Handle);
    comm_remote_group = c"PMPI_Comm_remote_group" (Handle, *mut Handle);
    comm_test_inter = c"PMPI_Comm_test_inter" (Handle, *mut c_int);
    comm_get_parent = c"PMPI_Comm_get_parent" (*mut Handle);
    comm_free = c"PMPI_Comm_free" (*mut Handle);
    group_size = c"PMPI_Group_size" (Handle, *mut c_int);
    group_rank = c"PMPI_Group_rank" (Handle, *mut c_int);
    group_translate_ranks = c"PMPI_Group_translate_ranks" (Handle, c_int, *const c_int, Handle, *mut c_int);
    group_free = c"PMPI_Group_free" (*mut Handle);
    bcast = c"PMPI_Bcast" (*mut c_void, c_int, Handle, c_int, Handle);
    type_size = c"PMPI_Type_size" (Handle, *mut c_int);
    get_count = c"PMPI_Get_count" (*const c_void, Handle, *mut c_int);
    test_cancelled = c"PMPI_Test_cancelled" (*const c_void, *mut c_int);
    request_get_status = c"PMPI_Request_get_status" (Handle, *mut c_int, usize);
}

/// Returns Fortran's address for "ignore the status", from the library's variable `name`.
pub fn fortran_sentinel(library: &Library, name: &CStr) -> usize {
    match library.symbol(name) {
        // SAFETY: the standard defines the variable `name` as a pointer.
        Ok(variable) => unsafe { variable.cast::<usize>().read() },
        Err(_) => 0,
    }
}
