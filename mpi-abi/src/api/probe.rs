//! Probes and matched receives (section 3.8).

use super::args::{InOut, Out, RecvMem};
use super::completion::{landed, set_received, set_status};
use super::p2p::check_recv_tag;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::object::comm::CommObject;
use crate::registry::request::{c_status, running, running_for};
use crate::state::{self, state};
use mpi_core::comm::{Probed, name_of_constant};
use mpi_core::request::{Req, Status};
use std::ffi::c_int;
use std::rc::Rc;

/// Checks the arguments of a probe. Returns the communicator.
fn probing(source: c_int, tag: c_int, comm: MPI_Comm) -> Result<Rc<CommObject>, Failure> {
    let comm = state::comm(comm)?;
    check_recv_tag(tag)?;
    let known = source == MPI_ANY_SOURCE
        || source == MPI_PROC_NULL
        || u32::try_from(source).is_ok_and(|r| r < comm.comm.peers().size());
    if !known {
        let name = name_of_constant(source.into()).map(|name| format!(" ({name})"));
        let text = format!(
            "rank {source}{} is not in {}, which has ranks 0 to {}",
            name.unwrap_or_default(),
            comm.label(),
            comm.comm.peers().size().saturating_sub(1)
        );
        return Err(Failure::new(MPI_ERR_RANK, text));
    }
    Ok(comm)
}

pub fn MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: Out<MPI_Status>) -> Outcome {
    let found = probing(source, tag, comm)?
        .comm
        .probes()
        .probe(source, tag)?;
    set_status(status, &c_status(found));
    Ok(())
}

pub fn MPI_Iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    let found = probing(source, tag, comm)?
        .comm
        .probes()
        .iprobe(source, tag)?;
    if let Some(found) = found {
        set_status(status, &c_status(found));
    }
    flag.set(found.is_some().into(), "flag")
}

/// Registers a message handle for a message matched by a probe.
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

pub fn MPI_Mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Outcome {
    let comm = probing(source, tag, comm)?;
    let (handle, found) = register(comm.comm.probes().mprobe(source, tag)?, &comm)?;
    set_status(status, &c_status(found));
    message.set(handle, "message")
}

pub fn MPI_Improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Outcome {
    let comm = probing(source, tag, comm)?;
    let probed = comm.comm.probes().improbe(source, tag)?;
    flag.set(probed.is_some().into(), "flag")?;
    let Some(probed) = probed else {
        return Ok(());
    };
    let (handle, found) = register(probed, &comm)?;
    set_status(status, &c_status(found));
    message.set(handle, "message")
}

/// A matched receive that has been started.
enum Taken {
    /// The message was from `MPI_PROC_NULL`.
    Nothing,
    Receiving(Req, Rc<CommObject>),
}

/// Starts the receive of a matched message, and sets its handle to null.
fn take(buf: RecvMem, message: InOut<MPI_Message>) -> Result<Taken, Failure> {
    let (handle, buf) = (message.get("message")?, buf.message_buffer()?);
    let taken = if handle == MPI_MESSAGE_NO_PROC {
        Taken::Nothing
    } else {
        let found = state().tables().messages().borrow_mut().remove(handle.0);
        let (found, comm) = found.ok_or_else(|| wrong(Kind::Message, handle.0))?;
        Taken::Receiving(comm.comm.p2p().imrecv(found, buf), comm)
    };
    message.set(MPI_MESSAGE_NULL, "message")?;
    Ok(taken)
}

pub fn MPI_Mrecv_c(buf: RecvMem, message: InOut<MPI_Message>, status: Out<MPI_Status>) -> Outcome {
    match take(buf, message)? {
        Taken::Nothing => set_received(status, Ok(Status::PROC_NULL)),
        // The communicator is not an argument of the call, so the failure is assigned to it here.
        Taken::Receiving(req, comm) => {
            let received = comm.comm.engine().wait(&req);
            set_received(status, landed(received)).map_err(|failure| failure.of(&comm))
        }
    }
}

pub fn MPI_Imrecv_c(
    buf: RecvMem,
    message: InOut<MPI_Message>,
    request: Out<MPI_Request>,
) -> Outcome {
    let handle = match take(buf, message)? {
        Taken::Nothing => running_for(
            state::engine()?.operations().completed(Status::PROC_NULL),
            None,
        )?,
        Taken::Receiving(req, comm) => running(req, &comm)?,
    };
    request.set(handle, "request")
}
