//! Reduction operators of the program. The backend passes the program's function as a context.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Kind, OnStandard};
use std::ffi::{c_int, c_void};

type Small<F> =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut <F as Family>::Handle);
type Large<F> =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i64, *mut <F as Family>::Handle);

/// The function that the backend calls. `function` is the program's function with `int` counts.
unsafe extern "C-unwind" fn small<F: OnStandard>(
    function: *mut c_void,
    input: *mut c_void,
    inout: *mut c_void,
    count: i64,
    datatype: usize,
) {
    let mut datatype = F::handle_out(Kind::Datatype, datatype);
    let mut count = c_int::try_from(count).unwrap_or(c_int::MAX);
    // SAFETY: the context is a function of the program with this signature.
    // The backend passes at most `c_int::MAX` elements.
    unsafe {
        let function: Small<F> = std::mem::transmute(function);
        function(input, inout, &mut count, &mut datatype);
    }
}

unsafe extern "C-unwind" fn large<F: OnStandard>(
    function: *mut c_void,
    input: *mut c_void,
    inout: *mut c_void,
    mut count: i64,
    datatype: usize,
) {
    let mut datatype = F::handle_out(Kind::Datatype, datatype);
    // SAFETY: the context is a function of the program with this signature.
    unsafe {
        let function: Large<F> = std::mem::transmute(function);
        function(input, inout, &mut count, &mut datatype);
    }
}

/// Destructor of the context. Has no effect: the context is a function of the program.
pub(super) unsafe extern "C-unwind" fn keep(_: *mut c_void) {}

unsafe fn create<F: OnStandard>(
    call: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, i64, usize),
    most: i64,
    function: usize,
    commute: c_int,
    op: *mut F::Handle,
) -> c_int {
    let mut made = Kind::Op.null();
    let place = if op.is_null() {
        std::ptr::null_mut()
    } else {
        &raw mut made
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let function = function as *mut c_void;
        let code = (backend::make_operator())(call, most, function, keep, commute, place);
        if !op.is_null() {
            op.write(F::handle_out(Kind::Op, made));
        }
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Op_create<F: OnStandard>(
    function: usize,
    commute: c_int,
    op: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F>(small::<F>, c_int::MAX.into(), function, commute, op) }
}

pub unsafe fn MPI_Op_create_c<F: OnStandard>(
    function: usize,
    commute: c_int,
    op: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F>(large::<F>, i64::MAX, function, commute, op) }
}
