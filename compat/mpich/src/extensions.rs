//! MPICH's extensions (`MPIX_`), and the queries of MPICH 5.0 about its ABI.
//!
//! The loader starts a program only if it finds all symbols to which the program refers.
//! Extensions that can be implemented with functions of the standard are supported.
//! Streams, thread communicators, asynchronous tasks and extra-state callbacks are unsupported.
//! Their functions print a message and raise `MPI_ERR_UNSUPPORTED_OPERATION` on `MPI_COMM_WORLD`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc)]

use crate::entries::{
    Handle, PMPI_Comm_call_errhandler, PMPI_Info_set, PMPI_Initialized, PMPI_Remove_error_class,
    PMPI_Remove_error_code, PMPI_Remove_error_string, PMPI_Request_get_status, Status,
};
use compat::backend;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::Write as _;

/// MPICH's values of `MPI_ERR_ARG` etc.
const ERR_ARG: c_int = 12;
const ERR_UNSUPPORTED_OPERATION: c_int = 44;
const COMM_WORLD: Handle = 0x4400_0000;
const STATUS_IGNORE: *mut Status = std::ptr::without_provenance_mut(1);

/// Exports a function under its MPI name and its profiling name.
macro_rules! extensions {
    ($($(#[$attribute:meta])* $name:ident $profiled:ident ($($argument:ident: $kind:ty),*) $body:block)*) => { $(
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $profiled($($argument: $kind),*) -> c_int $body
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            // SAFETY: the profiling name is the same function, with the same requirements.
            unsafe { $profiled($($argument),*) }
        }
    )* };
}

extensions! {
    /// Returns 1 if a request is complete, otherwise 0.
    MPIX_Request_is_complete PMPIX_Request_is_complete(request: Handle) {
        let mut flag = 0;
        // SAFETY: `flag` is a local variable, and the status is ignored.
        // The request is valid by the standard's requirement on the program.
        let code = unsafe { PMPI_Request_get_status(request, &raw mut flag, STATUS_IGNORE) };
        c_int::from(code == 0 && flag != 0)
    }

    /// Sets an info value to the bytes of an object, as hexadecimal digits.
    MPIX_Info_set_hex PMPIX_Info_set_hex(info: Handle, key: *const c_char, value: *const c_void, size: c_int) {
        let Some(length) = usize::try_from(size).ok().filter(|_| !value.is_null()) else {
            return ERR_ARG;
        };
        // SAFETY: the caller passes a value of `length` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) };
        let mut digits = String::with_capacity(2 * length);
        for byte in bytes {
            let _ = write!(digits, "{byte:02x}");
        }
        let Ok(digits) = CString::new(digits) else {
            return ERR_ARG;
        };
        // SAFETY: info and key are valid by the standard's requirement on the program.
        // The digits are a C string that outlives the call.
        unsafe { PMPI_Info_set(info, key, digits.as_ptr()) }
    }

    /// Stores in `is_supported` whether the backend accepts buffers in memory of this device type.
    MPIX_GPU_query_support PMPIX_GPU_query_support(device: c_int, is_supported: *mut c_int) {
        let slot = match device {
            0 => &backend::QUERY_CUDA,
            1 => &backend::QUERY_ZE,
            2 => &backend::QUERY_ROCM,
            _ => return ERR_ARG,
        };
        if is_supported.is_null() {
            return ERR_ARG;
        }
        // SAFETY: this is an output argument of the program, valid and not null.
        unsafe { is_supported.write(backend::query(slot)) };
        0
    }

    /// Removes an error class, as `MPI_Remove_error_class` of MPI 4.1 does.
    MPIX_Delete_error_class PMPIX_Delete_error_class(class: c_int) {
        // SAFETY: the function accepts every int.
        unsafe { PMPI_Remove_error_class(class) }
    }

    /// Removes an error code.
    MPIX_Delete_error_code PMPIX_Delete_error_code(code: c_int) {
        // SAFETY: the function accepts every int.
        unsafe { PMPI_Remove_error_code(code) }
    }

    /// Removes the text of an error code.
    MPIX_Delete_error_string PMPIX_Delete_error_string(code: c_int) {
        // SAFETY: the function accepts every int.
        unsafe { PMPI_Remove_error_string(code) }
    }

    /// Stores -1 in both outputs: this library's ABI is not the standard ABI.
    MPI_Abi_get_version PMPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) {
        if major.is_null() || minor.is_null() {
            return ERR_ARG;
        }
        // SAFETY: these are output arguments of the program, valid and not null.
        unsafe {
            major.write(-1);
            minor.write(-1);
        }
        0
    }
}

/// Prints that a function is not supported, and calls the program's error handler.
fn refuse(name: &str) -> c_int {
    printable::eprintln!(
        "{name} is an extension of MPICH that this library does not have; a program that needs it runs on MPICH's own library (mpirun --compat no)"
    );
    let (mut code, mut is_initialized) = (ERR_UNSUPPORTED_OPERATION, 0);
    // SAFETY: the output argument is a local variable, and the function is allowed at any time.
    unsafe { PMPI_Initialized(&raw mut is_initialized) };
    if is_initialized != 0 {
        // SAFETY: MPI is initialized (checked above), so `MPI_COMM_WORLD` exists.
        code = match unsafe { PMPI_Comm_call_errhandler(COMM_WORLD, code) } {
            0 => code,
            other => other,
        };
    }
    code
}

/// Defines functions that read no arguments, so that callers may pass any number of arguments.
macro_rules! refused {
    ($($name:ident $profiled:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name() -> c_int {
            refuse(stringify!($name))
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled() -> c_int {
            refuse(stringify!($name))
        }
    )* };
}

refused! {
    MPIX_Allreduce_enqueue PMPIX_Allreduce_enqueue
    MPIX_Allreduce_enqueue_c PMPIX_Allreduce_enqueue_c
    MPIX_Async_get_state PMPIX_Async_get_state
    MPIX_Async_spawn PMPIX_Async_spawn
    MPIX_Async_start PMPIX_Async_start
    MPIX_Comm_create_errhandler_x PMPIX_Comm_create_errhandler_x
    MPIX_Comm_get_stream PMPIX_Comm_get_stream
    MPIX_Comm_test_threadcomm PMPIX_Comm_test_threadcomm
    MPIX_File_create_errhandler_x PMPIX_File_create_errhandler_x
    MPIX_Grequest_class_allocate PMPIX_Grequest_class_allocate
    MPIX_Grequest_class_create PMPIX_Grequest_class_create
    MPIX_Grequest_start PMPIX_Grequest_start
    MPIX_Irecv_enqueue PMPIX_Irecv_enqueue
    MPIX_Irecv_enqueue_c PMPIX_Irecv_enqueue_c
    MPIX_Isend_enqueue PMPIX_Isend_enqueue
    MPIX_Isend_enqueue_c PMPIX_Isend_enqueue_c
    MPIX_Op_create_x PMPIX_Op_create_x
    MPIX_Recv_enqueue PMPIX_Recv_enqueue
    MPIX_Recv_enqueue_c PMPIX_Recv_enqueue_c
    MPIX_Send_enqueue PMPIX_Send_enqueue
    MPIX_Send_enqueue_c PMPIX_Send_enqueue_c
    MPIX_Session_create_errhandler_x PMPIX_Session_create_errhandler_x
    MPIX_Start_progress_thread PMPIX_Start_progress_thread
    MPIX_Stop_progress_thread PMPIX_Stop_progress_thread
    MPIX_Stream_comm_create PMPIX_Stream_comm_create
    MPIX_Stream_comm_create_multiplex PMPIX_Stream_comm_create_multiplex
    MPIX_Stream_create PMPIX_Stream_create
    MPIX_Stream_free PMPIX_Stream_free
    MPIX_Stream_irecv PMPIX_Stream_irecv
    MPIX_Stream_irecv_c PMPIX_Stream_irecv_c
    MPIX_Stream_isend PMPIX_Stream_isend
    MPIX_Stream_isend_c PMPIX_Stream_isend_c
    MPIX_Stream_progress PMPIX_Stream_progress
    MPIX_Stream_recv PMPIX_Stream_recv
    MPIX_Stream_recv_c PMPIX_Stream_recv_c
    MPIX_Stream_send PMPIX_Stream_send
    MPIX_Stream_send_c PMPIX_Stream_send_c
    MPIX_Threadcomm_finish PMPIX_Threadcomm_finish
    MPIX_Threadcomm_free PMPIX_Threadcomm_free
    MPIX_Threadcomm_init PMPIX_Threadcomm_init
    MPIX_Threadcomm_start PMPIX_Threadcomm_start
    MPIX_Type_iov PMPIX_Type_iov
    MPIX_Type_iov_len PMPIX_Type_iov_len
    MPIX_Wait_enqueue PMPIX_Wait_enqueue
    MPIX_Waitall_enqueue PMPIX_Waitall_enqueue
    MPIX_Win_create_errhandler_x PMPIX_Win_create_errhandler_x
    MPI_Abi_get_fortran_booleans PMPI_Abi_get_fortran_booleans
    MPI_Abi_get_fortran_info PMPI_Abi_get_fortran_info
    MPI_Abi_get_info PMPI_Abi_get_info
    MPI_Abi_set_fortran_booleans PMPI_Abi_set_fortran_booleans
    MPI_Abi_set_fortran_info PMPI_Abi_set_fortran_info
}
