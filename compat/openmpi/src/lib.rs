//! `libmpi.so.40`: programs that were compiled against Open MPI 4 or 5, on `libmpi_abi.so.1`.
//!
//! The exports are generated from the tables (`entries`, and the objects behind predefined handles in `family`), or are functions that the
//! standard has removed (`removed`), Open MPI's exports beyond the standard (`extras`), and the symbols
//! that its Fortran and C++ libraries need (`internals`).
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

/// Opens the backend when the program's loader starts this library.
extern "C" fn start() {
    objects::look_for_fortran();
    compat::backend::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each function of this section once, before any that depends on this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
