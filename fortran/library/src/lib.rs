//! `libmpifort_abi.so.1`: the Fortran procedures of MPI, for all compilers, above any library with the standard ABI.
//!
//! Every procedure calls the C function of its name, so a tool that intercepts C functions sees each call once.
//! The bodies are generated from `fortran/api`; what the tables do not describe is in `hand`.

#![deny(unsafe_code)]

#[macro_use]
mod pool;

mod cells;
mod convert;
mod copies;
mod hand;
mod handle;
mod pending;
mod scratch;
mod section;
mod text;

/// The generated part.
// SAFETY of all of it: a Fortran program passes arguments as the interfaces of the modules state; each is used as its kind requires.
#[allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    non_snake_case,
    unused_unsafe
)]
#[allow(unsafe_code)]
pub mod bodies {
    use crate::convert::{self, always_report, length, report};
    use crate::handle::{self, input, output};
    use crate::{cells, copies, hand, pending, section, text};
    use fortran_sections::Descriptor;

    pub type Ptr = *mut std::ffi::c_void;

    include!(concat!(env!("OUT_DIR"), "/bodies.rs"));
}
