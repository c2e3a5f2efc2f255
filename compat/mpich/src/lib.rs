//! `libmpi.so.12`: programs that were compiled against MPICH, Intel MPI or another derivative of MPICH, on `libmpi_abi.so.1`.
//!
//! Debian calls the same library `libmpich.so.12`, which is a link to this one.
//! The exports are generated from the tables (`entries`), or are functions that the standard has removed (`removed`), and MPICH's
//! exports beyond the standard (`extras`, `extensions`, and `internals` for its Fortran library).
#![deny(unsafe_code)]

mod entries;
mod extensions;
mod extras;
mod family;
mod internals;
#[cfg(test)]
mod mock;

pub use entries::*;
pub use extensions::*;
pub use extras::*;
pub use family::Mpich;
pub use internals::*;
pub use removed::*;

/// The Fortran types and functions of MPI-1 that later versions removed.
#[path = "../../shared/removed.rs"]
mod removed;

/// Opens the backend when the program's loader starts this library.
extern "C" fn start() {
    compat::backend::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each function of this section once, before any that depends on this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
