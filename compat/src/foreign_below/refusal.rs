//! Refused calls: the sentence for the user, once per function, and the error for the program.

use super::Foreign;
use super::fortran::class_below;
use super::own::{fail, world};
use super::standard::MPI_COMM_SELF;
use crate::below;
use crate::family::Kind;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the refusal of each function has been reported.
static SAID: [AtomicBool; below::NAMES.len()] =
    [const { AtomicBool::new(false) }; below::NAMES.len()];

/// Reports once per function what is refused, and calls the error handler of `MPI_COMM_SELF` while MPI is initialized, except for tool functions.
pub unsafe fn refuse<F: Foreign>(id: usize, class: c_int, what: &str) -> c_int {
    let comm = F::handle_in(Kind::Comm, MPI_COMM_SELF);
    // SAFETY: `MPI_COMM_SELF` is always valid.
    unsafe { refuse_on::<F>(comm, id, class, what) }
}

/// Like [`refuse`], with the error handler of a communicator.
///
/// # Safety
/// `comm` is a communicator of the backend.
pub unsafe fn refuse_on<F: Foreign>(comm: F::Below, id: usize, class: c_int, what: &str) -> c_int {
    let name = below::NAMES
        .get(id)
        .map_or(c"", |name| *name)
        .to_string_lossy();
    let name = name.trim_start_matches('P');
    if SAID
        .get(id)
        .is_some_and(|said| !said.swap(true, Ordering::Relaxed))
    {
        printable::eprintln!("portcullis: {name}: {what}");
    }
    if world::is_running::<F>() && !name.starts_with("MPI_T_") {
        // SAFETY: MPI is initialized and not finalized (checked above), and `comm` is a communicator of the backend (contract of this function).
        return unsafe { fail::<F>(comm, class) };
    }
    class_below::<F>(class)
}
