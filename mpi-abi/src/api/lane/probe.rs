//! Probes and matched receives in lanes.

use super::p2p::{land, memory, with_twin};
use crate::abi::*;
use crate::api::args::{InOut, Out, RecvMem};
use crate::api::completion::{set_received, set_status};
use crate::api::p2p::check_recv_tag;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::lanes::{self, Address, Contents, Twin};
use crate::registry::request::c_status;
use mpi_core::pml::Message;
use mpi_core::request::Status;
use std::ffi::c_int;
use std::rc::Rc;

/// Runs `find` with the twin of a communicator, in its lane, or returns `of_none` if the source is `MPI_PROC_NULL`.
fn with_source<R>(
    at: Address,
    comm: MPI_Comm,
    (source, tag): (c_int, c_int),
    of_none: R,
    find: impl FnOnce(&Contents, &Rc<Twin>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    check_recv_tag(tag)?;
    with_twin(at, comm, |contents, twin| {
        twin.check_source(source)?;
        match source {
            MPI_PROC_NULL => Ok(of_none),
            _ => find(contents, twin),
        }
    })
}

/// The result of a matched probe of `MPI_PROC_NULL`.
const NONE: (MPI_Message, Status) = (MPI_MESSAGE_NO_PROC, Status::PROC_NULL);

/// Stores the message and the status that a matched probe has found.
fn store(
    (handle, found): (MPI_Message, Status),
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Outcome {
    set_status(status, &c_status(found));
    message.set(handle, "message")
}

pub fn lane_Probe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let find = |_: &Contents, twin: &Rc<Twin>| Ok(twin.probe(source, tag));
    let found = with_source(at, comm, (source, tag), Status::PROC_NULL, find);
    Some(found.map(|found| set_status(status, &c_status(found))))
}

pub fn lane_Iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        let find = |_: &Contents, twin: &Rc<Twin>| Ok(twin.iprobe(source, tag));
        let found = with_source(at, comm, (source, tag), Some(Status::PROC_NULL), find)?;
        if let Some(found) = found {
            set_status(status, &c_status(found));
        }
        flag.set(found.is_some().into(), "flag")
    })
}

pub fn lane_Mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let find = |contents: &Contents, twin: &Rc<Twin>| {
        contents.register_message(twin.mprobe(source, tag), twin)
    };
    let found = with_source(at, comm, (source, tag), NONE, find);
    Some(found.and_then(|found| store(found, message, status)))
}

pub fn lane_Improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        let find = |contents: &Contents, twin: &Rc<Twin>| {
            let found = twin.improbe(source, tag);
            found
                .map(|found| contents.register_message(found, twin))
                .transpose()
        };
        let found = with_source(at, comm, (source, tag), Some(NONE), find)?;
        flag.set(found.is_some().into(), "flag")?;
        found.map_or(Ok(()), |found| store(found, message, status))
    })
}

/// Returns the lane of a matched message, or `None` if it belongs to lane 0.
fn lane_of(message: InOut<MPI_Message>) -> Option<(usize, MPI_Message)> {
    let handle = message.peek()?;
    Some((lanes::of_message(handle), handle)).filter(|(lane, _)| *lane != 0)
}

/// Removes a matched message. The caller is in its lane.
fn take(contents: &Contents, handle: MPI_Message) -> Result<(Message, Rc<Twin>), Failure> {
    let found = contents.messages().borrow_mut().remove(handle.0);
    found.ok_or_else(|| wrong(Kind::Message, handle.0))
}

pub fn lane_Mrecv_c(
    buf: RecvMem,
    message: InOut<MPI_Message>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    lane_of(message).map(|(lane, handle)| {
        let (bytes, landing) = memory(buf)?;
        let (received, blamed) = lanes::within(lane, |contents| {
            let (found, twin) = take(contents, handle)?;
            let received = twin.wait("MPI_Mrecv", &twin.imrecv(found, bytes));
            Ok::<_, Failure>((received, twin.target()))
        })?;
        land(landing, &received);
        message.set(MPI_MESSAGE_NULL, "message")?;
        set_received(status, received).map_err(|failure| failure.on(blamed))
    })
}

pub fn lane_Imrecv_c(
    buf: RecvMem,
    message: InOut<MPI_Message>,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    lane_of(message).map(|(lane, handle)| {
        let (bytes, landing) = memory(buf)?;
        let started = lanes::within(lane, |contents| {
            if landing.is_some() {
                // The message stays if the request cannot have a handle.
                contents.check_room()?;
            }
            let (found, twin) = take(contents, handle)?;
            contents.receiving(&twin, landing, || Ok(twin.imrecv(found, bytes)))
        })?;
        message.set(MPI_MESSAGE_NULL, "message")?;
        request.set(started, "request")
    })
}
