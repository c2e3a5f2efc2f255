//! Functions that MPI-3 removed and old programs call. MPICH and Open MPI still export them.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc)]

use crate::entries::*;
use crate::family::{is_lower_bound, is_upper_bound};
use std::ffi::{c_int, c_void};

/// Exports a function under its MPI name and its profiling name.
macro_rules! removed {
    ($($name:ident $profiled:ident ($($argument:ident: $kind:ty),*) $body:block)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $profiled($($argument: $kind),*) -> c_int {
            // SAFETY: the replacement has the requirements that the caller has met.
            unsafe { $body }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            // SAFETY: the profiling name is the same function, with the same requirements.
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
        structure(count, lengths, displacements, types, made)
    }
}

/// Creates a struct datatype. An entry of type `MPI_LB` or `MPI_UB` sets the lower or upper bound.
///
/// # Safety
/// The arguments are valid for `MPI_Type_create_struct`.
unsafe fn structure(
    count: c_int,
    lengths: *mut c_int,
    displacements: *mut isize,
    types: *mut Handle,
    made: *mut Handle,
) -> c_int {
    // SAFETY: the arguments are valid for this function by the `# Safety` contract.
    let pass_on = || unsafe { PMPI_Type_create_struct(count, lengths, displacements, types, made) };
    let entries = usize::try_from(count).unwrap_or(0);
    if lengths.is_null() || displacements.is_null() || types.is_null() || made.is_null() {
        return pass_on();
    }
    // SAFETY: no array is null, and each has `count` entries by the `# Safety` contract.
    // `at` is below `count`.
    let entry = |at: usize| unsafe {
        let kind = types.add(at).read();
        (lengths.add(at).read(), displacements.add(at).read(), kind)
    };
    let (mut lower, mut upper) = (None, None);
    let (mut kept_lengths, mut kept_displacements, mut kept_types) = (vec![], vec![], vec![]);
    for (length, displacement, kind) in (0..entries).map(entry) {
        if is_lower_bound(kind) {
            lower = lower.into_iter().chain([displacement]).min();
        } else if is_upper_bound(kind) {
            upper = upper.into_iter().chain([displacement]).max();
        } else {
            kept_lengths.push(length);
            kept_displacements.push(displacement);
            kept_types.push(kind);
        }
    }
    if lower.is_none() && upper.is_none() {
        return pass_on();
    }
    let (mut bare, mut begin, mut extent) = (kept_types.first().copied().unwrap_or_default(), 0, 0);
    // SAFETY: the three vectors have the same length. `made` is the caller's and is not null.
    // All other addresses are those of local variables.
    unsafe {
        let code = PMPI_Type_create_struct(
            kept_types.len() as c_int,
            kept_lengths.as_mut_ptr(),
            kept_displacements.as_mut_ptr(),
            kept_types.as_mut_ptr(),
            &raw mut bare,
        );
        if code != 0 {
            return code;
        }
        let code = PMPI_Type_get_extent(bare, &raw mut begin, &raw mut extent);
        let code = match code {
            0 => {
                let end = upper.unwrap_or(begin + extent);
                let begin = lower.unwrap_or(begin);
                PMPI_Type_create_resized(bare, begin, end.wrapping_sub(begin), made)
            }
            code => code,
        };
        PMPI_Type_free(&raw mut bare);
        code
    }
}
