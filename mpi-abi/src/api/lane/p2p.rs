//! Blocking and nonblocking sends and receives in lanes.

use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::api::completion::set_received;
use crate::api::p2p::{check_recv_tag, check_tag};
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::lanes::{self, Address, Contents, Landing, Object, Outgoing, Pending, Place, Twin};
use crate::registry::request::DONE;
use mpi_core::datatype::RecvBytes;
use mpi_core::pml::{Mode, Sent};
use mpi_core::request::Status;
use std::borrow::Cow;
use std::ffi::c_int;
use std::rc::Rc;

/// Runs `f` with the twin of a communicator, in its lane.
#[inline]
pub(super) fn with_twin<R>(
    at: Address,
    comm: MPI_Comm,
    f: impl FnOnce(&Contents, &Rc<Twin>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    lanes::within(at.lane, |contents| match contents.twin(at.slot) {
        Some(twin) => f(contents, &twin),
        None => Err(wrong(Kind::Comm, comm.0)),
    })
}

/// Same as [`with_twin`] for a function that starts an operation; stores the handle of its request.
#[inline]
pub(super) fn start(
    at: Address,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
    f: impl FnOnce(&Contents, &Rc<Twin>) -> Result<MPI_Request, Failure>,
) -> Outcome {
    let handle = with_twin(at, comm, f)?;
    request.set(handle, "request")
}

fn refuse_device() -> Failure {
    Failure::new(
        MPI_ERR_BUFFER,
        "the buffer is in device memory, and the parameter threads_lanes is above 1; messages of lanes need host memory",
    )
}

/// Checks the buffer of a send. The caller is in no lane.
pub(super) fn outgoing(buf: SendMem) -> Result<Outgoing, Failure> {
    match buf.plain() {
        Some(bytes) => Ok(Outgoing::of_bytes(bytes)),
        None if buf.is_on_device() => Err(refuse_device()),
        None => Outgoing::of_type(|| buf.message_buffer()),
    }
}

/// Checks the buffer of a receive. The caller is in no lane.
pub(super) fn place(buf: RecvMem) -> Result<Place, Failure> {
    match buf.plain() {
        Some(bytes) => Ok(Place::of_bytes(bytes)),
        None if buf.sent().is_on_device() => Err(refuse_device()),
        None => Place::of_type(|| buf.message_buffer()),
    }
}

/// Returns the data of a send, packed if they are of a derived datatype.
#[inline]
pub(super) fn data<'a>(buf: SendMem<'a>) -> Result<Cow<'a, [u8]>, Failure> {
    if let Some(bytes) = buf.plain() {
        return Ok(Cow::Borrowed(bytes));
    }
    let outgoing = outgoing(buf)?;
    let data = outgoing.data();
    outgoing.release();
    Ok(data)
}

/// Returns the memory for a message, and the [`Landing`] if it must be unpacked. The caller is in no lane.
#[inline(always)]
pub(super) fn memory(buf: RecvMem) -> Result<(RecvBytes, Option<Landing>), Failure> {
    match buf.plain() {
        Some(bytes) => Ok((bytes, None)),
        None => typed_memory(buf),
    }
}

#[cold]
fn typed_memory(buf: RecvMem) -> Result<(RecvBytes, Option<Landing>), Failure> {
    let place = place(buf)?;
    let ready = lanes::ready_place(&place);
    place.release();
    Ok(ready)
}

/// Unpacks a received message of a derived datatype. The caller is in no lane.
pub(super) fn land(landing: Option<Landing>, received: &Result<Status, mpi_core::Error>) {
    if let Some(landing) = landing {
        let status = match received {
            Ok(status) => Some(*status),
            Err(error) => error.received(),
        };
        landing.unpack(status.map_or(0, |status| status.bytes as usize));
    }
}

/// Waits for a send in a call of the function `call`.
#[inline]
fn send(
    call: &'static str,
    buf: SendMem,
    (dest, tag): (c_int, c_int),
    comm: MPI_Comm,
    mode: Mode,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_tag(tag)?;
        let data = data(buf)?;
        with_twin(at, comm, |_, twin| {
            twin.send(call, &data, (dest, tag), mode)
        })
    })
}

#[inline]
fn isend(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    mode: Mode,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_tag(tag)?;
        let data = data(buf)?;
        start(at, comm, request, |contents, twin| {
            if let Cow::Owned(_) = data {
                contents.check_room()?;
            }
            match (twin.isend(&data, dest, tag, mode)?, data) {
                (Sent::Done, _) => Ok(DONE),
                (Sent::Pending(req), Cow::Borrowed(_)) => contents.running(req, twin.clone()),
                (Sent::Pending(req), Cow::Owned(data)) => {
                    let pending = Pending {
                        receive: None,
                        send: Some(req),
                        data,
                        landing: None,
                    };
                    contents.register(Object::Once(pending, twin.clone()))
                }
            }
        })
    })
}

fn bsend(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_tag(tag)?;
        let data = data(buf)?.into_owned();
        with_twin(at, comm, |contents, twin| {
            contents.send_copy(twin, data, dest, tag)
        })
    })
}

pub fn lane_Send_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Option<Outcome> {
    send("MPI_Send", buf, (dest, tag), comm, Mode::Standard)
}

pub fn lane_Rsend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Option<Outcome> {
    send("MPI_Rsend", buf, (dest, tag), comm, Mode::Standard)
}

pub fn lane_Ssend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Option<Outcome> {
    send("MPI_Ssend", buf, (dest, tag), comm, Mode::Synchronous)
}

pub fn lane_Bsend_c(buf: SendMem, dest: c_int, tag: c_int, comm: MPI_Comm) -> Option<Outcome> {
    bsend(buf, dest, tag, comm)
}

pub fn lane_Isend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    isend(buf, dest, tag, comm, Mode::Standard, request)
}

pub fn lane_Irsend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    isend(buf, dest, tag, comm, Mode::Standard, request)
}

pub fn lane_Issend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    isend(buf, dest, tag, comm, Mode::Synchronous, request)
}

pub fn lane_Ibsend_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    let sent = bsend(buf, dest, tag, comm)?;
    Some(sent.and_then(|()| request.set(DONE, "request")))
}

pub fn lane_Recv_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_recv_tag(tag)?;
        let (bytes, landing) = memory(buf)?;
        let received = with_twin(at, comm, |_, twin| twin.recv(bytes, source, tag))?;
        land(landing, &received);
        set_received(status, received)
    })
}

pub fn lane_Irecv_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_recv_tag(tag)?;
        let (bytes, landing) = memory(buf)?;
        start(at, comm, request, |contents, twin| {
            contents.receiving(twin, landing, || twin.irecv(bytes, source, tag))
        })
    })
}
