//! What programs of the standard have on another library: operators and error handlers have no context below, and some
//! functions are answered without that library.

mod fortran;
mod integers;
mod shrinking;
mod statuses;

use super::by_hand::failure;
use super::*;

pub const FOREIGN: bool = true;

/// Checks the functions that only programs of the standard have.
pub fn check() {
    statuses::check();
    shrinking::check();
    integers::check();
    fortran::check();
}

/// The library below is given a function and makes an operator.
unsafe extern "C" fn make_operator(function: usize, commute: c_int, op: *mut Below) -> c_int {
    arrived();
    keep(0, function);
    note!(commute);
    *op = made(60).1;
    answer()
}

/// Lets it make operators.
pub fn take_operator() {
    mock!(MPI_Op_create = make_operator);
}

pub fn take_operator_c() {
    mock!(MPI_Op_create_c = make_operator);
}

/// Calls the operator that it made last.
pub unsafe fn operate<C>(
    input: *mut c_void,
    inout: *mut c_void,
    mut count: C,
    mut datatype: Below,
) {
    let function: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut C, *mut Below) =
        std::mem::transmute(kept(0));
    function(input, inout, &raw mut count, &raw mut datatype);
}

/// The kinds of objects with handlers.
#[derive(Clone, Copy)]
pub enum Of {
    Comm,
    Win,
    File,
    Session,
}

unsafe extern "C" fn make_handler(function: usize, handler: *mut Below) -> c_int {
    arrived();
    keep(0, function);
    *handler = made(61).1;
    answer()
}

/// Lets it make handlers of such objects.
pub fn take_handler(of: Of) {
    match of {
        Of::Comm => mock!(MPI_Comm_create_errhandler = make_handler),
        Of::Win => mock!(MPI_Win_create_errhandler = make_handler),
        Of::File => mock!(MPI_File_create_errhandler = make_handler),
        Of::Session => mock!(MPI_Session_create_errhandler = make_handler),
    }
}

/// Calls the handler that it made last; a file is a word of another size than the other handles.
pub unsafe fn handle<H>(object: *mut H, code: *mut c_int) {
    let function: unsafe extern "C" fn(*mut H, *mut c_int, ...) = std::mem::transmute(kept(0));
    function(object, code, 0);
}

/// Writes the communicator now or later, where the program said.
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

unsafe extern "C" fn idup(comm: Below, new: *mut Below, request: *mut Below) -> c_int {
    duplicate(comm, new, request)
}

unsafe extern "C" fn idup_with_info(
    comm: Below,
    info: Below,
    new: *mut Below,
    request: *mut Below,
) -> c_int {
    see(1, info as u64);
    duplicate(comm, new, request)
}

/// Lets it duplicate communicators, which are there during the call or later.
pub fn take_duplicates(at_once: bool) {
    mock!(MPI_Comm_idup = idup);
    mock!(MPI_Comm_idup_with_info = idup_with_info);
    keep(2, at_once.into());
}

/// The communicator is there.
pub unsafe fn deliver(comm: Below) {
    std::ptr::with_exposed_provenance_mut::<Below>(kept(1)).write_volatile(comm);
}
