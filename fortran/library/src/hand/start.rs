//! Initialization, and what the C library must know of the Fortran compiler.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Pmpi, Ptr};
use crate::convert;
use crate::handle::{self, input, output};
use std::ptr::null_mut;
use std::sync::Once;

unsafe extern "C" {
    fn MPI_Pcontrol(level: i32, ...) -> i32;
    fn PMPI_Pcontrol(level: i32, ...) -> i32;
}

/// The bytes of a LOGICAL of the interfaces.
const LOGICAL_SIZE: i32 = 4;

/// The sizes of the default kinds, which all interfaces of this library have.
const SIZES: &[(&std::ffi::CStr, &std::ffi::CStr)] = &[
    (c"mpi_logical_size", c"4"),
    (c"mpi_integer_size", c"4"),
    (c"mpi_real_size", c"4"),
    (c"mpi_double_precision_size", c"8"),
];

/// Passes the compiler's properties to the C library, once and unless another layer has done so.
///
/// It is done after initialization: the standard allows it before, but MPICH 5.0 ends the process then.
fn greet(initialized: i32) -> i32 {
    static ONCE: Once = Once::new();
    if initialized == 0 {
        ONCE.call_once(|| {
            set_booleans();
            set_sizes();
        });
    }
    initialized
}

/// Agrees with the C library on the values of LOGICALs: the first layer that states them decides.
fn set_booleans() {
    let (mut there, mut not, mut is_set) = (0i32, 0i32, 0i32);
    // SAFETY: the values are variables of this function of `LOGICAL_SIZE` bytes.
    unsafe {
        let results = (&raw mut there, &raw mut not);
        Pmpi::MPI_Abi_get_fortran_booleans(
            LOGICAL_SIZE,
            results.0.cast(),
            results.1.cast(),
            (&raw mut is_set).cast(),
        );
        if is_set != 0 {
            convert::set_logical_values((there, not));
        } else {
            let (yes, no) = convert::logical_values();
            let (yes, no) = (&raw const yes, &raw const no);
            let values = (yes.cast_mut().cast(), no.cast_mut().cast());
            Pmpi::MPI_Abi_set_fortran_booleans(LOGICAL_SIZE, values.0, values.1);
        }
    }
}

pub unsafe fn abi_set_fortran_booleans<C: Calls>(
    logical_size: *mut i32,
    logical_true: Ptr,
    logical_false: Ptr,
) -> i32 {
    // SAFETY: `logical_size` is an INTEGER, and the two values are LOGICALs of that size: they are read here only if it is 4 bytes.
    unsafe {
        let outcome = C::MPI_Abi_set_fortran_booleans(*logical_size, logical_true, logical_false);
        if outcome == 0 && *logical_size == LOGICAL_SIZE {
            let values = (*logical_true.cast(), *logical_false.cast());
            convert::set_logical_values(values);
        }
        outcome
    }
}

fn set_sizes() {
    const NO_INFO: usize = 304;
    let mut info: Ptr = null_mut();
    // SAFETY: `info` is a variable for a handle, which is freed once; the strings end with a zero byte.
    unsafe {
        Pmpi::MPI_Abi_get_fortran_info((&raw mut info).cast());
        if !info.is_null() && info as usize != NO_INFO {
            Pmpi::MPI_Info_free((&raw mut info).cast());
            return;
        }
        if Pmpi::MPI_Info_create((&raw mut info).cast()) == 0 {
            for (key, value) in SIZES {
                Pmpi::MPI_Info_set(info, key.as_ptr() as Ptr, value.as_ptr() as Ptr);
            }
            Pmpi::MPI_Abi_set_fortran_info(info);
            Pmpi::MPI_Info_free((&raw mut info).cast());
        }
    }
}

pub unsafe fn init<C: Calls>() -> i32 {
    // SAFETY: `MPI_Init` accepts null pointers for both arguments.
    greet(unsafe { C::MPI_Init(null_mut(), null_mut()) })
}

pub unsafe fn init_thread<C: Calls>(required: *mut i32, provided: *mut i32) -> i32 {
    // SAFETY: `required` and `provided` are INTEGERs of the program, and `MPI_Init_thread` accepts null pointers for the others.
    greet(unsafe { C::MPI_Init_thread(null_mut(), null_mut(), *required, provided.cast()) })
}

pub unsafe fn session_init<C: Calls>(
    info: *mut i32,
    errhandler: *mut i32,
    session: *mut i32,
) -> i32 {
    // SAFETY: all are INTEGERs of the program, and `made` is a variable for the C function's result.
    unsafe {
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Session_init(
            input::<handle::Info>(info),
            input::<handle::Errhandler>(errhandler),
            (&raw mut made).cast(),
        );
        output::<handle::Session>(session, made);
        greet(outcome)
    }
}

pub unsafe fn pcontrol<C: Calls>(level: *mut i32) -> i32 {
    // SAFETY: `level` is an INTEGER of the program, and the call has no further arguments.
    unsafe {
        if C::PROFILED {
            MPI_Pcontrol(*level)
        } else {
            PMPI_Pcontrol(*level)
        }
    }
}
