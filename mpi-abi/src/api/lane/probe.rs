//! Probes and matched receives in lanes.

use super::p2p::{land, memory, with_twin};
use crate::abi::*;
use crate::api::args::{InOut, Out, RecvMem};
use crate::api::completion::{set_received, set_status};
use crate::api::p2p::check_recv_tag;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::lanes::{self, Contents, Object, Pending, Twin};
use crate::registry::request::c_status;
use mpi_core::pml::Message;
use mpi_core::request::Status;
use std::ffi::c_int;
use std::rc::Rc;

/// Checks the arguments of a probe. Returns true if the source is `MPI_PROC_NULL`.
fn is_of_none(twin: &Twin, source: c_int) -> Result<bool, Failure> {
    twin.check_source(source)?;
    Ok(source == MPI_PROC_NULL)
}

pub fn lane_Probe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let run = || {
        check_recv_tag(tag)?;
        let found = with_twin(at, comm, |_, twin| match is_of_none(twin, source)? {
            true => Ok(Status::PROC_NULL),
            false => Ok(twin.probe(source, tag)),
        })?;
        set_status(status, &c_status(found));
        Ok(())
    };
    Some(run())
}

pub fn lane_Iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let run = || {
        check_recv_tag(tag)?;
        let found = with_twin(at, comm, |_, twin| match is_of_none(twin, source)? {
            true => Ok(Some(Status::PROC_NULL)),
            false => Ok(twin.iprobe(source, tag)),
        })?;
        if let Some(found) = found {
            set_status(status, &c_status(found));
        }
        flag.set(found.is_some().into(), "flag")
    };
    Some(run())
}

/// Registers a handle for a message matched by a probe.
fn register(
    contents: &Contents,
    lane: usize,
    message: Message,
    twin: &Rc<Twin>,
) -> Result<(MPI_Message, Status), Failure> {
    let status = message.status;
    let mut messages = contents.messages().borrow_mut();
    let handle = messages.insert_message(lane, (message, twin.clone()));
    let handle = handle
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many matched messages"))?;
    Ok((handle, status))
}

pub fn lane_Mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let run = || {
        check_recv_tag(tag)?;
        let (handle, found) = with_twin(at, comm, |contents, twin| {
            if is_of_none(twin, source)? {
                return Ok((MPI_MESSAGE_NO_PROC, Status::PROC_NULL));
            }
            register(contents, at.lane, twin.mprobe(source, tag), twin)
        })?;
        set_status(status, &c_status(found));
        message.set(handle, "message")
    };
    Some(run())
}

pub fn lane_Improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: Out<c_int>,
    message: Out<MPI_Message>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let at = lanes::of_comm(comm)?;
    let run = || {
        check_recv_tag(tag)?;
        let found = with_twin(at, comm, |contents, twin| {
            if is_of_none(twin, source)? {
                return Ok(Some((MPI_MESSAGE_NO_PROC, Status::PROC_NULL)));
            }
            let found = twin.improbe(source, tag);
            found
                .map(|found| register(contents, at.lane, found, twin))
                .transpose()
        })?;
        flag.set(found.is_some().into(), "flag")?;
        let Some((handle, found)) = found else {
            return Ok(());
        };
        set_status(status, &c_status(found));
        message.set(handle, "message")
    };
    Some(run())
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
    let (lane, handle) = lane_of(message)?;
    let run = || {
        let (bytes, landing) = memory(buf)?;
        let (received, blamed) = lanes::within(lane, |contents| {
            let (found, twin) = take(contents, handle)?;
            let received = twin.engine().wait(&twin.imrecv(found, bytes));
            Ok::<_, Failure>((received, twin.target()))
        })?;
        land(landing, &received);
        message.set(MPI_MESSAGE_NULL, "message")?;
        set_received(status, received).map_err(|failure| failure.on(blamed))
    };
    Some(run())
}

pub fn lane_Imrecv_c(
    buf: RecvMem,
    message: InOut<MPI_Message>,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    let (lane, handle) = lane_of(message)?;
    let run = || {
        let (bytes, landing) = memory(buf)?;
        let started = lanes::within(lane, |contents| {
            if landing.is_some() {
                contents.check_room()?;
            }
            let (found, twin) = take(contents, handle)?;
            let req = twin.imrecv(found, bytes);
            if landing.is_none() {
                return contents.running(lane, req, twin);
            }
            let pending = Pending {
                receive: Some(req),
                send: None,
                data: Vec::new(),
                landing,
            };
            contents.register(lane, Object::Once(pending, twin))
        })?;
        message.set(MPI_MESSAGE_NULL, "message")?;
        request.set(started, "request")
    };
    Some(run())
}
