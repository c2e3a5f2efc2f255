//! Open MPI's exports beyond the standard.
//!
//! They are predefined callbacks, Fortran conversions, and aliases of persistent collectives.
#![allow(unsafe_code, non_snake_case, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

use crate::entries::*;
use crate::family::{OpenMpiStatus, from_fortran, to_fortran};
use compat::Kind;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicPtr;

/// The address of `MPI_STATUS_IGNORE` in the Fortran library.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());

macro_rules! attribute_functions {
    ($($null_copy:ident $null_delete:ident $copy:ident;)*) => { $(
        /// `MPI_COMM_NULL_COPY_FN` etc.: does not copy the attribute.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $null_copy(
            _object: usize,
            _keyval: c_int,
            _extra_state: *mut c_void,
            _value: *mut c_void,
            _copied: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: this is an output argument of a copy callback, valid by the standard.
            unsafe { flag.write(0) };
            0
        }
        /// `MPI_COMM_NULL_DELETE_FN` etc.: does nothing.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $null_delete(
            _object: usize,
            _keyval: c_int,
            _value: *mut c_void,
            _extra_state: *mut c_void,
        ) -> c_int {
            0
        }
        /// `MPI_COMM_DUP_FN` etc.: copies the attribute value.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $copy(
            _object: usize,
            _keyval: c_int,
            _extra_state: *mut c_void,
            value: *mut c_void,
            copied: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: both are output arguments of a copy callback, valid by the standard.
            unsafe {
                flag.write(1);
                copied.cast::<*mut c_void>().write(value);
            }
            0
        }
    )* };
}

attribute_functions! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_NULL_DELETE_FN OMPI_C_MPI_DUP_FN;
    OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_COMM_DUP_FN;
    OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN OMPI_C_MPI_TYPE_DUP_FN;
    OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_DELETE_FN OMPI_C_MPI_WIN_DUP_FN;
}

macro_rules! fortran_handles {
    ($($to_c:ident $to_fortran:ident $profiled_c:ident $profiled_fortran:ident $kind:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled_c(handle: c_int) -> usize {
            from_fortran(Kind::$kind, handle)
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $to_c(handle: c_int) -> usize {
            from_fortran(Kind::$kind, handle)
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled_fortran(handle: usize) -> c_int {
            to_fortran(Kind::$kind, handle)
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $to_fortran(handle: usize) -> c_int {
            to_fortran(Kind::$kind, handle)
        }
    )* };
}

fortran_handles! {
    MPI_Comm_f2c MPI_Comm_c2f PMPI_Comm_f2c PMPI_Comm_c2f Comm;
    MPI_Group_f2c MPI_Group_c2f PMPI_Group_f2c PMPI_Group_c2f Group;
    MPI_Win_f2c MPI_Win_c2f PMPI_Win_f2c PMPI_Win_c2f Win;
    MPI_File_f2c MPI_File_c2f PMPI_File_f2c PMPI_File_c2f File;
    MPI_Session_f2c MPI_Session_c2f PMPI_Session_f2c PMPI_Session_c2f Session;
    MPI_Message_f2c MPI_Message_c2f PMPI_Message_f2c PMPI_Message_c2f Message;
    MPI_Info_f2c MPI_Info_c2f PMPI_Info_f2c PMPI_Info_c2f Info;
    MPI_Errhandler_f2c MPI_Errhandler_c2f PMPI_Errhandler_f2c PMPI_Errhandler_c2f Errhandler;
    MPI_Request_f2c MPI_Request_c2f PMPI_Request_f2c PMPI_Request_c2f Request;
    MPI_Op_f2c MPI_Op_c2f PMPI_Op_f2c PMPI_Op_c2f Op;
    MPI_Type_f2c MPI_Type_c2f PMPI_Type_f2c PMPI_Type_c2f Datatype;
}

/// Conversions of a status, which has the same 24 bytes in both languages.
macro_rules! statuses {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(from: *const OpenMpiStatus, to: *mut OpenMpiStatus) -> c_int {
            // SAFETY: both pointers refer to statuses of the program, valid by the standard.
            // The statuses may be unaligned.
            unsafe { to.write_unaligned(from.read_unaligned()) };
            0
        }
    )* };
}

statuses! {
    MPI_Status_c2f PMPI_Status_c2f MPI_Status_f2c PMPI_Status_f2c
    MPI_Status_c2f08 PMPI_Status_c2f08 MPI_Status_f082c PMPI_Status_f082c
    MPI_Status_f082f PMPI_Status_f082f MPI_Status_f2f08 PMPI_Status_f2f08
}

/// Queries whether the backend supports buffers in memory of a device type.
macro_rules! devices {
    ($($slot:ident: $name:ident $profiled:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name() -> c_int {
            compat::backend::query(&compat::backend::$slot)
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled() -> c_int {
            compat::backend::query(&compat::backend::$slot)
        }
    )* };
}

devices! {
    QUERY_CUDA: MPIX_Query_cuda_support PMPIX_Query_cuda_support
    QUERY_ROCM: MPIX_Query_rocm_support PMPIX_Query_rocm_support
}

/// `MPI_Session_set_info`, a draft function in Open MPI 5.0. Ignores all hints.
macro_rules! session_hints {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name(_session: Handle, _info: Handle) -> c_int {
            0
        }
    )* };
}

session_hints! { MPI_Session_set_info PMPI_Session_set_info }

/// Exports a standard function under an additional name, and under its profiling name.
macro_rules! names {
    ($($name:ident $profiled:ident = $function:ident ($($argument:ident: $kind:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            // SAFETY: the function is the same under another name, with the same requirements.
            unsafe { $function($($argument),*) }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $profiled($($argument: $kind),*) -> c_int {
            // SAFETY: the function is the same under another name, with the same requirements.
            unsafe { $function($($argument),*) }
        }
    )* };
}

type In = *const c_void;
type Out = *mut c_void;
type Ints = *const c_int;
type Addresses = *const isize;

names! {
    MPIX_Allgather_init PMPIX_Allgather_init = PMPI_Allgather_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: Handle, h: Handle, i: *mut Handle);
    MPIX_Allgatherv_init PMPIX_Allgatherv_init = PMPI_Allgatherv_init(a: In, b: c_int, c: Handle, d: Out, e: Ints, f: Ints, g: Handle, h: Handle, i: Handle, j: *mut Handle);
    MPIX_Allreduce_init PMPIX_Allreduce_init = PMPI_Allreduce_init(a: In, b: Out, c: c_int, d: Handle, e: Handle, f: Handle, g: Handle, h: *mut Handle);
    MPIX_Alltoall_init PMPIX_Alltoall_init = PMPI_Alltoall_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: Handle, h: Handle, i: *mut Handle);
    MPIX_Alltoallv_init PMPIX_Alltoallv_init = PMPI_Alltoallv_init(a: In, b: Ints, c: Ints, d: Handle, e: Out, f: Ints, g: Ints, h: Handle, i: Handle, j: Handle, k: *mut Handle);
    MPIX_Alltoallw_init PMPIX_Alltoallw_init = PMPI_Alltoallw_init(a: In, b: Ints, c: Ints, d: *const Handle, e: Out, f: Ints, g: Ints, h: *const Handle, i: Handle, j: Handle, k: *mut Handle);
    MPIX_Barrier_init PMPIX_Barrier_init = PMPI_Barrier_init(a: Handle, b: Handle, c: *mut Handle);
    MPIX_Bcast_init PMPIX_Bcast_init = PMPI_Bcast_init(a: Out, b: c_int, c: Handle, d: c_int, e: Handle, f: Handle, g: *mut Handle);
    MPIX_Exscan_init PMPIX_Exscan_init = PMPI_Exscan_init(a: In, b: Out, c: c_int, d: Handle, e: Handle, f: Handle, g: Handle, h: *mut Handle);
    MPIX_Gather_init PMPIX_Gather_init = PMPI_Gather_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: c_int, h: Handle, i: Handle, j: *mut Handle);
    MPIX_Gatherv_init PMPIX_Gatherv_init = PMPI_Gatherv_init(a: In, b: c_int, c: Handle, d: Out, e: Ints, f: Ints, g: Handle, h: c_int, i: Handle, j: Handle, k: *mut Handle);
    MPIX_Neighbor_allgather_init PMPIX_Neighbor_allgather_init = PMPI_Neighbor_allgather_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: Handle, h: Handle, i: *mut Handle);
    MPIX_Neighbor_allgatherv_init PMPIX_Neighbor_allgatherv_init = PMPI_Neighbor_allgatherv_init(a: In, b: c_int, c: Handle, d: Out, e: Ints, f: Ints, g: Handle, h: Handle, i: Handle, j: *mut Handle);
    MPIX_Neighbor_alltoall_init PMPIX_Neighbor_alltoall_init = PMPI_Neighbor_alltoall_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: Handle, h: Handle, i: *mut Handle);
    MPIX_Neighbor_alltoallv_init PMPIX_Neighbor_alltoallv_init = PMPI_Neighbor_alltoallv_init(a: In, b: Ints, c: Ints, d: Handle, e: Out, f: Ints, g: Ints, h: Handle, i: Handle, j: Handle, k: *mut Handle);
    MPIX_Neighbor_alltoallw_init PMPIX_Neighbor_alltoallw_init = PMPI_Neighbor_alltoallw_init(a: In, b: Ints, c: Addresses, d: *const Handle, e: Out, f: Ints, g: Addresses, h: *const Handle, i: Handle, j: Handle, k: *mut Handle);
    MPIX_Reduce_init PMPIX_Reduce_init = PMPI_Reduce_init(a: In, b: Out, c: c_int, d: Handle, e: Handle, f: c_int, g: Handle, h: Handle, i: *mut Handle);
    MPIX_Reduce_scatter_block_init PMPIX_Reduce_scatter_block_init = PMPI_Reduce_scatter_block_init(a: In, b: Out, c: c_int, d: Handle, e: Handle, f: Handle, g: Handle, h: *mut Handle);
    MPIX_Reduce_scatter_init PMPIX_Reduce_scatter_init = PMPI_Reduce_scatter_init(a: In, b: Out, c: Ints, d: Handle, e: Handle, f: Handle, g: Handle, h: *mut Handle);
    MPIX_Scan_init PMPIX_Scan_init = PMPI_Scan_init(a: In, b: Out, c: c_int, d: Handle, e: Handle, f: Handle, g: Handle, h: *mut Handle);
    MPIX_Scatter_init PMPIX_Scatter_init = PMPI_Scatter_init(a: In, b: c_int, c: Handle, d: Out, e: c_int, f: Handle, g: c_int, h: Handle, i: Handle, j: *mut Handle);
    MPIX_Scatterv_init PMPIX_Scatterv_init = PMPI_Scatterv_init(a: In, b: Ints, c: Ints, d: Handle, e: Out, f: c_int, g: Handle, h: c_int, i: Handle, j: Handle, k: *mut Handle);
}
