//! ABI queries, and the Fortran compiler's properties from the Fortran bindings (chapter 20).

use super::args::{InOutArray, Out};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn MPI_Abi_get_version(abi_major: Out<c_int>, abi_minor: Out<c_int>) -> Outcome {
    abi_major.set(MPI_ABI_VERSION, "abi_major")?;
    abi_minor.set(MPI_ABI_SUBVERSION, "abi_minor")
}

pub fn MPI_Abi_get_info(info: Out<MPI_Info>) -> Outcome {
    let mut hints = Hints::new();
    for (key, size) in [
        ("mpi_aint_size", size_of::<MPI_Aint>()),
        ("mpi_count_size", size_of::<MPI_Count>()),
        ("mpi_offset_size", size_of::<MPI_Offset>()),
    ] {
        hints.set(key.into(), size.to_string());
    }
    info.set(info::create(hints)?, "info")
}

/// Compiler properties reported by the Fortran bindings.
struct Fortran {
    /// The info of `MPI_Abi_set_fortran_info`: sizes and supported types.
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

pub fn MPI_Abi_get_fortran_info(info: Out<MPI_Info>) -> Outcome {
    let handle = match fortran().hints.clone() {
        Some(hints) => info::create(hints)?,
        None => MPI_INFO_NULL,
    };
    info.set(handle, "info")
}

pub fn MPI_Abi_set_fortran_info(info: MPI_Info) -> Outcome {
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

/// Checks `logical_size`, the size of a Fortran LOGICAL in bytes.
fn logical(size: c_int) -> Result<usize, Failure> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => Err(Failure::new(
            MPI_ERR_ARG,
            format!("logical_size is {size}, which no Fortran logical has"),
        )),
    }
}

pub fn MPI_Abi_set_fortran_booleans(
    logical_size: c_int,
    logical_true: InOutArray<u8>,
    logical_false: InOutArray<u8>,
) -> Outcome {
    logical(logical_size)?;
    let yes = logical_true.input().get("logical_true")?.to_vec();
    let no = logical_false.input().get("logical_false")?.to_vec();
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

pub fn MPI_Abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: InOutArray<u8>,
    logical_false: InOutArray<u8>,
    is_set: Out<c_int>,
) -> Outcome {
    let size = logical(logical_size)?;
    let fortran = fortran();
    let known = fortran
        .booleans
        .as_ref()
        .filter(|(yes, _)| yes.len() == size);
    if let Some((yes, no)) = known {
        logical_true.get("logical_true")?.copy_from_slice(yes);
        logical_false.get("logical_false")?.copy_from_slice(no);
    }
    is_set.set(known.is_some().into(), "is_set")
}
