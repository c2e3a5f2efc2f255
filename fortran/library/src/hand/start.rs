//! Initialization, and what the C library must know of the Fortran compiler before it.

use crate::bodies::{Calls, Pmpi, Ptr};
use crate::convert;
use crate::handle::{self, input, output};
use std::ptr::null_mut;
use std::sync::Once;

unsafe extern "C" {
    fn MPI_Pcontrol(level: i32, ...) -> i32;
    fn PMPI_Pcontrol(level: i32, ...) -> i32;
}

/// The sizes of the default kinds, which all interfaces of this library have.
const SIZES: &[(&std::ffi::CStr, &std::ffi::CStr)] = &[
    (c"mpi_logical_size", c"4"),
    (c"mpi_integer_size", c"4"),
    (c"mpi_real_size", c"4"),
    (c"mpi_double_precision_size", c"8"),
];

/// Tells the C library about the compiler, once. The first layer that does so wins, so an error is none.
unsafe fn greet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        let (yes, no) = convert::logical_values();
        let (yes, no) = (&raw const yes, &raw const no);
        Pmpi::MPI_Abi_set_fortran_booleans(4, yes.cast_mut().cast(), no.cast_mut().cast());
        let mut info: Ptr = null_mut();
        if Pmpi::MPI_Info_create((&raw mut info).cast()) == 0 {
            for (key, value) in SIZES {
                Pmpi::MPI_Info_set(info, key.as_ptr() as Ptr, value.as_ptr() as Ptr);
            }
            Pmpi::MPI_Abi_set_fortran_info(info);
            Pmpi::MPI_Info_free((&raw mut info).cast());
        }
    });
}

pub unsafe fn init<C: Calls>() -> i32 {
    unsafe {
        greet();
        C::MPI_Init(null_mut(), null_mut())
    }
}

pub unsafe fn init_thread<C: Calls>(required: *mut i32, provided: *mut i32) -> i32 {
    unsafe {
        greet();
        C::MPI_Init_thread(null_mut(), null_mut(), *required, provided.cast())
    }
}

pub unsafe fn session_init<C: Calls>(
    info: *mut i32,
    errhandler: *mut i32,
    session: *mut i32,
) -> i32 {
    unsafe {
        greet();
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Session_init(
            input::<handle::Info>(info),
            input::<handle::Errhandler>(errhandler),
            (&raw mut made).cast(),
        );
        output::<handle::Session>(session, made);
        outcome
    }
}

pub unsafe fn pcontrol<C: Calls>(level: *mut i32) -> i32 {
    unsafe {
        if C::PROFILED {
            MPI_Pcontrol(*level)
        } else {
            PMPI_Pcontrol(*level)
        }
    }
}
