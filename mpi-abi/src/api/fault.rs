//! Fault tolerance (ULFM), which is not part of MPI 5.0: the functions of Open MPI's `mpi-ext.h`.
//!
//! The semantics are documented in [`mpi_core::fault`].
#![allow(unsafe_code)]

use super::args::{out, read};
use super::comm::child;
use super::groups;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::Attached;
use crate::registry::comm::register_with;
use crate::registry::request::running;
use crate::state;
use mpi_core::comm::Agreed;
use std::ffi::c_int;

pub unsafe fn MPIX_Comm_revoke(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.failures().revoke();
    // Sends the revocation now, since this process may not call MPI again for long.
    state::engine()?.poll_once();
    Ok(())
}

pub unsafe fn MPIX_Comm_is_revoked(comm: MPI_Comm, flag: *mut c_int) -> Outcome {
    let object = state::comm(comm)?;
    state::engine()?.poll_once();
    // SAFETY: `flag` is null or writable: the C binding of MPIX_Comm_is_revoked requires it of the caller.
    unsafe { out(flag, object.comm.failures().is_revoked().into(), "flag") }
}

pub unsafe fn MPIX_Comm_get_failed(comm: MPI_Comm, failedgrp: *mut MPI_Group) -> Outcome {
    let object = state::comm(comm)?;
    crate::init::poll_launcher();
    let failed = groups::register(object.comm.failures().get_failed(), object.session.clone())?;
    // SAFETY: `failedgrp` is null or writable: the C binding of MPIX_Comm_get_failed requires it of the caller.
    unsafe { out(failedgrp, failed, "failedgrp") }
}

pub unsafe fn MPIX_Comm_ack_failed(
    comm: MPI_Comm,
    num_to_ack: c_int,
    num_acked: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let how_many = usize::try_from(num_to_ack).map_err(|_| {
        Failure::new(
            MPI_ERR_ARG,
            format!("num_to_ack is {num_to_ack}, which is negative"),
        )
    })?;
    let acknowledged = object.comm.failures().acknowledge(how_many);
    // SAFETY: `num_acked` is null or writable: the C binding of MPIX_Comm_ack_failed requires it of the caller.
    unsafe { out(num_acked, acknowledged as c_int, "num_acked") }
}

pub unsafe fn MPIX_Comm_failure_ack(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.failures().acknowledge(usize::MAX);
    Ok(())
}

pub unsafe fn MPIX_Comm_failure_get_acked(comm: MPI_Comm, failedgrp: *mut MPI_Group) -> Outcome {
    let object = state::comm(comm)?;
    let acknowledged = groups::register(
        object.comm.failures().acknowledged(),
        object.session.clone(),
    )?;
    // SAFETY: `failedgrp` is null or writable: the C binding of MPIX_Comm_failure_get_acked requires it of the caller.
    unsafe { out(failedgrp, acknowledged, "failedgrp") }
}

/// Stores the agreed flag, also if the agreement returns an error.
///
/// # Safety
/// `flag` may be written.
unsafe fn store(flag: *mut c_int, agreed: Agreed) -> Result<(), mpi_core::Error> {
    // SAFETY: `flag` is valid by the `# Safety` contract of this function.
    unsafe { flag.write(agreed.flag as c_int) };
    agreed.error.map_or(Ok(()), Err)
}

pub unsafe fn MPIX_Comm_agree(comm: MPI_Comm, flag: *mut c_int) -> Outcome {
    let object = state::comm(comm)?;
    // SAFETY: `flag` is valid as the C binding of MPIX_Comm_agree requires of its caller.
    unsafe {
        let mine = read(flag, "flag")?;
        let agreed = object.comm.agreement().agree_now(mine as u32)?;
        Ok(store(flag, agreed)?)
    }
}

pub unsafe fn MPIX_Comm_iagree(
    comm: MPI_Comm,
    flag: *mut c_int,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::comm(comm)?;
    // SAFETY: `flag` is null or readable: the C binding of MPIX_Comm_iagree requires it of the caller.
    let mine = unsafe { read(flag, "flag")? };
    let agreeing = object.comm.clone();
    let agreement = async move {
        let agreed = agreeing.agreement().agree(mine as u32).await?;
        // SAFETY: `flag` is valid until the request completes: the C binding of MPIX_Comm_iagree requires it of the caller.
        unsafe { store(flag, agreed) }
    };
    let req = state::engine()?.start_future(Box::pin(agreement));
    // SAFETY: `request` is null or writable: the C binding of MPIX_Comm_iagree requires it of the caller.
    unsafe { out(request, running(req, &object)?, "request") }
}

pub unsafe fn MPIX_Comm_shrink(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> Outcome {
    let parent = state::comm(comm)?;
    let new = state::engine()?.block_on(parent.comm.constructors().shrink())?;
    // SAFETY: `newcomm` is null or writable: the C binding of MPIX_Comm_shrink requires it of the caller.
    unsafe { out(newcomm, child(Some(new), &parent)?, "newcomm") }
}

pub unsafe fn MPIX_Comm_ishrink(
    comm: MPI_Comm,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let parent = state::comm(comm)?;
    // SAFETY: `newcomm` is writable: the C binding of MPIX_Comm_ishrink requires it of the caller; it holds the null handle until the operation completes.
    unsafe { out(newcomm, MPI_COMM_NULL, "newcomm")? };
    let source = parent.clone();
    let attached = Attached::inheriting(&parent.attached);
    let shrinking = async move {
        let new = source.comm.constructors().shrink().await?;
        // Fails only if the program holds 2^19 other communicators; the null handle reports it.
        if let Ok(object) = register_with(new, attached, source.session.clone()) {
            // SAFETY: `newcomm` is valid until the request completes: the C binding of MPIX_Comm_ishrink requires it of the caller.
            unsafe { newcomm.write(object.handle()) };
        }
        Ok(())
    };
    let req = state::engine()?.start_future(Box::pin(shrinking));
    // SAFETY: `request` is null or writable: the C binding of MPIX_Comm_ishrink requires it of the caller.
    unsafe { out(request, running(req, &parent)?, "request") }
}

pub unsafe fn MPIX_Win_revoke(win: MPI_Win) -> Outcome {
    state::win(win)?.win.failures().revoke();
    state::engine()?.poll_once();
    Ok(())
}

pub unsafe fn MPIX_Win_is_revoked(win: MPI_Win, flag: *mut c_int) -> Outcome {
    let object = state::win(win)?;
    state::engine()?.poll_once();
    // SAFETY: `flag` is null or writable: the C binding of MPIX_Win_is_revoked requires it of the caller.
    unsafe { out(flag, object.win.failures().is_revoked().into(), "flag") }
}

pub unsafe fn MPIX_Win_get_failed(win: MPI_Win, failedgrp: *mut MPI_Group) -> Outcome {
    let object = state::win(win)?;
    crate::init::poll_launcher();
    let failed = groups::register(object.win.failures().get_failed(), None)?;
    // SAFETY: `failedgrp` is null or writable: the C binding of MPIX_Win_get_failed requires it of the caller.
    unsafe { out(failedgrp, failed, "failedgrp") }
}
