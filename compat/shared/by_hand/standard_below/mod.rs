//! Tests of programs compiled against MPICH or Open MPI on `libmpi_abi.so.1`.
//!
//! This backend passes a context argument to operators and error handlers.

use super::*;
use compat::backend::{
    DUPLICATE, Duplicate, MAKE_HANDLER, MAKE_OPERATOR, MakeHandler, MakeOperator,
};
use std::sync::atomic::{AtomicPtr, Ordering};

pub const FOREIGN: bool = false;

/// Does nothing: no test exists only for programs compiled against MPICH or Open MPI.
pub fn check() {}

type Operate = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, i64, usize);
type Free = unsafe extern "C-unwind" fn(*mut c_void);

/// The index at which `see` records the maximum number of elements per operator call.
const MOST: usize = 50;

unsafe extern "C-unwind" fn make_operator(
    function: Operate,
    most: i64,
    context: *mut c_void,
    free: Free,
    commute: c_int,
    op: *mut usize,
) -> c_int {
    arrived();
    see(MOST, most as u64);
    keep(0, function as usize);
    keep(1, context.expose_provenance());
    keep(2, free as usize);
    note!(commute);
    *op = made(60).1;
    answer()
}

/// Starts a check with a mock of an extension, whose slot is not in the table of MPI functions.
fn begin_with(slot: &AtomicPtr<c_void>, mock: *mut c_void) {
    forget();
    slot.store(mock, Ordering::Relaxed);
}

fn context() -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(kept(1))
}

/// Installs a mock that creates operators.
pub fn take_operator() {
    let mock: MakeOperator = make_operator;
    begin_with(&MAKE_OPERATOR, mock as *mut c_void);
}

pub fn take_operator_c() {
    take_operator();
}

/// Calls the function of the last created operator, as the backend does.
pub unsafe fn operate<C: Into<i64>>(
    input: *mut c_void,
    inout: *mut c_void,
    count: C,
    datatype: usize,
) {
    let most = if size_of::<C>() == 4 {
        i64::from(c_int::MAX)
    } else {
        i64::MAX
    };
    assert_eq!(
        seen(MOST),
        most as u64,
        "the most elements of an operator's call"
    );
    let function: Operate = std::mem::transmute(kept(0));
    function(context(), input, inout, count.into(), datatype);
}

/// The types of objects that have error handlers, as numbered for `portcullis_make_error_handler`.
#[derive(Clone, Copy)]
pub enum Of {
    Comm,
    Win,
    File,
    Session,
}

type Handler = unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int);

unsafe extern "C-unwind" fn make_handler(
    of: c_int,
    function: Handler,
    context: *mut c_void,
    free: Free,
    handler: *mut usize,
) -> c_int {
    if of as usize == kept(3) {
        arrived();
    }
    keep(0, function as usize);
    keep(1, context.expose_provenance());
    *handler = made(61).1;
    answer()
}

/// Installs a mock that creates error handlers for objects of this type.
pub fn take_handler(of: Of) {
    let mock: MakeHandler = make_handler;
    begin_with(&MAKE_HANDLER, mock as *mut c_void);
    keep(3, of as usize);
}

/// Calls the last created error handler, as the backend does.
pub unsafe fn handle(object: *mut usize, code: *mut c_int) {
    let function: Handler = std::mem::transmute(kept(0));
    function(context(), *object, code);
}

type Deliver = unsafe extern "C-unwind" fn(*mut c_void, usize);

unsafe extern "C-unwind" fn duplicate(
    comm: usize,
    info: usize,
    deliver: Deliver,
    place: *mut c_void,
    request: *mut usize,
) -> c_int {
    arrived();
    see(0, comm as u64);
    see(1, info as u64);
    keep(0, deliver as usize);
    keep(1, place.expose_provenance());
    *request = made(52).1;
    if kept(2) != 0 {
        deliver(place, made(53).1);
    }
    answer()
}

/// Installs a mock that duplicates communicators.
/// The mock passes on the new handle during the call if `at_once`, otherwise in [`deliver`].
pub fn take_duplicates(at_once: bool) {
    let mock: Duplicate = duplicate;
    begin_with(&DUPLICATE, mock as *mut c_void);
    keep(2, at_once.into());
}

/// Passes the new communicator to the library's callback, as the backend does before completion.
pub unsafe fn deliver(comm: usize) {
    let function: Deliver = std::mem::transmute(kept(0));
    function(context(), comm);
}
