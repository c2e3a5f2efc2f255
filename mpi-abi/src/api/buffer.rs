//! Buffers for buffered sends: per process, per session and per communicator (section 3.6).

use super::args::Out;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::lanes;
use crate::object::buffer::UserBuffer;
use crate::object::comm::CommObject;
use crate::registry::request::running_for;
use crate::state::{self, state};
use mpi_core::Engine;
use mpi_core::pml::buffered::Buffer;
use std::ffi::c_void;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Attaches a buffer of the program, or `MPI_BUFFER_AUTOMATIC`.
fn attach(buffer: &Buffer, user: &UserBuffer, address: *mut c_void, size: MPI_Count) -> Outcome {
    let automatic = address.addr() == MPI_BUFFER_AUTOMATIC.addr();
    let limit = u64::try_from(size)
        .map_err(|_| Failure::new(MPI_ERR_BUFFER, format!("size is {size}, which is negative")))?;
    buffer.attach((!automatic).then_some(limit))?;
    user.set(address, size);
    Ok(())
}

/// Waits until all messages in the buffer have been sent, and detaches the buffer.
fn detach(
    buffer: &Buffer,
    user: &UserBuffer,
    address: Out<*mut c_void>,
    size: Out<MPI_Count>,
    drain: impl FnOnce(&Engine),
) -> Outcome {
    let engine = state::engine()?;
    buffer.detach(&engine)?;
    drain(&engine);
    let (was, long) = user.take().unwrap_or((std::ptr::null_mut(), 0));
    address.set(was, "buffer_addr")?;
    size.set(long, "size")
}

pub fn MPI_Buffer_attach_c(buffer: *mut c_void, size: MPI_Count) -> Outcome {
    attach(
        state::engine()?.buffer(),
        state().program().buffer(),
        buffer,
        size,
    )
}

pub fn MPI_Buffer_detach_c(buffer_addr: Out<*mut c_void>, size: Out<MPI_Count>) -> Outcome {
    detach(
        state::engine()?.buffer(),
        state().program().buffer(),
        buffer_addr,
        size,
        lanes::drain,
    )
}

pub fn MPI_Buffer_flush() -> Outcome {
    let engine = state::engine()?;
    engine.buffer().flush(&engine)?;
    lanes::drain(&engine);
    Ok(())
}

/// Starts a flush, a request that completes when all messages of a buffer have been sent.
fn iflush(
    empty: impl Fn() -> bool + 'static,
    comm: Option<Rc<CommObject>>,
    request: Out<MPI_Request>,
) -> Outcome {
    // The completion of a send in another lane is no event of lane 0.
    let awake = lanes::are_in_use()
        .then(|| state::engine().map(|engine| engine.operations().poll_memory()));
    let awake = awake.transpose()?;
    let done = poll_fn(move |_| {
        let _ = &awake;
        match empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    });
    let req = state::engine()?.operations().start(Box::pin(done));
    request.set(running_for(req, comm)?, "request")
}

pub fn MPI_Buffer_iflush(request: Out<MPI_Request>) -> Outcome {
    let engine = state::engine()?;
    let empty = move || is_empty(engine.buffer(), &engine) && lanes::are_sent(None);
    iflush(empty, None, request)
}

/// Releases the completed sends, and returns true if the buffer is empty.
fn is_empty(buffer: &Buffer, engine: &Engine) -> bool {
    buffer.reap(engine);
    buffer.is_empty()
}

pub fn MPI_Comm_attach_buffer_c(comm: MPI_Comm, buffer: *mut c_void, size: MPI_Count) -> Outcome {
    let comm = state::comm(comm)?;
    attach(&comm.buffer, &comm.user_buffer, buffer, size)
}

pub fn MPI_Comm_detach_buffer_c(
    comm: MPI_Comm,
    buffer_addr: Out<*mut c_void>,
    size: Out<MPI_Count>,
) -> Outcome {
    let object = state::comm(comm)?;
    let drain = |engine: &Engine| lanes::drain_comm(engine, comm, false);
    let (buffer, user) = (&object.buffer, &object.user_buffer);
    detach(buffer, user, buffer_addr, size, drain)
}

pub fn MPI_Comm_flush_buffer(comm: MPI_Comm) -> Outcome {
    let engine = state::engine()?;
    state::comm(comm)?.buffer.flush(&engine)?;
    lanes::drain_comm(&engine, comm, false);
    Ok(())
}

pub fn MPI_Comm_iflush_buffer(comm: MPI_Comm, request: Out<MPI_Request>) -> Outcome {
    let (engine, object) = (state::engine()?, state::comm(comm)?);
    let held = object.clone();
    let empty = move || is_empty(&held.buffer, &engine) && lanes::are_sent(Some(comm));
    iflush(empty, Some(object), request)
}

pub fn MPI_Session_attach_buffer_c(
    session: MPI_Session,
    buffer: *mut c_void,
    size: MPI_Count,
) -> Outcome {
    let session = state::session(session)?;
    attach(&session.buffer, &session.user_buffer, buffer, size)
}

pub fn MPI_Session_detach_buffer_c(
    session: MPI_Session,
    buffer_addr: Out<*mut c_void>,
    size: Out<MPI_Count>,
) -> Outcome {
    let session = state::session(session)?;
    // Communicators of sessions have no lanes.
    let (buffer, user) = (&session.buffer, &session.user_buffer);
    detach(buffer, user, buffer_addr, size, |_| ())
}

pub fn MPI_Session_flush_buffer(session: MPI_Session) -> Outcome {
    Ok(state::session(session)?.buffer.flush(&state::engine()?)?)
}

pub fn MPI_Session_iflush_buffer(session: MPI_Session, request: Out<MPI_Request>) -> Outcome {
    let (engine, session) = (state::engine()?, state::session(session)?);
    let empty = move || is_empty(&session.buffer, &engine);
    iflush(empty, None, request)
}
