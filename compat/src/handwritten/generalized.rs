//! Generalized requests and data representations: callbacks of the program with an extra state.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::{HandleOut, code_out, load, of, status_to_program};
use crate::family::{Family, Kind, Word};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

type Query<F> = unsafe extern "C-unwind" fn(*mut c_void, *mut <F as Family>::Status) -> c_int;
type Free = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
type Cancel = unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int;

/// A Fortran callback of two or three arguments, as MPICH and Open MPI call it.
/// The arguments are the addresses of the extra state, the status or flag, and the error code.
/// A free callback (`MPI_Grequest_free_function`) has no status or flag.
type OfTwo = unsafe extern "C-unwind" fn(*mut c_void, *mut c_int);
type OfThree = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int);

/// The program's callbacks and extra state of a generalized request. Freed with the request.
struct Request {
    query: usize,
    free: usize,
    cancel: usize,
    extra_state: *mut c_void,
    /// True if the callbacks are in Fortran, as set by `last_is_in_fortran`.
    in_fortran: AtomicBool,
    /// The byte in which Open MPI's Fortran library stores 0 if the callbacks are in Fortran.
    /// The Fortran library stores the 0 after `MPI_Grequest_start`.
    language: Option<&'static AtomicU8>,
}

thread_local! {
    /// The last request that this thread has created, until [`last_is_in_fortran`] is called.
    static LAST: Cell<Option<NonNull<Request>>> = const { Cell::new(None) };
}

/// Records that the last request created by this thread has Fortran callbacks.
///
/// # Safety
/// The calling thread has just returned from a successful `MPI_Grequest_start`.
/// So the request has not been freed.
pub unsafe fn last_is_in_fortran() {
    if let Some(request) = LAST.take() {
        // SAFETY: the request has not been freed, by contract.
        unsafe { request.as_ref() }
            .in_fortran
            .store(true, Ordering::Relaxed);
    }
}

impl Request {
    /// Calls a Fortran callback. Returns the callback's error code.
    /// `second` is the address of the status or flag, or null for the free callback.
    ///
    /// # Safety
    /// The callback was passed to the Fortran `MPI_Grequest_start`, and has these arguments.
    unsafe fn call_fortran(&self, function: usize, second: *mut c_void) -> c_int {
        let mut code = 0;
        // SAFETY: the callback has these arguments, by contract.
        // The code is a local variable.
        unsafe {
            if second.is_null() {
                let function: OfTwo = std::mem::transmute(function);
                function(self.extra_state, &raw mut code);
            } else {
                let function: OfThree = std::mem::transmute(function);
                function(self.extra_state, second, &raw mut code);
            }
        }
        code
    }

    fn is_in_fortran(&self) -> bool {
        let is_0 = |byte: &AtomicU8| byte.load(Ordering::Relaxed) == 0;
        self.in_fortran.load(Ordering::Relaxed) || self.language.is_some_and(is_0)
    }
}

unsafe extern "C-unwind" fn query<F: Family>(
    request: *mut c_void,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the extra state is a `Request` of `MPI_Grequest_start` that has not been freed.
    // `status` points to a status of the backend.
    unsafe {
        let request = &*request.cast::<Request>();
        let mut theirs = status_to_program::<F>(&status.read());
        let code = F::program(|| {
            // A status has the same layout in C and in Fortran.
            let argument = &raw mut theirs;
            if request.is_in_fortran() {
                return request.call_fortran(request.query, argument.cast());
            }
            let function: Query<F> = std::mem::transmute(request.query);
            function(request.extra_state, argument)
        });
        status.write(F::status_below(&load::<F>(&theirs)));
        F::word_in(Word::Error, code)
    }
}

unsafe extern "C-unwind" fn free<F: Family>(request: *mut c_void) -> c_int {
    // SAFETY: the backend calls the free callback once, after all other callbacks.
    // The box was made by `MPI_Grequest_start`.
    unsafe {
        let request = Box::from_raw(request.cast::<Request>());
        let code = F::program(|| {
            if request.is_in_fortran() {
                return request.call_fortran(request.free, null_mut());
            }
            let function: Free = std::mem::transmute(request.free);
            function(request.extra_state)
        });
        F::word_in(Word::Error, code)
    }
}

unsafe extern "C-unwind" fn cancel<F: Family>(request: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: the extra state is a `Request` of `MPI_Grequest_start` that has not been freed.
    unsafe {
        let request = &*request.cast::<Request>();
        let code = F::program(|| {
            if request.is_in_fortran() {
                let mut flag = complete;
                return request.call_fortran(request.cancel, (&raw mut flag).cast());
            }
            let function: Cancel = std::mem::transmute(request.cancel);
            function(request.extra_state, complete)
        });
        F::word_in(Word::Error, code)
    }
}

pub unsafe fn MPI_Grequest_start<F: Family>(
    query_function: usize,
    free_function: usize,
    cancel_function: usize,
    extra_state: *mut c_void,
    request: *mut F::Handle,
) -> c_int {
    let functions = Box::into_raw(Box::new(Request {
        query: query_function,
        free: free_function,
        cancel: cancel_function,
        extra_state,
        in_fortran: AtomicBool::new(false),
        language: None,
    }));
    let given = |theirs: usize, ours: usize| if theirs == 0 { 0 } else { ours };
    let ours_query: unsafe extern "C-unwind" fn(*mut c_void, *mut F::BelowStatus) -> c_int =
        query::<F>;
    let ours_free: Free = free::<F>;
    let ours_cancel: Cancel = cancel::<F>;
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let mut made = HandleOut::<F, of::Request>::new(request);
        let code = (backend::MPI_Grequest_start::<F>())(
            given(query_function, ours_query as usize),
            given(free_function, ours_free as usize),
            given(cancel_function, ours_cancel as usize),
            functions.cast(),
            made.argument(),
        );
        drop(made);
        if code == 0 {
            // No callback runs before the program has the request.
            (*functions).language = F::language_of_callbacks(*request);
            LAST.set(NonNull::new(functions));
        } else {
            // SAFETY: the call has failed, so the backend does not keep the pointer.
            drop(Box::from_raw(functions));
        }
        code_out::<F>(code)
    }
}

type Extent<F> =
    unsafe extern "C-unwind" fn(<F as Family>::Handle, *mut isize, *mut c_void) -> c_int;
type Conversion<F, C> = unsafe extern "C-unwind" fn(
    *mut c_void,
    <F as Family>::Handle,
    C,
    *mut c_void,
    i64,
    *mut c_void,
) -> c_int;

/// The program's callbacks of a data representation. Never freed: MPI cannot unregister them.
struct Representation {
    read: usize,
    write: usize,
    extent: usize,
    extra_state: *mut c_void,
}

unsafe extern "C-unwind" fn extent<F: Family>(
    datatype: F::Below,
    extent: *mut isize,
    representation: *mut c_void,
) -> c_int {
    // SAFETY: the extra state is a `Representation`, which is never freed.
    unsafe {
        let known = &*representation.cast::<Representation>();
        let function: Extent<F> = std::mem::transmute(known.extent);
        let datatype = F::handle_out(Kind::Datatype, datatype);
        let code = F::program(|| function(datatype, extent, known.extra_state));
        F::word_in(Word::Error, code)
    }
}

unsafe extern "C-unwind" fn convert<F: Family, C, const READ: bool>(
    memory: *mut c_void,
    datatype: F::Below,
    count: C,
    file: *mut c_void,
    position: i64,
    representation: *mut c_void,
) -> c_int {
    // SAFETY: the extra state is a `Representation`, which is never freed.
    unsafe {
        let known = &*representation.cast::<Representation>();
        let function = if READ { known.read } else { known.write };
        let function: Conversion<F, C> = std::mem::transmute(function);
        let datatype = F::handle_out(Kind::Datatype, datatype);
        let code =
            F::program(|| function(memory, datatype, count, file, position, known.extra_state));
        F::word_in(Word::Error, code)
    }
}

macro_rules! register {
    ($name:ident<F: Family>, $count:ty) => {
        pub unsafe fn $name<F: Family>(
            name: *const c_char,
            read: usize,
            write: usize,
            extent_function: usize,
            extra_state: *mut c_void,
        ) -> c_int {
            type Ours<B, C> = unsafe extern "C-unwind" fn(
                *mut c_void,
                B,
                C,
                *mut c_void,
                i64,
                *mut c_void,
            ) -> c_int;
            let ours_read: Ours<F::Below, $count> = convert::<F, $count, true>;
            let ours_write: Ours<F::Below, $count> = convert::<F, $count, false>;
            let ours_extent: unsafe extern "C-unwind" fn(
                F::Below,
                *mut isize,
                *mut c_void,
            ) -> c_int = extent::<F>;
            let given = |theirs: usize, ours: usize| if theirs == 0 { 0 } else { ours };
            let known = Box::into_raw(Box::new(Representation {
                read,
                write,
                extent: extent_function,
                extra_state,
            }));
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let code = (backend::$name::<F>())(
                    name,
                    given(read, ours_read as usize),
                    given(write, ours_write as usize),
                    given(extent_function, ours_extent as usize),
                    known.cast(),
                );
                if code != 0 {
                    // SAFETY: the registration failed, so the backend does not keep the pointer.
                    drop(Box::from_raw(known));
                }
                code_out::<F>(code)
            }
        }
    };
}

register!(MPI_Register_datarep<F: Family>, c_int);
register!(MPI_Register_datarep_c<F: Family>, i64);
