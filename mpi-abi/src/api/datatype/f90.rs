//! Datatypes for parameterized Fortran kinds (section 19.1.9).

use crate::abi::*;
use crate::api::args::{IntoI64, Out};
use crate::error::Outcome;
use crate::registry::datatype::kind_handle;
use mpi_core::datatype::{self, Datatype, TypeError};
use std::ffi::c_int;

/// Stores the handle of the datatype of a Fortran kind.
fn kind(made: Result<Datatype, TypeError>, newtype: Out<MPI_Datatype>) -> Outcome {
    newtype.set(kind_handle(&made?)?, "newtype")
}

pub fn MPI_Type_create_f90_real(p: c_int, r: c_int, newtype: Out<MPI_Datatype>) -> Outcome {
    kind(datatype::f90::real(p.wide(), r.wide()), newtype)
}

pub fn MPI_Type_create_f90_complex(p: c_int, r: c_int, newtype: Out<MPI_Datatype>) -> Outcome {
    kind(datatype::f90::complex(p.wide(), r.wide()), newtype)
}

pub fn MPI_Type_create_f90_integer(r: c_int, newtype: Out<MPI_Datatype>) -> Outcome {
    kind(datatype::f90::integer(r.wide()), newtype)
}
