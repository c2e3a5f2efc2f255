//! `libmpi.so.12`: runs programs compiled against MPICH (or Intel MPI etc.) on `libmpi_abi.so.1`.
//!
//! Debian's name for the library, `libmpich.so.12`, is a link to this file.
//! `entries` has the exports generated from the tables.
//! `removed` has functions that the standard has removed.
//! `extras`, `extensions` and `internals` (for the Fortran library) have MPICH's own exports.
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

/// The initializer, which opens the backend when the loader starts this library.
extern "C" fn start() {
    compat::backend::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each entry of this section once, before code that uses this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
