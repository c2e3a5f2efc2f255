//! What MPI-3 removed and old programs still call; MPICH and Open MPI export it for them.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]
// SAFETY of every block: arguments are passed on to the function that took the removed one's place.

use crate::entries::*;
use std::ffi::{c_int, c_void};

/// Exports a function under its own name and under its profiling name.
macro_rules! removed {
    ($($name:ident $profiled:ident ($($argument:ident: $kind:ty),*) $body:block)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $kind),*) -> c_int {
            // SAFETY: the caller's arguments go to the function that took this one's place.
            unsafe { $body }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            // SAFETY: the same function under its other name.
            unsafe { $profiled($($argument),*) }
        }
    )* };
}

removed! {
    MPI_Address PMPI_Address(location: *mut c_void, address: *mut isize) {
        PMPI_Get_address(location, address)
    }
    MPI_Errhandler_create PMPI_Errhandler_create(function: usize, handler: *mut Handle) {
        PMPI_Comm_create_errhandler(function, handler)
    }
    MPI_Errhandler_get PMPI_Errhandler_get(comm: Handle, handler: *mut Handle) {
        PMPI_Comm_get_errhandler(comm, handler)
    }
    MPI_Errhandler_set PMPI_Errhandler_set(comm: Handle, handler: Handle) {
        PMPI_Comm_set_errhandler(comm, handler)
    }
    MPI_Type_extent PMPI_Type_extent(datatype: Handle, extent: *mut isize) {
        let mut lower = 0;
        PMPI_Type_get_extent(datatype, &mut lower, extent)
    }
    MPI_Type_lb PMPI_Type_lb(datatype: Handle, displacement: *mut isize) {
        let mut extent = 0;
        PMPI_Type_get_extent(datatype, displacement, &mut extent)
    }
    MPI_Type_ub PMPI_Type_ub(datatype: Handle, displacement: *mut isize) {
        let (mut lower, mut extent) = (0, 0);
        let code = PMPI_Type_get_extent(datatype, &mut lower, &mut extent);
        if code == 0 && !displacement.is_null() {
            displacement.write(lower + extent);
        }
        code
    }
    MPI_Type_hindexed PMPI_Type_hindexed(
        count: c_int, lengths: *mut c_int, displacements: *mut isize, from: Handle, made: *mut Handle
    ) {
        PMPI_Type_create_hindexed(count, lengths, displacements, from, made)
    }
    MPI_Type_hvector PMPI_Type_hvector(
        count: c_int, length: c_int, stride: isize, from: Handle, made: *mut Handle
    ) {
        PMPI_Type_create_hvector(count, length, stride, from, made)
    }
    MPI_Type_struct PMPI_Type_struct(
        count: c_int, lengths: *mut c_int, displacements: *mut isize, types: *mut Handle, made: *mut Handle
    ) {
        PMPI_Type_create_struct(count, lengths, displacements, types, made)
    }
}
