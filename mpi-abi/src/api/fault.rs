//! Fault tolerance (ULFM), an extension to MPI 5.0 with the functions of Open MPI's `mpi-ext.h`.
//!
//! The semantics are documented in [`mpi_core::fault`].
#![allow(unsafe_code)]

use super::args::{InOut, Out};
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

pub fn MPIX_Comm_revoke(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.failures().revoke();
    // Sends the revocation now, since this process may not enter MPI again for a long time.
    state::engine()?.poll_once();
    Ok(())
}

pub fn MPIX_Comm_is_revoked(comm: MPI_Comm, flag: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    state::engine()?.poll_once();
    flag.set(object.comm.failures().is_revoked().into(), "flag")
}

pub fn MPIX_Comm_get_failed(comm: MPI_Comm, failedgrp: Out<MPI_Group>) -> Outcome {
    let object = state::comm(comm)?;
    crate::init::poll_launcher();
    let failed = groups::register(object.comm.failures().get_failed(), object.session.clone())?;
    failedgrp.set(failed, "failedgrp")
}

pub fn MPIX_Comm_ack_failed(comm: MPI_Comm, num_to_ack: c_int, num_acked: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let how_many = usize::try_from(num_to_ack).map_err(|_| {
        Failure::new(
            MPI_ERR_ARG,
            format!("num_to_ack is {num_to_ack}, which is negative"),
        )
    })?;
    let acknowledged = object.comm.failures().acknowledge(how_many);
    num_acked.set(acknowledged as c_int, "num_acked")
}

pub fn MPIX_Comm_failure_ack(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.failures().acknowledge(usize::MAX);
    Ok(())
}

pub fn MPIX_Comm_failure_get_acked(comm: MPI_Comm, failedgrp: Out<MPI_Group>) -> Outcome {
    let object = state::comm(comm)?;
    let acknowledged = groups::register(
        object.comm.failures().acknowledged(),
        object.session.clone(),
    )?;
    failedgrp.set(acknowledged, "failedgrp")
}

/// Stores the agreed flag, even if the agreement returns an error.
fn store(agreed: Agreed, put: impl FnOnce(c_int)) -> Result<(), mpi_core::Error> {
    put(agreed.flag as c_int);
    agreed.error.map_or(Ok(()), Err)
}

pub fn MPIX_Comm_agree(comm: MPI_Comm, flag: InOut<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let mine = flag.get("flag")?;
    let agreed = object.comm.agreement().agree_now(mine as u32)?;
    Ok(store(agreed, |agreed| {
        flag.out().put(agreed);
    })?)
}

pub fn MPIX_Comm_iagree(comm: MPI_Comm, flag: InOut<c_int>, request: Out<MPI_Request>) -> Outcome {
    let object = state::comm(comm)?;
    let mine = flag.get("flag")?;
    let (agreeing, later) = (object.comm.clone(), flag.out().later("flag")?);
    let agreement = async move {
        let agreed = agreeing.agreement().agree(mine as u32).await?;
        // SAFETY: the request is active: this future is the operation of the request.
        store(agreed, |agreed| unsafe { later.put(agreed) })
    };
    let req = state::engine()?.operations().start(Box::pin(agreement));
    request.set(running(req, &object)?, "request")
}

pub fn MPIX_Comm_shrink(comm: MPI_Comm, newcomm: Out<MPI_Comm>) -> Outcome {
    let parent = state::comm(comm)?;
    let new = state::engine()?.block_on(parent.comm.constructors().shrink())?;
    newcomm.set(child(Some(new), &parent)?, "newcomm")
}

pub fn MPIX_Comm_ishrink(
    comm: MPI_Comm,
    newcomm: Out<MPI_Comm>,
    request: Out<MPI_Request>,
) -> Outcome {
    let parent = state::comm(comm)?;
    newcomm.set(MPI_COMM_NULL, "newcomm")?;
    let later = newcomm.later("newcomm")?;
    let source = parent.clone();
    let attached = Attached::inheriting(&parent.attached);
    let shrinking = async move {
        let new = source.comm.constructors().shrink().await?;
        // `register_with` fails only if the program holds 2^19 other communicators.
        // The program then reads the null handle.
        if let Ok(object) = register_with(new, attached, source.session.clone()) {
            // SAFETY: the request is active: this future is the operation of the request.
            unsafe { later.put(object.handle()) };
        }
        Ok(())
    };
    let req = state::engine()?.operations().start(Box::pin(shrinking));
    request.set(running(req, &parent)?, "request")
}

pub fn MPIX_Win_revoke(win: MPI_Win) -> Outcome {
    state::win(win)?.win.failures().revoke();
    state::engine()?.poll_once();
    Ok(())
}

pub fn MPIX_Win_is_revoked(win: MPI_Win, flag: Out<c_int>) -> Outcome {
    let object = state::win(win)?;
    state::engine()?.poll_once();
    flag.set(object.win.failures().is_revoked().into(), "flag")
}

pub fn MPIX_Win_get_failed(win: MPI_Win, failedgrp: Out<MPI_Group>) -> Outcome {
    let object = state::win(win)?;
    crate::init::poll_launcher();
    let failed = groups::register(object.win.failures().get_failed(), None)?;
    failedgrp.set(failed, "failedgrp")
}
