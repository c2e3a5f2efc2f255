//! `libmpi_abi.so.1` on Open MPI: programs of the standard ABI with Open MPI as the backend.
//!
//! It is installed in a separate directory, which `mpirun --on` or `LD_LIBRARY_PATH` puts before that of our own library.
#![deny(unsafe_code)]

mod entries;
mod family;
#[cfg(test)]
mod mock;

pub use entries::*;
pub use family::OnOpenMpi;

/// Opens the backend when the program's loader starts this library.
extern "C" fn start() {
    compat::foreign_below::open::<OnOpenMpi>();
}

// SAFETY: the loader calls each function of this section once, before any that depends on this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
