//! Tests of programs of the standard ABI on MPICH or Open MPI.
//!
//! These backends pass no context argument to operators and error handlers.
//! The library implements some functions without a backend call.

mod fortran;
mod integers;
mod shrinking;
mod statuses;

use super::by_hand::failure;
use super::*;

pub const FOREIGN: bool = true;

/// Runs the tests that exist only for programs of the standard ABI.
pub fn check() {
    statuses::check();
    shrinking::check();
    integers::check();
    fortran::check();
}

/// The mock of `MPI_Op_create`.
unsafe extern "C-unwind" fn make_operator(
    function: usize,
    commute: c_int,
    op: *mut Below,
) -> c_int {
    arrived();
    keep(0, function);
    note!(commute);
    *op = made(60).1;
    answer()
}

/// Installs a mock that creates operators.
pub fn take_operator() {
    mock!(MPI_Op_create = make_operator);
}

pub fn take_operator_c() {
    mock!(MPI_Op_create_c = make_operator);
}

/// Calls the function of the last created operator, as the backend does.
pub unsafe fn operate<C>(
    input: *mut c_void,
    inout: *mut c_void,
    mut count: C,
    mut datatype: Below,
) {
    let function: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut C, *mut Below) =
        std::mem::transmute(kept(0));
    function(input, inout, &raw mut count, &raw mut datatype);
}

/// The types of objects that have error handlers.
#[derive(Clone, Copy)]
pub enum Of {
    Comm,
    Win,
    File,
    Session,
}

unsafe extern "C-unwind" fn make_handler(function: usize, handler: *mut Below) -> c_int {
    arrived();
    keep(0, function);
    *handler = made(61).1;
    answer()
}

/// Installs a mock that creates error handlers for objects of this type.
pub fn take_handler(of: Of) {
    match of {
        Of::Comm => mock!(MPI_Comm_create_errhandler = make_handler),
        Of::Win => mock!(MPI_Win_create_errhandler = make_handler),
        Of::File => mock!(MPI_File_create_errhandler = make_handler),
        Of::Session => mock!(MPI_Session_create_errhandler = make_handler),
    }
}

/// Calls the last created error handler, as the backend does. `H` is the backend's handle type.
pub unsafe fn handle<H>(object: *mut H, code: *mut c_int) {
    let function: unsafe extern "C-unwind" fn(*mut H, *mut c_int, ...) =
        std::mem::transmute(kept(0));
    function(object, code, 0);
}

/// The common part of the mocks of calls that start a duplication.
/// Stores the new handle if the mock was installed with `at_once` (`kept(2)`, see [`take_duplicates`]);
/// otherwise [`deliver`] stores the handle later.
unsafe fn duplicate(comm: Below, new: *mut Below, request: *mut Below) -> c_int {
    arrived();
    see(0, comm as u64);
    keep(1, new.expose_provenance());
    *request = made(52).1;
    if kept(2) != 0 {
        *new = made(53).1;
    }
    answer()
}

unsafe extern "C-unwind" fn idup(comm: Below, new: *mut Below, request: *mut Below) -> c_int {
    duplicate(comm, new, request)
}

unsafe extern "C-unwind" fn idup_with_info(
    comm: Below,
    info: Below,
    new: *mut Below,
    request: *mut Below,
) -> c_int {
    see(1, info as u64);
    duplicate(comm, new, request)
}

/// Installs a mock that duplicates communicators.
/// The mock stores the new handle during the call if `at_once`, otherwise in [`deliver`].
pub fn take_duplicates(at_once: bool) {
    mock!(MPI_Comm_idup = idup);
    mock!(MPI_Comm_idup_with_info = idup_with_info);
    keep(2, at_once.into());
}

/// Stores the new communicator in the program's variable, as the backend does before completion.
pub unsafe fn deliver(comm: Below) {
    std::ptr::with_exposed_provenance_mut::<Below>(kept(1)).write_volatile(comm);
}
