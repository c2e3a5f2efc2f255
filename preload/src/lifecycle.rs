//! `MPI_Init`, `MPI_Init_thread` and `MPI_Finalize`, which start and stop the recorder.
//!
//! A Fortran wrapper calls the library's Fortran function, which does more than the C function.
//! The Fortran function may call the interposed C function; this call is nested in the first.
//! The inner call is forwarded to the library without being recorded.
#![allow(unsafe_code)]

use crate::draft;
use crate::names::{FINALIZE, INIT, INIT_THREAD};
use crate::next::{Next, absent};
use crate::watch;
use crate::watch::depth;
use mpi_base::clock::now_ns;
use std::ffi::{c_int, c_void};

/// Calls `init`, then starts the recorder unless the call is nested.
fn begins(call: u16, init: impl FnOnce() -> c_int) -> c_int {
    let Some(inside) = depth::enter() else {
        return init();
    };
    let began = now_ns();
    let code = init();
    if code == 0 {
        draft::look();
        watch::start(call, began);
    }
    drop(inside);
    code
}

/// Stops the recorder unless the call is nested, then calls `finalize`.
fn ends(finalize: impl FnOnce() -> c_int) -> c_int {
    let Some(inside) = depth::enter() else {
        return finalize();
    };
    let ending = watch::finish(FINALIZE);
    let code = finalize();
    drop(ending);
    drop(inside);
    code
}

/// Stores the error code in the last argument of a Fortran function, unless `error` is null.
///
/// # Safety
/// `error` is writable or null.
unsafe fn told(error: *mut c_int, code: c_int) {
    if !error.is_null() {
        // SAFETY: the caller guarantees that a non-null `error` is writable.
        unsafe { error.write(code) };
    }
}

/// `int MPI_Init(int *, char ***)`.
///
/// # Safety
/// The arguments meet the requirements of `MPI_Init` in the MPI standard.
// SAFETY: the symbol must interpose the library function of the same name and signature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init(argc: *mut c_void, argv: *mut c_void) -> c_int {
    static NEXT: Next = Next::new(c"MPI_Init");
    let Some(next) = NEXT.get() else {
        return absent(NEXT.name());
    };
    type Init = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
    // SAFETY: the standard defines the signature of the function with this name.
    let next = unsafe { std::mem::transmute::<*mut c_void, Init>(next) };
    // SAFETY: the MPI standard obliges the program to pass valid arguments.
    begins(INIT, || unsafe { next(argc, argv) })
}

/// `int MPI_Init_thread(int *, char ***, int, int *)`.
///
/// # Safety
/// The arguments meet the requirements of `MPI_Init_thread` in the MPI standard.
// SAFETY: the symbol must interpose the library function of the same name and signature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_void,
    argv: *mut c_void,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    static NEXT: Next = Next::new(c"MPI_Init_thread");
    let Some(next) = NEXT.get() else {
        return absent(NEXT.name());
    };
    type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, *mut c_int) -> c_int;
    // SAFETY: the standard defines the signature of the function with this name.
    let next = unsafe { std::mem::transmute::<*mut c_void, Init>(next) };
    // SAFETY: the MPI standard obliges the program to pass valid arguments.
    begins(INIT_THREAD, || unsafe {
        next(argc, argv, required, provided)
    })
}

/// `int MPI_Finalize(void)`.
///
/// # Safety
/// The arguments meet the requirements of `MPI_Finalize` in the MPI standard.
// SAFETY: the symbol must interpose the library function of the same name and signature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    static NEXT: Next = Next::new(c"MPI_Finalize");
    let Some(next) = NEXT.get() else {
        return absent(NEXT.name());
    };
    // SAFETY: the standard defines the signature of `MPI_Finalize`.
    let next = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(next) };
    // SAFETY: the function has no arguments.
    ends(|| unsafe { next() })
}

macro_rules! fortran {
    ($($around:tt $kind:ty, $arguments:tt: $($name:ident = $symbol:literal)*;)*) => {$($(
        fortran! { @one $around $kind, $arguments, $name, $symbol }
    )*)*};
    (@one [$around:ident($($call:ident,)?)] $kind:ty, ($($argument:ident),*), $name:ident, $symbol:literal) => {
        /// A Fortran symbol of the function.
        ///
        /// # Safety
        /// The arguments meet the requirements of the function of this name in the MPI standard.
        // SAFETY: the symbol must interpose the library function of the same name and signature.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($argument: *mut c_int,)* error: *mut c_int) {
            static NEXT: Next = Next::new($symbol);
            let code = match NEXT.get() {
                None => absent(NEXT.name()),
                Some(next) => {
                    // SAFETY: the library's function of the same name has the same signature.
                    let next = unsafe { std::mem::transmute::<*mut c_void, $kind>(next) };
                    $around($($call,)? || {
                        let mut code: c_int = 0;
                        // SAFETY: the program must pass valid arguments (MPI standard);
                        // `code` is a live local.
                        unsafe { next($($argument,)* &raw mut code) };
                        code
                    })
                }
            };
            // SAFETY: the MPI standard requires a writable argument; an absent one is null.
            unsafe { told(error, code) };
        }
    };
}

type OneInteger = unsafe extern "C" fn(*mut c_int);
type ThreeIntegers = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int);

fortran! {
    [begins(INIT,)] OneInteger, ():
        mpi_init = c"mpi_init"
        mpi_init_ = c"mpi_init_"
        mpi_init__ = c"mpi_init__"
        MPI_INIT = c"MPI_INIT"
        mpi_init_f08_ = c"mpi_init_f08_";
    [begins(INIT_THREAD,)] ThreeIntegers, (required, provided):
        mpi_init_thread = c"mpi_init_thread"
        mpi_init_thread_ = c"mpi_init_thread_"
        mpi_init_thread__ = c"mpi_init_thread__"
        MPI_INIT_THREAD = c"MPI_INIT_THREAD"
        mpi_init_thread_f08_ = c"mpi_init_thread_f08_";
    [ends()] OneInteger, ():
        mpi_finalize = c"mpi_finalize"
        mpi_finalize_ = c"mpi_finalize_"
        mpi_finalize__ = c"mpi_finalize__"
        MPI_FINALIZE = c"MPI_FINALIZE"
        mpi_finalize_f08_ = c"mpi_finalize_f08_";
}
