//! Persistent sends and receives in lanes.

use super::p2p::{outgoing, place, start};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::api::p2p::{check_recv_tag, check_tag};
use crate::error::Outcome;
use crate::lanes::{self, Address, Object, Persistent, Transfer};
use mpi_core::pml::Mode;
use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

/// Registers a persistent operation.
fn register(
    at: Address,
    comm: MPI_Comm,
    transfer: Transfer,
    (peer, tag): (c_int, c_int),
    request: Out<MPI_Request>,
) -> Outcome {
    start(at, comm, request, |contents, twin| {
        match &transfer {
            Transfer::Receive(_) => twin.check_source(peer)?,
            _ => twin.check_dest(peer)?,
        }
        let persistent = Persistent {
            twin: twin.clone(),
            transfer,
            peer,
            tag,
            active: RefCell::new(None),
        };
        contents.register(Object::Persistent(Rc::new(persistent)))
    })
}

/// Registers a persistent send in this mode, or a buffered one.
fn send_init(
    buf: SendMem,
    (dest, tag): (c_int, c_int),
    comm: MPI_Comm,
    request: Out<MPI_Request>,
    mode: Option<Mode>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_tag(tag)?;
        let data = outgoing(buf)?;
        let transfer = match mode {
            Some(mode) => Transfer::Send { data, mode },
            None => Transfer::Buffered { data },
        };
        register(at, comm, transfer, (dest, tag), request)
    })
}

pub fn lane_Send_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    send_init(buf, (dest, tag), comm, request, Some(Mode::Standard))
}

pub fn lane_Rsend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    send_init(buf, (dest, tag), comm, request, Some(Mode::Standard))
}

pub fn lane_Ssend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    send_init(buf, (dest, tag), comm, request, Some(Mode::Synchronous))
}

pub fn lane_Bsend_init_c(
    buf: SendMem,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    send_init(buf, (dest, tag), comm, request, None)
}

pub fn lane_Recv_init_c(
    buf: RecvMem,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: Out<MPI_Request>,
) -> Option<Outcome> {
    lanes::of_comm(comm).map(|at| {
        check_recv_tag(tag)?;
        let transfer = Transfer::Receive(place(buf)?);
        register(at, comm, transfer, (source, tag), request)
    })
}
