//! Errors raised by this library: calls of error handlers, and messages about refused calls.

use super::Foreign;
use super::fortran::class_below;
use super::interposed::world;
use super::standard::MPI_COMM_SELF;
use crate::backend;
use crate::family::Kind;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raises an error class of the standard on a communicator. Returns the backend's error code.
///
/// # Safety
/// MPI is initialized and not finalized, and `comm` is a communicator of the backend.
pub unsafe fn fail<F: Foreign>(comm: F::Below, class: c_int) -> c_int {
    let code = class_below::<F>(class);
    // SAFETY: `comm` is a valid communicator of the backend, by contract.
    unsafe { (backend::MPI_Comm_call_errhandler::<F>())(comm, code) };
    code
}

/// Raises an error class on `MPI_COMM_SELF`, for calls without a communicator. See [`fail`].
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn fail_at_self<F: Foreign>(class: c_int) -> c_int {
    // SAFETY: MPI is initialized by the contract. `MPI_COMM_SELF` is always valid.
    unsafe { fail::<F>(F::handle_in(Kind::Comm, MPI_COMM_SELF), class) }
}

/// For each slot, true if a refusal of that function has been printed.
static REPORTED: [AtomicBool; backend::NAMES.len()] =
    [const { AtomicBool::new(false) }; backend::NAMES.len()];

/// Refuses a call: prints `what` once per function, and returns the backend's error code.
/// In initialized MPI, raises the error on `MPI_COMM_SELF`, except in tool functions (`MPI_T_`).
pub unsafe fn refuse<F: Foreign>(id: usize, class: c_int, what: &str) -> c_int {
    let comm = F::handle_in(Kind::Comm, MPI_COMM_SELF);
    // SAFETY: `MPI_COMM_SELF` is always valid.
    unsafe { refuse_on::<F>(comm, id, class, what) }
}

/// Refuses a call as [`refuse`] does, but raises the error on `comm`.
///
/// # Safety
/// `comm` is a communicator of the backend.
pub unsafe fn refuse_on<F: Foreign>(comm: F::Below, id: usize, class: c_int, what: &str) -> c_int {
    let name = backend::NAMES
        .get(id)
        .map_or(c"", |name| *name)
        .to_string_lossy();
    let name = name.trim_start_matches('P');
    if REPORTED
        .get(id)
        .is_some_and(|reported| !reported.swap(true, Ordering::Relaxed))
    {
        printable::eprintln!("portcullis: {name}: {what}");
    }
    if world::is_running::<F>() && !name.starts_with("MPI_T_") {
        // SAFETY: MPI is initialized and not finalized, which was checked above.
        // `comm` is a communicator of the backend, by contract.
        return unsafe { fail::<F>(comm, class) };
    }
    class_below::<F>(class)
}
