//! Tests of programs of the standard ABI on another library.
//!
//! In the backend, operators and error handlers have no context argument.
//! Some functions do not call the backend.

mod fortran;
mod integers;
mod shrinking;
mod statuses;

use super::by_hand::failure;
use super::*;

pub const FOREIGN: bool = true;

/// Runs the tests that exist only in this direction.
pub fn check() {
    statuses::check();
    shrinking::check();
    integers::check();
    fortran::check();
}

/// The mock that creates an operator from a function.
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

/// Calls the last created operator.
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

/// The object kinds with error handlers.
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

/// Installs a mock that creates error handlers for an object kind.
pub fn take_handler(of: Of) {
    match of {
        Of::Comm => mock!(MPI_Comm_create_errhandler = make_handler),
        Of::Win => mock!(MPI_Win_create_errhandler = make_handler),
        Of::File => mock!(MPI_File_create_errhandler = make_handler),
        Of::Session => mock!(MPI_Session_create_errhandler = make_handler),
    }
}

/// Calls the last created error handler. A file handle may have another size than other handles.
pub unsafe fn handle<H>(object: *mut H, code: *mut c_int) {
    let function: unsafe extern "C-unwind" fn(*mut H, *mut c_int, ...) =
        std::mem::transmute(kept(0));
    function(object, code, 0);
}

/// Writes the communicator to the program's variable, during the call or later.
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

/// Installs a mock that duplicates communicators, and delivers the handle during the call or later.
pub fn take_duplicates(at_once: bool) {
    mock!(MPI_Comm_idup = idup);
    mock!(MPI_Comm_idup_with_info = idup_with_info);
    keep(2, at_once.into());
}

/// Delivers the communicator to the program's variable.
pub unsafe fn deliver(comm: Below) {
    std::ptr::with_exposed_provenance_mut::<Below>(kept(1)).write_volatile(comm);
}
