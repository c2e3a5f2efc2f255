//! Datatypes for Fortran kinds (section 19.1.9).

use crate::abi::*;
use crate::api::args::{IntoI64, out};
use crate::error::Outcome;
use crate::registry::datatype::kind_handle;
use mpi_core::datatype::{Datatype, TypeError};
use std::ffi::c_int;

/// Returns the handle of a type of a Fortran kind.
///
/// # Safety
/// `newtype` is an output argument of the caller.
unsafe fn kind(made: Result<Datatype, TypeError>, newtype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: `newtype` is null or writable: `# Safety` of this function.
    unsafe { out(newtype, kind_handle(&made?)?, "newtype") }
}

pub unsafe fn MPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_f90_real requires of its caller.
    unsafe { kind(Datatype::f90_real(p.wide(), r.wide()), newtype) }
}

pub unsafe fn MPI_Type_create_f90_complex(
    p: c_int,
    r: c_int,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_f90_complex requires of its caller.
    unsafe { kind(Datatype::f90_complex(p.wide(), r.wide()), newtype) }
}

pub unsafe fn MPI_Type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_f90_integer requires of its caller.
    unsafe { kind(Datatype::f90_integer(r.wide()), newtype) }
}
