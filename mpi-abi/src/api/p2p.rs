//! Point-to-point communication except send-receive: blocking, nonblocking and persistent (sections 3.2 to 3.10).

use super::args::{out, plain_data, plain_room, recv_buf, send_buf};
use super::completion::set_received;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::registry::request::{DONE, persistent, running, running_for};
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::Operation;
use std::ffi::{c_int, c_void};
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

/// Checks the arguments of a send.
///
/// # Safety
/// As [`send_buf`].
#[inline]
pub(super) unsafe fn outgoing(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    tag: c_int,
    comm: MPI_Comm,
) -> Result<(Rc<CommObject>, SendBuf), Failure> {
    let comm = state::comm(comm)?;
    check_tag(tag)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok((comm, unsafe { send_buf(buf, count, datatype)? }))
}

/// Checks the arguments of a receive.
///
/// # Safety
/// As [`recv_buf`].
#[inline]
pub(super) unsafe fn incoming(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    tag: c_int,
    comm: MPI_Comm,
) -> Result<(Rc<CommObject>, RecvBuf), Failure> {
    let comm = state::comm(comm)?;
    check_recv_tag(tag)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok((comm, unsafe { recv_buf(buf, count, datatype)? }))
}

/// Sends a short message of a predefined type, if it can be sent at once; otherwise has no effect.
///
/// # Safety
/// As [`send_buf`].
#[inline(always)]
unsafe fn sent_at_once(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: &CommObject,
) -> bool {
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let data = unsafe { plain_data(buf, count, datatype) };
    tag >= 0 && data.is_some_and(|data| comm.comm.p2p().try_send(data, dest, tag))
}

/// `MPI_Send` and `MPI_Rsend`: a ready send may always be a standard send (section 3.4).
///
/// # Safety
/// As [`send_buf`].
#[inline(always)]
unsafe fn send_standard(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    let comm = state::comm(comm)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    if unsafe { sent_at_once(buf, count, datatype, dest, tag, &comm) } {
        return Ok(());
    }
    check_tag(tag)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let buf = unsafe { send_buf(buf, count, datatype)? };
    Ok(comm.comm.p2p().send(buf, dest, tag, Mode::Standard)?)
}

/// `MPI_Isend` and `MPI_Irsend`.
///
/// # Safety
/// As [`send_buf`] and [`out`].
#[inline(always)]
unsafe fn isend_standard(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = state::comm(comm)?;
    // SAFETY: `buf` and `request` are valid by the `# Safety` contract of this function.
    unsafe {
        if !request.is_null() && sent_at_once(buf, count, datatype, dest, tag, &comm) {
            request.write(DONE);
            return Ok(());
        }
        check_tag(tag)?;
        let buf = send_buf(buf, count, datatype)?;
        let started = comm.comm.p2p().isend(buf, dest, tag, Mode::Standard)?;
        out(request, sent(started, &comm)?, "request")
    }
}

/// Returns a handle for a send that has been started.
fn sent(sent: Sent, comm: &Rc<CommObject>) -> Result<MPI_Request, Failure> {
    match sent {
        Sent::Done => Ok(DONE),
        Sent::Pending(req) => running(req, comm),
    }
}

/// Sends through the attached buffer.
fn send_buffered(comm: &CommObject, buf: &SendBuf, dest: c_int, tag: c_int) -> Outcome {
    Ok(comm.send_buffer().send(&comm.comm, buf, dest, tag)?)
}

#[inline(always)]
pub unsafe fn MPI_Send_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_Send_c requires of its caller.
    unsafe { send_standard(buf, count, datatype, dest, tag, comm) }
}

#[inline(always)]
pub unsafe fn MPI_Isend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Isend_c requires of its caller.
    unsafe { isend_standard(buf, count, datatype, dest, tag, comm, request) }
}

pub unsafe fn MPI_Send_init_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Send_init_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        let mode = Mode::Standard;
        out(
            request,
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
}

pub unsafe fn MPI_Ssend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_Ssend_c requires of its caller.
    let (comm, buf) = unsafe { outgoing(buf, count, datatype, tag, comm)? };
    Ok(comm.comm.p2p().send(buf, dest, tag, Mode::Synchronous)?)
}

pub unsafe fn MPI_Issend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Issend_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        let started = comm.comm.p2p().isend(buf, dest, tag, Mode::Synchronous)?;
        out(request, sent(started, &comm)?, "request")
    }
}

pub unsafe fn MPI_Ssend_init_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Ssend_init_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        let mode = Mode::Synchronous;
        out(
            request,
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
}

pub unsafe fn MPI_Rsend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_Rsend_c requires of its caller.
    unsafe { send_standard(buf, count, datatype, dest, tag, comm) }
}

pub unsafe fn MPI_Irsend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Irsend_c requires of its caller.
    unsafe { isend_standard(buf, count, datatype, dest, tag, comm, request) }
}

pub unsafe fn MPI_Rsend_init_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Rsend_init_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        let mode = Mode::Standard;
        out(
            request,
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
}

pub unsafe fn MPI_Bsend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_Bsend_c requires of its caller.
    let (comm, buf) = unsafe { outgoing(buf, count, datatype, tag, comm)? };
    send_buffered(&comm, &buf, dest, tag)
}

pub unsafe fn MPI_Ibsend_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Ibsend_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        send_buffered(&comm, &buf, dest, tag)?;
        out(request, DONE, "request")
    }
}

pub unsafe fn MPI_Bsend_init_c(
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Bsend_init_c requires of its caller.
    unsafe {
        let (comm, buf) = outgoing(buf, count, datatype, tag, comm)?;
        out(
            request,
            persistent(&comm, Operation::Buffered { buf, dest, tag })?,
            "request",
        )
    }
}

#[inline(always)]
pub unsafe fn MPI_Recv_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let object = state::comm(comm)?;
    check_recv_tag(tag)?;
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_Recv_c requires of its caller.
    unsafe {
        let received = match plain_room(buf, count, datatype) {
            Some(room) => object.comm.p2p().recv_bytes(room, source, tag),
            None => {
                let buf = recv_buf(buf, count, datatype)?;
                object.comm.p2p().recv(buf, source, tag)
            }
        };
        set_received(status, received)
    }
}

#[inline(always)]
pub unsafe fn MPI_Irecv_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::comm(comm)?;
    check_recv_tag(tag)?;
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Irecv_c requires of its caller.
    unsafe {
        let req = match plain_room(buf, count, datatype) {
            Some(room) => object.comm.p2p().irecv(room, source, tag)?,
            None => {
                let buf = recv_buf(buf, count, datatype)?;
                object.comm.p2p().irecv(buf, source, tag)?
            }
        };
        out(request, running_for(req, Some(object))?, "request")
    }
}

pub unsafe fn MPI_Recv_init_c(
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_Recv_init_c requires of its caller.
    unsafe {
        let (comm, buf) = incoming(buf, count, datatype, tag, comm)?;
        out(
            request,
            persistent(&comm, Operation::Recv { buf, source, tag })?,
            "request",
        )
    }
}
