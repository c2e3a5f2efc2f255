//! Access to fields of the program's statuses, without a call of the backend.

use super::Foreign;
use super::standard::class;
use crate::family::StandardStatus;
use std::ffi::c_int;

macro_rules! field {
    ($get:ident<F: Foreign>, $set:ident<F: Foreign>, $field:ident) => {
        pub unsafe fn $get<F: Foreign>(status: *const StandardStatus, value: *mut c_int) -> c_int {
            if status.is_null() || value.is_null() {
                return class::ARG;
            }
            // SAFETY: the program passes a valid status and output, which are not null.
            unsafe { value.write((*status).$field) };
            0
        }

        pub unsafe fn $set<F: Foreign>(status: *mut StandardStatus, value: c_int) -> c_int {
            if status.is_null() {
                return class::ARG;
            }
            // SAFETY: the status is the program's, valid by the standard and not null.
            unsafe { (*status).$field = value };
            0
        }
    };
}

field!(MPI_Status_get_source<F: Foreign>, MPI_Status_set_source<F: Foreign>, source);
field!(MPI_Status_get_tag<F: Foreign>, MPI_Status_set_tag<F: Foreign>, tag);
field!(MPI_Status_get_error<F: Foreign>, MPI_Status_set_error<F: Foreign>, error);

/// Returns version 5.0 of the standard: together with the fallbacks, all its functions exist.
pub unsafe fn MPI_Get_version<F: Foreign>(version: *mut c_int, subversion: *mut c_int) -> c_int {
    if version.is_null() || subversion.is_null() {
        return class::ARG;
    }
    // SAFETY: these are output arguments of the program, valid by the standard and not null.
    unsafe {
        version.write(5);
        subversion.write(0);
    }
    0
}

pub unsafe fn MPI_Aint_add<F: Foreign>(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

pub unsafe fn MPI_Aint_diff<F: Foreign>(to: isize, from: isize) -> isize {
    to.wrapping_sub(from)
}
