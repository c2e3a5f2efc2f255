//! `libmpi.so.40`: programs that were compiled against Open MPI 4 or 5, on `libmpi_abi.so.1`.
//!
//! What is exported comes from the tables (`entries`, and the objects behind predefined handles in `family`), from what the
//! standard has removed (`removed`), and from what Open MPI has beside the standard (`extras`, and `internals`, the symbols
//! that its Fortran and C++ libraries ask for).
#![deny(unsafe_code)]

mod entries;
mod extras;
mod family;
mod internals;
#[cfg(test)]
mod mock;

pub use entries::*;
pub use extras::*;
pub use family::{OpenMpi, OpenMpiStatus};
pub use removed::*;

#[path = "../../shared/removed.rs"]
mod removed;

/// Opens the library below when the program's loader starts this one.
extern "C" fn start() {
    compat::below::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each function of this section once, before any that depends on this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
