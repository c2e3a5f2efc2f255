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
// SAFETY of all of it: the arguments of a procedure are variables of the types that its interface has in the modules and in the standard. The generator
// reads the same table (`fortran/api/procedures.txt`) as the modules are generated from, and uses each argument by its kind there: an INTEGER is read or
// written, a handle converted, an array accessed up to the length that another argument states, a buffer only passed on.
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
