//! Point-to-point communication: blocking, nonblocking and persistent (sections 3.2 to 3.10).
//!
//! Send-receive is in `sendrecv`.

use super::args::{Out, RecvMem, SendMem};
use super::completion::{landed, set_received};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::registry::request::{DONE, persistent, running, running_for};
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::Operation;
use std::ffi::c_int;
use std::rc::Rc;

/// Checks the tag of a send.
#[inline]
pub(crate) fn check_tag(tag: c_int) -> Outcome {
    if tag < 0 {
        return Err(wrong_tag(tag));
    }
    Ok(())
}

/// Checks the tag of a receive.
#[inline]
pub(crate) fn check_recv_tag(tag: c_int) -> Outcome {
    if tag < 0 && tag != MPI_ANY_TAG {
        return Err(wrong_tag(tag));
    }
    Ok(())
}

#[cold]
fn wrong_tag(tag: c_int) -> Failure {
    let name = if tag == MPI_ANY_TAG {
        ", which is MPI_ANY_TAG and only for receives"
    } else {
        ", which is negative"
    };
    Failure::new(MPI_ERR_TAG, format!("tag is {tag}{name}"))
}

/// Checks the arguments of a send. Returns the communicator and the send buffer.
#[inline]
pub(super) fn outgoing(
    buf: SendMem,
    tag: c_int,
    comm: MPI_Comm,
) -> Result<(Rc<CommObject>, SendBuf), Failure> {
    let comm = state::comm(comm)?;
    check_tag(tag)?;
    Ok((comm, buf.buffer()?))
}

/// Checks the arguments of a send, as [`outgoing`] does, for a send that is not buffered.
#[inline]
pub(super) fn outgoing_message(
    buf: SendMem,
    tag: c_int,
    comm: MPI_Comm,
) -> Result<(Rc<CommObject>, SendBuf), Failure> {
    let comm = state::comm(comm)?;
    check_tag(tag)?;
    Ok((comm, buf.message_buffer()?))
}

/// Checks the arguments of a receive. Returns the communicator and the receive buffer.
#[inline]
pub(super) fn incoming(
    buf: RecvMem,
    tag: c_int,
    comm: MPI_Comm,
) -> Result<(Rc<CommObject>, RecvBuf), Failure> {
    let comm = state::comm(comm)?;
    check_recv_tag(tag)?;
    Ok((comm, buf.message_buffer()?))
}

/// Sends a short message of a predefined type if the send completes immediately.
/// Otherwise has no effect and returns false.
#[inline(always)]
fn sent_at_once(buf: SendMem, dest: c_int, tag: c_int, comm: &CommObject) -> bool {
    let data = buf.plain();
    tag >= 0 && data.is_some_and(|data| comm.comm.p2p().try_send(data, dest, tag))
}

/// `MPI_Send` and `MPI_Rsend`: a ready send may be executed as a standard send (section 3.4).
#[inline(always)]
fn send_standard(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Outcome {
    let comm = state::comm(comm)?;
    if sent_at_once(buf, dest, tag, &comm) {
        return Ok(());
    }
    check_tag(tag)?;
    let buf = buf.message_buffer()?;
    Ok(comm.comm.p2p().send(buf, dest, tag, Mode::Standard)?)
}

/// `MPI_Isend` and `MPI_Irsend`: a ready send is executed as a standard send.
#[inline(always)]
fn isend_standard(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let comm = state::comm(comm)?;
    if !request.is_null() && sent_at_once(buf, dest, tag, &comm) {
        request.put(DONE);
        return Ok(());
    }
    check_tag(tag)?;
    let buf = buf.message_buffer()?;
    let started = comm.comm.p2p().isend(buf, dest, tag, Mode::Standard)?;
    request.set(sent(started, &comm)?, "request")
}

/// Returns a request handle for a send that has been started.
fn sent(sent: Sent, comm: &Rc<CommObject>) -> Result<MPI_Request, Failure> {
    match sent {
        Sent::Done => Ok(DONE),
        Sent::Pending(req) => running(req, comm),
    }
}

/// Sends a message through the attached buffer (`MPI_Bsend`).
fn send_buffered(comm: &CommObject, buf: &SendBuf, dest: c_int, tag: c_int) -> Outcome {
    Ok(comm.send_buffer().send(&comm.comm, buf, dest, tag)?)
}

#[inline(always)]
pub fn MPI_Send_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Outcome {
    send_standard(buf, dest, tag, comm)
}

#[inline(always)]
pub fn MPI_Isend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    isend_standard(buf, dest, tag, comm, request)
}

pub fn MPI_Send_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing_message(buf, tag, comm)?;
    let mode = Mode::Standard;
    request.set(
        persistent(
            &comm,
            Operation::Send {
                buf,
                dest,
                tag,
                mode,
            },
        )?,
        "request",
    )
}

pub fn MPI_Ssend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Outcome {
    let (comm, buf) = outgoing_message(buf, tag, comm)?;
    Ok(comm.comm.p2p().send(buf, dest, tag, Mode::Synchronous)?)
}

pub fn MPI_Issend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing_message(buf, tag, comm)?;
    let started = comm.comm.p2p().isend(buf, dest, tag, Mode::Synchronous)?;
    request.set(sent(started, &comm)?, "request")
}

pub fn MPI_Ssend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing_message(buf, tag, comm)?;
    let mode = Mode::Synchronous;
    request.set(
        persistent(
            &comm,
            Operation::Send {
                buf,
                dest,
                tag,
                mode,
            },
        )?,
        "request",
    )
}

pub fn MPI_Rsend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Outcome {
    send_standard(buf, dest, tag, comm)
}

pub fn MPI_Irsend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    isend_standard(buf, dest, tag, comm, request)
}

pub fn MPI_Rsend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing_message(buf, tag, comm)?;
    let mode = Mode::Standard;
    request.set(
        persistent(
            &comm,
            Operation::Send {
                buf,
                dest,
                tag,
                mode,
            },
        )?,
        "request",
    )
}

pub fn MPI_Bsend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Outcome {
    let (comm, buf) = outgoing(buf, tag, comm)?;
    send_buffered(&comm, &buf, dest, tag)
}

pub fn MPI_Ibsend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing(buf, tag, comm)?;
    send_buffered(&comm, &buf, dest, tag)?;
    request.set(DONE, "request")
}

pub fn MPI_Bsend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = outgoing(buf, tag, comm)?;
    request.set(
        persistent(&comm, Operation::Buffered { buf, dest, tag })?,
        "request",
    )
}

#[inline(always)]
pub fn MPI_Recv_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Outcome {
    let object = state::comm(comm)?;
    check_recv_tag(tag)?;
    let received = match buf.plain() {
        Some(bytes) => object.comm.p2p().recv_bytes(bytes, source, tag),
        None => {
            let buf = buf.message_buffer()?;
            landed(object.comm.p2p().recv(buf, source, tag))
        }
    };
    set_received(status, received)
}

#[inline(always)]
pub fn MPI_Irecv_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let object = state::comm(comm)?;
    check_recv_tag(tag)?;
    let req = match buf.plain() {
        Some(bytes) => object.comm.p2p().irecv(bytes, source, tag)?,
        None => object
            .comm
            .p2p()
            .irecv(buf.message_buffer()?, source, tag)?,
    };
    request.set(running_for(req, Some(object))?, "request")
}

pub fn MPI_Recv_init_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Outcome {
    let (comm, buf) = incoming(buf, tag, comm)?;
    request.set(
        persistent(&comm, Operation::Recv { buf, source, tag })?,
        "request",
    )
}
