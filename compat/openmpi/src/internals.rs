//! Internal symbols of Open MPI 4.1 that its Fortran libraries need, such as `libmpi_mpifh.so.40`.
//!
//! Open MPI's Fortran libraries convert arguments to C and call the C library. In addition they
//! * access fields of the objects of handles: the attribute table of a communicator, the flags of
//!   an operator or a generalized request, the Fortran handles of groups and requests.
//!   So if they are loaded, every handle is the address of an object ([`crate::family`]).
//!   An object with an attribute table has the standard's handle in each word, so the Fortran
//!   libraries read that handle as the table's address;
//! * call functions of Open MPI, which are defined here: for [`attributes`], [`strings`] and
//!   error handlers;
//! * read state variables of Open MPI, which have the values of an initialized library here,
//!   with argument checks disabled.
//!
//! Data representations and error handlers in Fortran are not supported: their creation fails.
#![allow(unsafe_code, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

mod attributes;
mod strings;

use crate::entries::*;
use crate::family::{OpenMpiStatus, handle_of_standard};
use compat::Kind;
use std::ffi::{c_char, c_int, c_void};

/// A variable that Open MPI's libraries read, as bytes: this library does not know its type.
#[repr(C, align(16))]
pub struct Opaque<const SIZE: usize>([u8; SIZE]);

#[unsafe(no_mangle)]
pub static ompi_errcode_intern_lastused: c_int = 0;
#[unsafe(no_mangle)]
pub static ompi_errcodes_intern: Opaque<256> = Opaque([0; 256]);
#[unsafe(no_mangle)]
pub static ompi_registered_datareps: Opaque<256> = Opaque([0; 256]);
#[unsafe(no_mangle)]
pub static opal_list_item_t_class: Opaque<256> = Opaque([0; 256]);
#[unsafe(no_mangle)]
pub static opal_class_init_epoch: c_int = 1;
#[unsafe(no_mangle)]
pub static opal_uses_threads: bool = false;
#[unsafe(no_mangle)]
pub static ompi_mpi_param_check: bool = false;
/// Value 2 means that MPI is initialized.
#[unsafe(no_mangle)]
pub static ompi_mpi_state: c_int = 2;
/// The empty status: any source, any tag, success, zero bytes.
#[unsafe(no_mangle)]
pub static ompi_status_empty: [c_int; 6] = [-1, -1, 0, 0, 0, 0];

const _: () = assert!(size_of::<OpenMpiStatus>() == size_of::<[c_int; 6]>());

/// Common blocks that Fortran code refers to. A program's own copies take precedence.
macro_rules! common_blocks {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub static $name: Opaque<64> = Opaque([0; 64]);
    )* };
}

common_blocks! {
    mpi_fortran_bottom_ mpi_fortran_in_place_ mpi_fortran_unweighted_ mpi_fortran_weights_empty_
    mpi_fortran_argv_null_ mpi_fortran_argvs_null_ mpi_fortran_errcodes_ignore_
    mpi_fortran_status_ignore_ mpi_fortran_statuses_ignore_
}

/// Return codes of Open MPI's internal C functions, which its Fortran libraries check.
const SUCCESS: c_int = 0;
const OUT_OF_MEMORY: c_int = -2;
const INTERN: c_int = 17;

/// Ends the process. Open MPI's Fortran library calls this function to create an internal object.
/// Only data representations need such an object.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn opal_class_initialize(_class: *mut c_void) {
    printable::eprintln!(
        "MPI_Register_datarep from Fortran is not served for programs of Open MPI; the process ends"
    );
    // SAFETY: `abort` has no requirements, and ends the process.
    unsafe { libc::abort() }
}

/// Returns null, because error handlers in Fortran are not supported.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_errhandler_create(
    _object: c_int,
    _function: *const c_void,
    _language: c_int,
) -> usize {
    handle_of_standard(Kind::Errhandler, Kind::Errhandler.null())
}

/// Reports the failure of [`ompi_errhandler_create`]. Called by Open MPI's Fortran library.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_errhandler_invoke(
    _handler: usize,
    _object: *mut c_void,
    _kind: c_int,
    code: c_int,
    _message: *const c_char,
) -> c_int {
    match code {
        INTERN => {
            printable::eprintln!(
                "an error handler that is written in Fortran is not served for programs of Open MPI; the handler is MPI_ERRHANDLER_NULL"
            );
            code
        }
        code => code,
    }
}

/// Implements `MPI_ERRORS_ARE_FATAL` of communicators.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_mpi_errors_are_fatal_comm_handler(
    comm: *mut Handle,
    code: *mut c_int,
) {
    // SAFETY: these are the arguments of an error handler, valid by the standard.
    unsafe { PMPI_Abort(*comm, *code) };
}

/// Stores the datatype with this type class and size (`MPI_Type_match_size`), as a C handle.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_datatype_match_size(
    size: c_int,
    class: u16,
    datatype: *mut Handle,
) -> c_int {
    // SAFETY: `datatype` is an output argument of the
    // Fortran library, which passes a valid pointer.
    unsafe { PMPI_Type_match_size(class.into(), size, datatype) }
}
/// `MPI_CONVERSION_FN_NULL`. Only its address is used.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mpi_conversion_fn_null_() {}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn mpi_wtime_f90_() -> f64 {
    // SAFETY: the function has no arguments and is allowed at any time.
    unsafe { PMPI_Wtime() }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn mpi_wtick_f90_() -> f64 {
    // SAFETY: the function has no arguments and is allowed at any time.
    unsafe { PMPI_Wtick() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_aint_add_f90_(
    base: *const isize,
    displacement: *const isize,
) -> isize {
    // SAFETY: Fortran passes arguments by reference, so both are valid pointers.
    unsafe { base.read().wrapping_add(displacement.read()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_aint_diff_f90_(
    first: *const isize,
    second: *const isize,
) -> isize {
    // SAFETY: Fortran passes arguments by reference, so both are valid pointers.
    unsafe { first.read().wrapping_sub(second.read()) }
}

/// Reports that Open MPI's C++ bindings, which MPI 3.0 removed, are unsupported.
/// A program that is linked to these bindings but does not use them runs.
fn no_cxx(what: &str) {
    printable::eprintln!(
        "{what} of the C++ bindings, which MPI 3.0 has removed, are not served for programs of Open MPI"
    );
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_attr_create_keyval(
    _of: c_int,
    _copy: usize,
    _delete: usize,
    _key: *mut c_int,
    _extra: *mut c_void,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    no_cxx("attributes");
    INTERN
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_op_set_cxx_callback(_op: usize, _function: usize) {
    no_cxx("operators of the program");
    // SAFETY: `abort` has no requirements. It prevents a reduction with a missing function.
    unsafe { libc::abort() }
}
