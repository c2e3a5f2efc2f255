//! `libmpi.so.12`: runs programs compiled against MPICH (or Intel MPI etc.) on `libmpi_abi.so.1`.
//!
//! Debian's name for the library, `libmpich.so.12`, is a symbolic link to the library.
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

/// Functions of MPI-1 that MPI-3 removed.
#[path = "../../shared/removed.rs"]
mod removed;

/// Opens the backend. The loader calls this function when it starts this library.
extern "C" fn start() {
    compat::backend::open(start as *const std::ffi::c_void);
}

// SAFETY: the loader calls each entry of this section once, before code that uses this library.
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
