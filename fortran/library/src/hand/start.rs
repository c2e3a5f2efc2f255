//! Initialization, and the properties of the Fortran compiler that the C library needs.
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

/// The size in bytes of a LOGICAL in the interfaces.
const LOGICAL_SIZE: i32 = 4;

/// The sizes in bytes of the default kinds in all interfaces of this library.
const SIZES: &[(&std::ffi::CStr, &std::ffi::CStr)] = &[
    (c"mpi_logical_size", c"4"),
    (c"mpi_integer_size", c"4"),
    (c"mpi_real_size", c"4"),
    (c"mpi_double_precision_size", c"8"),
];

/// Passes the compiler's properties to the C library, once, unless another layer has passed them.
///
/// The library calls this after initialization. The standard also allows an earlier call, but
/// MPICH 5.0 then aborts.
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

/// Passes the compiler's values of `.TRUE.` and `.FALSE.` to the C library. If another layer has
/// passed other values before, uses those.
fn set_booleans() {
    let (mut there, mut not, mut is_set) = (0i32, 0i32, 0i32);
    // SAFETY: the results are local variables of `LOGICAL_SIZE` bytes.
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
    // SAFETY: `logical_size` is an INTEGER. The LOGICALs have this size and are read if it is 4.
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
    // SAFETY: `info` is a local with a handle that is freed once; the strings end with a zero byte.
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
    // SAFETY: both arguments are INTEGERs, and `MPI_Init_thread` accepts null for its first two.
    greet(unsafe { C::MPI_Init_thread(null_mut(), null_mut(), *required, provided.cast()) })
}

pub unsafe fn session_init<C: Calls>(
    info: *mut i32,
    errhandler: *mut i32,
    session: *mut i32,
) -> i32 {
    // SAFETY: all arguments are INTEGERs of the program, and `made` is a local variable.
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
