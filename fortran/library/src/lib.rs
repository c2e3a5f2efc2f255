//! `libmpifort_abi.so.1`: the Fortran procedures of MPI, for all compilers and ABI libraries.
//!
//! Each procedure calls the C function of the same name, so tools that intercept C functions work.
//! The bodies are generated from `fortran/api`; handwritten ones are in `hand`.

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

/// The generated bodies and exported symbols.
// SAFETY: arguments have the types of the procedure's interface in the modules and in the standard.
// The modules are generated from the same table (`fortran/api/procedures.txt`) as the bodies.
// A body uses each argument by its kind: it reads or writes INTEGERs, converts handles, uses arrays
// up to the length in another argument, and only passes buffers on.
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
