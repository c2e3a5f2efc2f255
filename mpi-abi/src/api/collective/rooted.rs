//! Rooted operations (sections 6.4 to 6.6), and the barrier (6.3).

use super::blocks::{blocks, received_blocks, sent_blocks};
use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{IntoI64, recv_buf, send_buf};
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::RecvBuf;
use std::ffi::{c_int, c_void};

pub unsafe fn plan_Barrier(comm: MPI_Comm) -> Planned {
    Plan::of(state::comm(comm)?, Call::Barrier)
}

pub unsafe fn plan_Bcast(
    buffer: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let buf = match root {
        inter::PROC_NULL => RecvBuf::empty(),
        // SAFETY: `buffer` is valid as the C binding of MPI_Bcast requires of its caller.
        _ => unsafe { recv_buf(buffer, count.wide(), datatype)? },
    };
    let call = Call::Bcast { buf, root };
    Plan::of(comm, call)
}

pub unsafe fn plan_Gather(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Gather requires of its caller.
    let (send, recv) = unsafe {
        let recv = comm
            .is_root(root)
            .then(|| recv_buf(recvbuf, recvcount.wide(), recvtype));
        (
            comm.sent_to(root, sendbuf, sendcount, sendtype)?,
            recv.transpose()?,
        )
    };
    let call = Call::Gather { send, recv, root };
    Plan::of(comm, call)
}

pub unsafe fn plan_Gatherv(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    displs: *const impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: `sendbuf`, `recvbuf`, `recvcounts` and `displs` are valid as the C binding of MPI_Gatherv requires of its caller.
    let (send, recv) = unsafe {
        let recv = match comm.is_root(root) {
            true => Some(received_blocks(
                recvbuf,
                blocks(comm.blocks(), recvcounts, displs, recvtype)?,
            )?),
            false => None,
        };
        (comm.sent_to(root, sendbuf, sendcount, sendtype)?, recv)
    };
    let call = Call::Gatherv { send, recv, root };
    Plan::of(comm, call)
}

pub unsafe fn plan_Scatter(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Scatter requires of its caller.
    let (send, recv) = unsafe {
        let send = comm
            .is_root(root)
            .then(|| send_buf(sendbuf, sendcount.wide(), sendtype));
        (
            send.transpose()?,
            comm.received_from(root, recvbuf, recvcount, recvtype)?,
        )
    };
    let call = Call::Scatter { send, recv, root };
    Plan::of(comm, call)
}

pub unsafe fn plan_Scatterv(
    sendbuf: *const c_void,
    sendcounts: *const impl IntoI64,
    displs: *const impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: `sendbuf`, `sendcounts`, `displs` and `recvbuf` are valid as the C binding of MPI_Scatterv requires of its caller.
    let (send, recv) = unsafe {
        let send = match comm.is_root(root) {
            true => Some(sent_blocks(
                sendbuf,
                blocks(comm.blocks(), sendcounts, displs, sendtype)?,
            )?),
            false => None,
        };
        (
            send,
            comm.received_from(root, recvbuf, recvcount, recvtype)?,
        )
    };
    let call = Call::Scatterv { send, recv, root };
    Plan::of(comm, call)
}
