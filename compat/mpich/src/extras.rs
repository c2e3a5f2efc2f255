//! MPICH's exports beyond the standard: variables, Fortran conversions, predefined callbacks.
#![allow(unsafe_code, non_snake_case, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc)]

use compat::layout::MpichStatus;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An exported variable that holds an address. Programs read it, the Fortran library may set it.
pub type Constant<T> = AtomicPtr<T>;

/// Memory whose two addresses are the values of `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
static WEIGHTS: [c_int; 2] = [0; 2];
static HANDLES: [c_int; 1] = [0];

macro_rules! constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        pub static $name: Constant<$kind> = AtomicPtr::new($value);
    )* };
}

constants! {
    MPI_UNWEIGHTED: c_int = (&raw const WEIGHTS[0]).cast_mut();
    MPI_WEIGHTS_EMPTY: c_int = (&raw const WEIGHTS[1]).cast_mut();
    MPI_T_PVAR_ALL_HANDLES: c_void = (&raw const HANDLES).cast_mut().cast();
    MPI_F_STATUS_IGNORE: c_int = std::ptr::null_mut();
    MPI_F_STATUSES_IGNORE: c_int = std::ptr::null_mut();
    MPI_F08_STATUS_IGNORE: MpichStatus = (&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ).cast_mut();
    MPI_F08_STATUSES_IGNORE: MpichStatus = (&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ).cast_mut();
    MPIR_C_MPI_UNWEIGHTED: c_int = (&raw const WEIGHTS[0]).cast_mut();
    MPIR_C_MPI_WEIGHTS_EMPTY: c_int = (&raw const WEIGHTS[1]).cast_mut();
}

const EMPTY: MpichStatus = MpichStatus {
    count_low: 0,
    count_high_and_cancelled: 0,
    source: 0,
    tag: 0,
    error: 0,
};

/// Objects that the `mpi_f08` module refers to. Only their addresses are used.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: MpichStatus = EMPTY;
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: MpichStatus = EMPTY;
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_BOTTOM: c_int = 0;
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_IN_PLACE: c_int = 0;

/// Returns the current value of `MPI_UNWEIGHTED`, which the Fortran library may have set.
pub fn unweighted() -> *mut c_int {
    MPI_UNWEIGHTED.load(Ordering::Relaxed)
}

pub fn weights_empty() -> *mut c_int {
    MPI_WEIGHTS_EMPTY.load(Ordering::Relaxed)
}

pub fn all_handles() -> usize {
    MPI_T_PVAR_ALL_HANDLES.load(Ordering::Relaxed).addr()
}

/// The predefined copy callback that copies the value: `MPI_COMM_DUP_FN` and its counterparts.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPIR_Dup_fn(
    _object: u32,
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

/// Conversions of handles between C and Fortran, by a cast:
/// a handle is the same integer in both languages. File handles are pointers in C.
macro_rules! same {
    ($($to_c:ident $to_fortran:ident $profiled_c:ident $profiled_fortran:ident $c:ty;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled_c(handle: c_int) -> $c {
            handle as $c
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $to_c(handle: c_int) -> $c {
            handle as $c
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $profiled_fortran(handle: $c) -> c_int {
            handle as c_int
        }
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $to_fortran(handle: $c) -> c_int {
            handle as c_int
        }
    )* };
}

same! {
    MPI_Comm_f2c MPI_Comm_c2f PMPI_Comm_f2c PMPI_Comm_c2f u32;
    MPI_Group_f2c MPI_Group_c2f PMPI_Group_f2c PMPI_Group_c2f u32;
    MPI_Win_f2c MPI_Win_c2f PMPI_Win_f2c PMPI_Win_c2f u32;
    MPI_File_f2c MPI_File_c2f PMPI_File_f2c PMPI_File_c2f usize;
    MPI_Session_f2c MPI_Session_c2f PMPI_Session_f2c PMPI_Session_c2f u32;
    MPI_Message_f2c MPI_Message_c2f PMPI_Message_f2c PMPI_Message_c2f u32;
    MPI_Info_f2c MPI_Info_c2f PMPI_Info_f2c PMPI_Info_c2f u32;
    MPI_Errhandler_f2c MPI_Errhandler_c2f PMPI_Errhandler_f2c PMPI_Errhandler_c2f u32;
    MPI_Request_f2c MPI_Request_c2f PMPI_Request_f2c PMPI_Request_c2f u32;
    MPI_Op_f2c MPI_Op_c2f PMPI_Op_f2c PMPI_Op_c2f u32;
    MPI_Type_f2c MPI_Type_c2f PMPI_Type_f2c PMPI_Type_c2f u32;
    // The standard's conversions between handles and integers. MPICH 5.0 also has them in its ABI.
    MPI_Comm_fromint MPI_Comm_toint PMPI_Comm_fromint PMPI_Comm_toint u32;
    MPI_Group_fromint MPI_Group_toint PMPI_Group_fromint PMPI_Group_toint u32;
    MPI_Win_fromint MPI_Win_toint PMPI_Win_fromint PMPI_Win_toint u32;
    MPI_File_fromint MPI_File_toint PMPI_File_fromint PMPI_File_toint usize;
    MPI_Session_fromint MPI_Session_toint PMPI_Session_fromint PMPI_Session_toint u32;
    MPI_Message_fromint MPI_Message_toint PMPI_Message_fromint PMPI_Message_toint u32;
    MPI_Info_fromint MPI_Info_toint PMPI_Info_fromint PMPI_Info_toint u32;
    MPI_Errhandler_fromint MPI_Errhandler_toint PMPI_Errhandler_fromint PMPI_Errhandler_toint u32;
    MPI_Request_fromint MPI_Request_toint PMPI_Request_fromint PMPI_Request_toint u32;
    MPI_Op_fromint MPI_Op_toint PMPI_Op_fromint PMPI_Op_toint u32;
    MPI_Type_fromint MPI_Type_toint PMPI_Type_fromint PMPI_Type_toint u32;
}

/// Conversions of a status, which consists of the same five 32-bit integers in both languages.
macro_rules! statuses {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(from: *const MpichStatus, to: *mut MpichStatus) -> c_int {
            // SAFETY: both pointers refer to statuses of the program, valid by the standard.
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
    QUERY_ROCM: MPIX_Query_hip_support PMPIX_Query_hip_support
    QUERY_ZE: MPIX_Query_ze_support PMPIX_Query_ze_support
}
