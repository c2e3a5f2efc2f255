//! Conversions of statuses; the memory layout is the same in C and in both Fortran forms.
#![allow(unsafe_code)]
// The generated bodies have the type parameter `C` for every procedure.
#![allow(clippy::extra_unused_type_parameters)]

use crate::bodies::{Calls, Ptr};
use fortran_sections::Descriptor;

/// The number of INTEGERs in a status.
const SIZE: usize = 8;
const SUCCESS: i32 = 0;
const ERR_ARG: i32 = 13;

/// Copies a status. Fails if a pointer is null or `from` is an ignored status.
///
/// # Safety
/// `from` and `to` are null, sentinels, or point to a status.
unsafe fn copied(from: *const i32, to: *mut i32) -> i32 {
    if from.is_null() || to.is_null() || crate::cells::is_ignored(from) {
        return ERR_ARG;
    }
    // SAFETY: both pointers are not null and `from` is no sentinel, so they point to statuses.
    unsafe { std::ptr::copy(from, to, SIZE) };
    SUCCESS
}

pub unsafe fn status_f2f08<C: Calls>(from: *mut i32, to: *mut i32) -> i32 {
    // SAFETY: `from` and `to` are statuses in Fortran's interface, or sentinels.
    unsafe { copied(from, to) }
}

pub unsafe fn status_f082f<C: Calls>(from: *mut i32, to: *mut i32) -> i32 {
    // SAFETY: `from` and `to` are statuses in Fortran's interface, or sentinels.
    unsafe { copied(from, to) }
}

/// Defines the status conversion functions that C programs call.
macro_rules! conversions {
    ($($name:ident)*) => {
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(from: *const i32, to: *mut i32) -> i32 {
                // SAFETY: a C program passes pointers to statuses; `MPI_STATUS_IGNORE` is null.
                unsafe { copied(from, to) }
            }
        )*
    };
}

conversions! {
    MPI_Status_f2c MPI_Status_c2f MPI_Status_f082c MPI_Status_c2f08 MPI_Status_f2f08 MPI_Status_f082f
    PMPI_Status_f2c PMPI_Status_c2f PMPI_Status_f082c PMPI_Status_c2f08 PMPI_Status_f2f08 PMPI_Status_f082f
}

/// MPI_SIZEOF: returns the element size from the descriptor.
///
/// # Safety
/// `x` is a compiler's descriptor, `size` an INTEGER, and `ierror` an INTEGER or absent.
unsafe fn size_of(x: *const Descriptor, size: *mut i32, ierror: *mut i32) {
    // SAFETY: all pointers are valid by this function's contract.
    unsafe {
        *size = (*x).element_size() as i32;
        crate::convert::report(ierror, SUCCESS);
    }
}

macro_rules! sizes {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(x: *const Descriptor, size: *mut i32, ierror: *mut i32) {
                // SAFETY: compilers pass the arguments of MPI_SIZEOF's interface in the modules.
                unsafe { size_of(x, size, ierror) }
            }
        )*
    };
}

sizes! { mpi_sizeof_f08ts_ pmpi_sizeof_f08ts_ }

/// MPI_F_SYNC_REG: an empty procedure; the compiler must assume that it changes its argument.
macro_rules! nothing {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(_: Ptr) {}
        )*
    };
}

nothing! { mpi_f_sync_reg_ pmpi_f_sync_reg_ mpi_f_sync_reg_f08ts_ pmpi_f_sync_reg_f08ts_ }
