//! Error handlers of the program. The backend passes the program's function as a context argument.
#![allow(unsafe_code)]

use super::operators::keep;
use crate::backend;
use crate::convert::code_out;
use crate::family::{Kind, OnStandard, Word};
use std::ffi::{c_int, c_void};

/// The types of objects, as numbered for `portcullis_make_error_handler`.
const COMM: u8 = 0;
const WIN: u8 = 1;
const FILE: u8 = 2;
const SESSION: u8 = 3;

type Handler<H> = unsafe extern "C-unwind" fn(*mut H, *mut c_int, ...);

/// The error handler that the backend calls. `function` is the program's handler (variadic).
/// A code that the program's handler changes is returned to the backend.
unsafe extern "C-unwind" fn handle<F: OnStandard, const OF: u8>(
    function: *mut c_void,
    object: usize,
    code: *mut c_int,
) {
    // SAFETY: the context is a function of the program with this signature.
    // `code` points to a local variable of the backend.
    unsafe {
        let mut theirs = F::word_out(Word::Error, code.read());
        let before = theirs;
        if OF == FILE {
            let mut file = F::file_out(object);
            let function: Handler<usize> = std::mem::transmute(function);
            function(&mut file, &mut theirs);
        } else {
            let kind = match OF {
                COMM => Kind::Comm,
                WIN => Kind::Win,
                _ => Kind::Session,
            };
            let mut object = F::handle_out(kind, object);
            let function: Handler<F::Handle> = std::mem::transmute(function);
            function(&mut object, &mut theirs);
        }
        if theirs != before {
            code.write(F::word_in(Word::Error, theirs));
        }
    }
}

unsafe fn create<F: OnStandard, const OF: u8>(function: usize, handler: *mut F::Handle) -> c_int {
    let mut made = Kind::Errhandler.null();
    let place = if handler.is_null() {
        std::ptr::null_mut()
    } else {
        &raw mut made
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let function = function as *mut c_void;
        let code = (backend::make_handler())(OF.into(), handle::<F, OF>, function, keep, place);
        if !handler.is_null() {
            handler.write(F::handle_out(Kind::Errhandler, made));
        }
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Comm_create_errhandler<F: OnStandard>(
    function: usize,
    handler: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F, COMM>(function, handler) }
}

pub unsafe fn MPI_Win_create_errhandler<F: OnStandard>(
    function: usize,
    handler: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F, WIN>(function, handler) }
}

pub unsafe fn MPI_File_create_errhandler<F: OnStandard>(
    function: usize,
    handler: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F, FILE>(function, handler) }
}

pub unsafe fn MPI_Session_create_errhandler<F: OnStandard>(
    function: usize,
    handler: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { create::<F, SESSION>(function, handler) }
}
