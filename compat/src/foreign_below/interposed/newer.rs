//! Queries that only a later version of the standard defines, answered for older backends.
//!
//! They are: names of null handles, `MPI_Comm_split_type` by hardware resource, and
//! `MPI_Win_shared_query` on windows without shared memory.

use super::{original, put, put_in_front};
use crate::backend::{self, slot};
use crate::family::{INVALID, Kind, UNDEFINED, Word};
use crate::foreign_below::Foreign;
use crate::foreign_below::infos::entry;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// Constants of the standard: `MPI_COMM_TYPE_SHARED`, the types for splits by hardware and by
/// resource, `MPI_WIN_CREATE_FLAVOR` and `MPI_WIN_FLAVOR_SHARED`.
const SHARED: c_int = 221;
const HARDWARE: [c_int; 2] = [222, 223];
const RESOURCE: c_int = 224;
const CREATE_FLAVOR: c_int = 604;
const FLAVOR_SHARED: c_int = 314;

// SAFETY of all functions below: the exported functions call them, not the backend's functions.
// The arguments are the program's, which the standard requires to be valid.

macro_rules! names {
    ($($name:ident $kind:ident $text:literal)*) => { $(
        unsafe extern "C-unwind" fn $name<F: Foreign>(
            object: F::Below,
            name: *mut c_char,
            length: *mut c_int,
        ) -> c_int {
            let text: &CStr = $text;
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            // The name buffer of every library is longer than these names.
            unsafe {
                if object != F::null(Kind::$kind) {
                    return original!($name)(object, name, length);
                }
                let bytes = text.to_bytes_with_nul();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), bytes.len());
                length.write(bytes.len() as c_int - 1);
            }
            0
        }
    )* };
}

names! {
    MPI_Comm_get_name Comm c"MPI_COMM_NULL"
    MPI_Type_get_name Datatype c"MPI_DATATYPE_NULL"
    MPI_Win_get_name Win c"MPI_WIN_NULL"
}

/// Splits by hardware resource. `mpi_shared_memory` becomes the backend's `MPI_COMM_TYPE_SHARED`.
/// For another resource, this process gets the null communicator (`MPI_UNDEFINED`).
/// The backend is called even then, because other members may request another resource.
unsafe fn split<F: Foreign, const KNOWS_HARDWARE: bool>(
    comm: F::Below,
    kind: c_int,
    key: c_int,
    info: F::Below,
    made: *mut F::Below,
) -> c_int {
    let is_one_of = |kinds: &[c_int]| {
        let mut kinds = kinds.iter();
        kinds.any(|known| F::word_in(Word::Split, *known) == kind)
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let kind = if kind == INVALID
            || is_one_of(&[RESOURCE])
            || (!KNOWS_HARDWARE && is_one_of(&HARDWARE))
        {
            match entry::<F>(info, c"mpi_hw_resource_type") {
                Some(kind) if kind.as_c_str() == c"mpi_shared_memory" => {
                    F::word_in(Word::Split, SHARED)
                }
                _ => UNDEFINED,
            }
        } else {
            kind
        };
        original!(MPI_Comm_split_type)(comm, kind, key, info, made)
    }
}

unsafe extern "C-unwind" fn split_with_hardware<F: Foreign>(
    comm: F::Below,
    kind: c_int,
    key: c_int,
    info: F::Below,
    made: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { split::<F, true>(comm, kind, key, info, made) }
}

unsafe extern "C-unwind" fn split_without<F: Foreign>(
    comm: F::Below,
    kind: c_int,
    key: c_int,
    info: F::Below,
    made: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { split::<F, false>(comm, kind, key, info, made) }
}

macro_rules! shared_query {
    ($name:ident $unit:ty) => {
        unsafe extern "C-unwind" fn $name<F: Foreign>(
            win: F::Below,
            rank: c_int,
            size: *mut isize,
            unit: *mut $unit,
            base: *mut c_void,
        ) -> c_int {
            let (mut flavor, mut flag): (*mut c_int, c_int) = (null_mut(), 0);
            let keyval = F::word_in(Word::Keyval, CREATE_FLAVOR);
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            // The attribute is a pointer to an `int`.
            unsafe {
                let place = (&raw mut flavor).cast();
                let code = (backend::MPI_Win_get_attr::<F>())(win, keyval, place, &raw mut flag);
                let shared = F::word_in(Word::Flavor, FLAVOR_SHARED);
                if code != 0 || flag == 0 || flavor.read() == shared {
                    return original!($name)(win, rank, size, unit, base);
                }
                size.write(0);
                unit.write(0);
                base.cast::<*mut c_void>().write_unaligned(null_mut());
            }
            0
        }
    };
}

shared_query! { MPI_Win_shared_query c_int }
shared_query! { MPI_Win_shared_query_c isize }

/// Interposes the functions of this module, on a backend older than MPI 4.1.
/// Runs before all MPI calls.
/// `knows_hardware` is true if the backend can split by hardware resource.
pub fn prepare<F: Foreign>(knows_hardware: bool) {
    put_in_front! {
        MPI_Comm_get_name MPI_Type_get_name MPI_Win_get_name
        MPI_Win_shared_query MPI_Win_shared_query_c
    }
    let split = match knows_hardware {
        true => split_with_hardware::<F> as *mut c_void,
        false => split_without::<F> as *mut c_void,
    };
    put(slot::MPI_Comm_split_type, split);
}
