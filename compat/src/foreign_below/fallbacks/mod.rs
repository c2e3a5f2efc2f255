//! Fallbacks: they replace missing functions of the backend by calls of its other functions.
//!
//! A fallback is stored in the slot of the missing function, with the same argument types.
//! So the exported functions call it like a function of the backend.
//! `compat/generate/src/fallbacks.rs` generates those for large counts and persistent collectives.
//! All other fallbacks are written by hand.
// The build generates functions with the standard's names.
// The generated functions are all generic, even if they call no backend function.
#![allow(
    // The oldest supported clippy knows the next lint by an older name.
    renamed_and_removed_lints,
    clippy::needless_if,
    clippy::collapsible_if,
    clippy::extra_unused_type_parameters
)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::useless_conversion,
    clippy::cast_lossless
)]

mod buffers;
mod datatypes;
mod events;
mod infos;
mod others;
mod pairs;
mod partitioned;
mod persistent;
mod queries;
mod requests;
mod sessions;

use super::Foreign;
use super::emulated_requests::{self, partitioned as partitioned_requests};
use super::interposed;
use super::kept_buffers::{Life, keep};
use super::large_counts::{Fit, Narrow};
use super::refusal::refuse;
use super::standard::class;
use crate::backend::{self, slot};
use crate::blocks;
use crate::family::IN_PLACE;
use buffers::*;
use datatypes::*;
use events::*;
use infos::*;
use others::*;
use pairs::*;
use partitioned::*;
use persistent::{Given, persist};
use queries::*;
use requests::*;
use sessions::*;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

include!(concat!(env!("OUT_DIR"), "/fallbacks.rs"));

/// Interposes functions that must support emulated objects.
/// `lacking` lists the slots whose function the backend lacks.
pub fn prepare<F: Foreign>(lacking: &[usize]) {
    emulated_requests::buffers::narrow_with(narrow_buffered_sends::<F>);
    if lacking.contains(&slot::MPI_Session_init) {
        interposed::world::prepare::<F>();
    }
    if lacking.contains(&slot::MPI_Psend_init) {
        partitioned_requests::prepare::<F>();
    }
    let removes = !lacking.contains(&slot::MPI_Remove_error_class);
    interposed::codes::prepare::<F>(removes);
    interposed::ports::prepare::<F>();
    if lacking.contains(&slot::MPI_Comm_attach_buffer) {
        emulated_requests::buffers::prepare::<F>();
        interposed::newer::prepare::<F>(!lacking.contains(&slot::MPI_Session_init));
    }
}

/// Reports that the function is missing. Used if neither the backend nor a fallback provides it.
unsafe extern "C-unwind" fn missing<F: Foreign, const ID: usize>() -> c_int {
    let what = format!("the {} below has no such function", F::NAME);
    // SAFETY: `refuse` itself checks whether MPI is initialized.
    unsafe { refuse::<F>(ID, class::UNSUPPORTED_OPERATION, &what) }
}

/// Reports a count that exceeds `int`, in a function that the backend has with `int` counts only.
unsafe fn too_large<F: Foreign>(id: usize) -> c_int {
    let what = format!(
        "the {} below has it only for numbers up to 2147483647, and one is larger",
        F::NAME
    );
    // SAFETY: `refuse` itself checks whether MPI is initialized.
    unsafe { refuse::<F>(id, class::COUNT, &what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests which large-count functions have no fallback: only `MPI_Register_datarep_c`.
    #[test]
    fn few_functions_of_later_versions_have_nothing_that_stands_in() {
        let later: Vec<&str> = LACKING
            .into_iter()
            .filter(|name| name.contains("_c") && name.ends_with("_c"))
            .collect();
        assert_eq!(later, ["MPI_Register_datarep_c"]);
        assert!(NARROWED.len() > 140, "{}", NARROWED.len());
    }
}
