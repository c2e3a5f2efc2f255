//! `libmpi_abi.so.1` over Open MPI, for programs of the standard ABI.
//!
//! The library's directory is first in `LD_LIBRARY_PATH`, set by `mpirun --on` or the user.
#![deny(unsafe_code)]

mod entries;
mod family;
#[cfg(test)]
mod mock;

pub use entries::*;
pub use family::OnOpenMpi;

/// Opens the backend. The loader calls this function when it starts this library.
extern "C" fn start() {
    compat::foreign_below::open::<OnOpenMpi>();
}

// SAFETY: the loader calls each entry of this section once, before code that uses this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
