//! `libmpi.so.40`: runs programs compiled against Open MPI 4 and 5 on `libmpi_abi.so.1`.
//!
//! `entries` has the exports generated from the tables, `family` the objects of predefined handles.
//! `removed` has functions that the standard has removed.
//! `extras` has Open MPI's exports beyond the standard.
//! `internals` has symbols that Open MPI's Fortran and C++ libraries need.
#![deny(unsafe_code)]

mod entries;
mod extras;
mod family;
mod internals;
#[cfg(test)]
mod mock;
mod objects;

pub use entries::*;
pub use extras::*;
pub use family::{OpenMpi, OpenMpiStatus};
pub use removed::*;

#[path = "../../shared/removed.rs"]
mod removed;

/// Opens the backend. The loader calls this function when it starts this library.
extern "C" fn start() {
    objects::look_for_fortran();
    compat::backend::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each entry of this section once, before code that uses this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
