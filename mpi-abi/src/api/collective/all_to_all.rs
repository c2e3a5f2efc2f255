//! All-gather and all-to-all collectives, with data for every rank (sections 6.7 and 6.8).

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{RecvBlocks, RecvMem, SendBlocks, SendMem};
use crate::state;
use mpi_core::coll::Call;

pub fn plan_Allgather(sendbuf: SendMem, recvbuf: RecvMem, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let send = comm.sent(sendbuf)?;
    let recv = recvbuf.buffer_of_blocks(comm.blocks())?;
    let call = Call::Allgather { send, recv };
    Plan::of(comm, call)
}

pub fn plan_Allgatherv(sendbuf: SendMem, recvbuf: RecvBlocks, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let recv = comm.received_blocks(recvbuf)?;
    let send = comm.sent(sendbuf)?;
    let call = Call::Allgatherv { send, recv };
    Plan::of(comm, call)
}

pub fn plan_Alltoall(sendbuf: SendMem, recvbuf: RecvMem, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let blocks = comm.blocks();
    let send = match comm.in_place(sendbuf.address())? {
        true => None,
        false => Some(sendbuf.buffer_of_blocks(blocks)?),
    };
    let recv = recvbuf.buffer_of_blocks(blocks)?;
    let call = Call::Alltoall { send, recv };
    Plan::of(comm, call)
}

pub fn plan_Alltoallv(sendbuf: SendBlocks, recvbuf: RecvBlocks, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let send = match comm.in_place(sendbuf.address())? {
        true => None,
        false => Some(comm.sent_blocks(sendbuf)?),
    };
    let recv = comm.received_blocks(recvbuf)?;
    let call = Call::Alltoallv { send, recv };
    Plan::of(comm, call)
}

pub fn plan_Alltoallw(sendbuf: SendBlocks, recvbuf: RecvBlocks, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let send = match comm.in_place(sendbuf.address())? {
        true => None,
        false => Some(comm.sent_blocks(sendbuf)?),
    };
    let recv = comm.received_blocks(recvbuf)?;
    let call = Call::Alltoallw { send, recv };
    Plan::of(comm, call)
}
