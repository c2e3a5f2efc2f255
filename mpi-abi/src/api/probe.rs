//! Probes and matched receives (section 3.8).

use super::args::{out, read, recv_buf};
use super::completion::{set_received, set_status};
use super::p2p::check_recv_tag;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::object::comm::CommObject;
use crate::registry::request::{c_status, running, running_for};
use crate::state::{self, state};
use mpi_core::comm::Probed;
use mpi_core::request::{Req, Status};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Checks the arguments of a probe.
fn probing(source: c_int, tag: c_int, comm: MPI_Comm) -> Result<Rc<CommObject>, Failure> {
    let comm = state::comm(comm)?;
    check_recv_tag(tag)?;
    let known = source == MPI_ANY_SOURCE
        || source == MPI_PROC_NULL
        || u32::try_from(source).is_ok_and(|r| r < comm.comm.peers().size());
    if !known {
        return Err(Failure::new(
            MPI_ERR_RANK,
            format!(
                "source is {source}, but {} has {} ranks",
                comm.label(),
                comm.comm.peers().size()
            ),
        ));
    }
    Ok(comm)
}

pub unsafe fn MPI_Probe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let found = probing(source, tag, comm)?
        .comm
        .probes()
        .probe(source, tag)?;
    // SAFETY: `status` is valid as the C binding of MPI_Probe requires of its caller.
    unsafe { set_status(status, &c_status(found)) };
    Ok(())
}

pub unsafe fn MPI_Iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    let found = probing(source, tag, comm)?
        .comm
        .probes()
        .iprobe(source, tag)?;
    // SAFETY: `flag` and `status` are valid as the C binding of MPI_Iprobe requires of its caller.
    unsafe {
        if let Some(found) = found {
            set_status(status, &c_status(found));
        }
        out(flag, found.is_some().into(), "flag")
    }
}

/// Gives a message taken by a matched probe a handle.
fn register(probed: Probed, comm: &Rc<CommObject>) -> Result<(MPI_Message, Status), Failure> {
    let Probed::Message(message) = probed else {
        return Ok((MPI_MESSAGE_NO_PROC, Status::PROC_NULL));
    };
    let status = message.status;
    let handle = state()
        .tables()
        .messages()
        .borrow_mut()
        .insert((message, comm.clone()));
    let handle = handle
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many matched messages"))?;
    Ok((MPI_Message(handle), status))
}

pub unsafe fn MPI_Mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = probing(source, tag, comm)?;
    let (handle, found) = register(comm.comm.probes().mprobe(source, tag)?, &comm)?;
    // SAFETY: `message` and `status` are valid as the C binding of MPI_Mprobe requires of its caller.
    unsafe {
        set_status(status, &c_status(found));
        out(message, handle, "message")
    }
}

pub unsafe fn MPI_Improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = probing(source, tag, comm)?;
    let probed = comm.comm.probes().improbe(source, tag)?;
    // SAFETY: `flag`, `message` and `status` are valid as the C binding of MPI_Improbe requires of its caller.
    unsafe {
        out(flag, probed.is_some().into(), "flag")?;
        let Some(probed) = probed else {
            return Ok(());
        };
        let (handle, found) = register(probed, &comm)?;
        set_status(status, &c_status(found));
        out(message, handle, "message")
    }
}

/// A matched receive, blocking or not.
enum Taken {
    /// The message was from `MPI_PROC_NULL`.
    Nothing,
    Receiving(Req, Rc<CommObject>),
}

/// Starts receiving a message and makes its handle null.
///
/// # Safety
/// As [`recv_buf`]; `message` is an input/output argument of the caller.
unsafe fn take(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
) -> Result<Taken, Failure> {
    // SAFETY: `buf` and `message` are valid by the `# Safety` contract of this function.
    let (handle, buf) = unsafe { (read(message, "message")?, recv_buf(buf, count, datatype)?) };
    let taken = if handle == MPI_MESSAGE_NO_PROC {
        Taken::Nothing
    } else {
        let found = state().tables().messages().borrow_mut().remove(handle.0);
        let (found, comm) = found.ok_or_else(|| wrong(Kind::Message, handle.0))?;
        Taken::Receiving(comm.comm.p2p().imrecv(found, buf), comm)
    };
    // SAFETY: `message` is null or writable: `# Safety` of this function.
    unsafe { out(message, MPI_MESSAGE_NULL, "message")? };
    Ok(taken)
}

pub unsafe fn MPI_Mrecv_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf`, `message` and `status` are valid as the C binding of MPI_Mrecv_c requires of its caller.
    unsafe {
        match take(buf, count, datatype, message)? {
            Taken::Nothing => set_received(status, Ok(Status::PROC_NULL)),
            // The communicator is not among the arguments, but its handler is called.
            Taken::Receiving(req, comm) => {
                let received = comm.comm.engine().wait(&req);
                set_received(status, received).map_err(|failure| failure.of(&comm))
            }
        }
    }
}

pub unsafe fn MPI_Imrecv_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf`, `message` and `request` are valid as the C binding of MPI_Imrecv_c requires of its caller.
    unsafe {
        let handle = match take(buf, count, datatype, message)? {
            Taken::Nothing => running_for(state::engine()?.completed(Status::PROC_NULL), None)?,
            Taken::Receiving(req, comm) => running(req, &comm)?,
        };
        out(request, handle, "request")
    }
}
