//! ABI queries, and the properties of the Fortran compiler that a Fortran layer above reports (chapter 20).

use super::args::{out, slice, slice_mut};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub unsafe fn MPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> Outcome {
    // SAFETY: `abi_major` and `abi_minor` are null or writable: the C binding of MPI_Abi_get_version requires it of the caller.
    unsafe {
        out(abi_major, MPI_ABI_VERSION, "abi_major")?;
        out(abi_minor, MPI_ABI_SUBVERSION, "abi_minor")
    }
}

pub unsafe fn MPI_Abi_get_info(info: *mut MPI_Info) -> Outcome {
    let mut hints = Hints::new();
    for (key, size) in [
        ("mpi_aint_size", size_of::<MPI_Aint>()),
        ("mpi_count_size", size_of::<MPI_Count>()),
        ("mpi_offset_size", size_of::<MPI_Offset>()),
    ] {
        hints.set(key.into(), size.to_string());
    }
    // SAFETY: `info` is null or writable: the C binding of MPI_Abi_get_info requires it of the caller.
    unsafe { out(info, info::create(hints)?, "info") }
}

/// The properties that the Fortran layer has reported.
struct Fortran {
    /// Sizes and supported types.
    hints: Option<Hints>,
    /// The bytes of `.TRUE.` and of `.FALSE.`.
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran {
    hints: None,
    booleans: None,
});

fn fortran() -> MutexGuard<'static, Fortran> {
    FORTRAN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub unsafe fn MPI_Abi_get_fortran_info(info: *mut MPI_Info) -> Outcome {
    let handle = match fortran().hints.clone() {
        Some(hints) => info::create(hints)?,
        None => MPI_INFO_NULL,
    };
    // SAFETY: `info` is null or writable: the C binding of MPI_Abi_get_fortran_info requires it of the caller.
    unsafe { out(info, handle, "info") }
}

pub unsafe fn MPI_Abi_set_fortran_info(info: MPI_Info) -> Outcome {
    let hints = info::read(info, Hints::clone)?;
    let mut fortran = fortran();
    if fortran.hints.is_some() {
        return Err(Failure::new(
            MPI_ERR_ABI,
            "the Fortran information has been set already",
        ));
    }
    fortran.hints = Some(hints);
    Ok(())
}

/// Checks the size of a Fortran logical.
fn logical(size: c_int) -> Result<usize, Failure> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => Err(Failure::new(
            MPI_ERR_ARG,
            format!("logical_size is {size}, which no Fortran logical has"),
        )),
    }
}

pub unsafe fn MPI_Abi_set_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Outcome {
    let size = logical(logical_size)?;
    // SAFETY: `logical_true` and `logical_false` have `logical_size` bytes: the C binding of MPI_Abi_set_fortran_booleans requires it of the caller.
    let (yes, no) = unsafe {
        let yes = slice(logical_true.cast::<u8>(), size, "logical_true")?;
        (
            yes.to_vec(),
            slice(logical_false.cast::<u8>(), size, "logical_false")?.to_vec(),
        )
    };
    let mut fortran = fortran();
    if fortran.booleans.is_some() {
        return Err(Failure::new(
            MPI_ERR_ABI,
            "the Fortran booleans have been set already",
        ));
    }
    fortran.booleans = Some((yes, no));
    Ok(())
}

pub unsafe fn MPI_Abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: *mut c_int,
) -> Outcome {
    let size = logical(logical_size)?;
    let fortran = fortran();
    let known = fortran
        .booleans
        .as_ref()
        .filter(|(yes, _)| yes.len() == size);
    // SAFETY: `logical_true` and `logical_false` have `logical_size` bytes and `is_set` is writable: the C binding of MPI_Abi_get_fortran_booleans requires it of the caller.
    unsafe {
        if let Some((yes, no)) = known {
            slice_mut(logical_true.cast::<u8>(), size, "logical_true")?.copy_from_slice(yes);
            slice_mut(logical_false.cast::<u8>(), size, "logical_false")?.copy_from_slice(no);
        }
        out(is_set, known.is_some().into(), "is_set")
    }
}
