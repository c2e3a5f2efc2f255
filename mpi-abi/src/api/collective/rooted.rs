//! Collectives with a root (sections 6.4 to 6.6), and the barrier (6.3).

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{RecvBlocks, RecvMem, SendBlocks, SendMem};
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::RecvBuf;
use std::ffi::c_int;

pub fn plan_Barrier(comm: MPI_Comm) -> Planned {
    Plan::of(state::comm(comm)?, Call::Barrier)
}

pub fn plan_Bcast(buffer: RecvMem, root: c_int, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let buf = match root {
        inter::PROC_NULL => RecvBuf::empty(),
        _ => buffer.buffer()?,
    };
    let call = Call::Bcast { buf, root };
    Plan::of(comm, call)
}

pub fn plan_Gather(sendbuf: SendMem, recvbuf: RecvMem, root: c_int, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let recv = (comm.is_root(root)).then(|| recvbuf.buffer_of_blocks(comm.blocks()));
    let (send, recv) = (comm.sent_to(root, sendbuf)?, recv.transpose()?);
    let call = Call::Gather { send, recv, root };
    Plan::of(comm, call)
}

pub fn plan_Gatherv(sendbuf: SendMem, recvbuf: RecvBlocks, root: c_int, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let recv = match comm.is_root(root) {
        true => Some(comm.received_blocks(recvbuf)?),
        false => None,
    };
    let send = comm.sent_to(root, sendbuf)?;
    let call = Call::Gatherv { send, recv, root };
    Plan::of(comm, call)
}

pub fn plan_Scatter(sendbuf: SendMem, recvbuf: RecvMem, root: c_int, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let send = (comm.is_root(root)).then(|| sendbuf.buffer_of_blocks(comm.blocks()));
    let (send, recv) = (send.transpose()?, comm.received_from(root, recvbuf)?);
    let call = Call::Scatter { send, recv, root };
    Plan::of(comm, call)
}

pub fn plan_Scatterv(
    sendbuf: SendBlocks,
    recvbuf: RecvMem,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let send = match comm.is_root(root) {
        true => Some(comm.sent_blocks(sendbuf)?),
        false => None,
    };
    let recv = comm.received_from(root, recvbuf)?;
    let call = Call::Scatterv { send, recv, root };
    Plan::of(comm, call)
}
