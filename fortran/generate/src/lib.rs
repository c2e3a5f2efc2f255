//! The generator of the Fortran binding, from the standard's tables in `fortran/api`.
#![forbid(unsafe_code)]

pub mod bodies;
mod buffers;
mod c_functions;
pub mod cells;
mod conversions;
pub mod kinds;
mod lines;
pub mod module_f08;
pub mod module_mpi;
pub mod mpif;
pub mod removed;
mod requests;
mod shells;
pub mod signatures;
mod statements;
pub mod table;
pub mod values;

/// Returns the generated files that are checked in: path in `fortran/`, and text.
pub fn files(tables: &table::Tables) -> Vec<(&'static str, String)> {
    vec![
        ("include/mpif.h", mpif::text(tables)),
        ("modules/mpi.f90", module_mpi::text(tables)),
        ("modules/mpi_f08.f90", module_f08::text(tables)),
    ]
}
