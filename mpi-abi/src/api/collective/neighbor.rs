//! Neighbourhood collectives on a virtual topology (section 8.6).
//!
//! Buffers have one block for each neighbour, in the order of the topology's queries.
//! A grid has two blocks per dimension, also for the MPI_PROC_NULL neighbour at an open end.
//! The receive block of an MPI_PROC_NULL neighbour stays unchanged.
#![allow(unsafe_code)]

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{RecvBlocks, RecvMem, SendBlocks, SendMem};
use crate::error::Failure;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::coll::Call;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::topo::Neighbours;
use std::ffi::c_void;
use std::rc::Rc;

/// Returns the communicator and this process's neighbours on it.
fn neighbourhood(comm: MPI_Comm) -> Result<(Rc<CommObject>, Rc<Neighbours>), Failure> {
    let comm = state::comm(comm)?;
    let topology = comm.topology.get().ok_or_else(|| {
        Failure::new(
            MPI_ERR_TOPOLOGY,
            format!(
                "{} has no topology that says which ranks are neighbours",
                comm.label()
            ),
        )
    })?;
    let neighbours = topology.neighbours(comm.comm.rank())?;
    Ok((comm, neighbours.into()))
}

/// Returns the upper limit for the count of a block.
/// The limit is 0 for a process without neighbours, which needs no buffer; otherwise unlimited.
/// A negative count is an error in both cases.
fn limit(neighbours: usize) -> i64 {
    match neighbours {
        0 => 0,
        _ => i64::MAX,
    }
}

/// Returns the numbers of blocks in the send buffer and in the receive buffer.
fn degrees(neighbours: &Neighbours) -> (usize, usize) {
    (neighbours.destinations().len(), neighbours.sources().len())
}

/// Returns the send blocks, one for each destination.
fn sent_blocks(neighbours: &Neighbours, blocks: SendBlocks) -> Result<Rc<[SendBuf]>, Failure> {
    // SAFETY: a neighbourhood operation has one send block for each destination (section 8.6).
    unsafe { blocks.read(neighbours.destinations().len()) }
}

/// Returns the receive blocks, one for each source.
fn received_blocks(neighbours: &Neighbours, blocks: RecvBlocks) -> Result<Rc<[RecvBuf]>, Failure> {
    // SAFETY: a neighbourhood operation has one receive block for each source (section 8.6).
    unsafe { blocks.read(neighbours.sources().len()) }
}

/// Returns an error for `MPI_IN_PLACE`, which neighbourhood collectives do not support.
fn not_in_place(buf: *const c_void) -> Result<(), Failure> {
    if buf.addr() == MPI_IN_PLACE.addr() {
        return Err(Failure::new(
            MPI_ERR_BUFFER,
            "MPI_IN_PLACE has no meaning in a neighbourhood operation",
        ));
    }
    Ok(())
}

pub fn plan_Neighbor_allgather(sendbuf: SendMem, recvbuf: RecvMem, comm: MPI_Comm) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf.address())?;
    let (outdegree, indegree) = degrees(&neighbours);
    let (send, recv) = (
        sendbuf.up_to(limit(outdegree)).buffer()?,
        recvbuf.up_to(limit(indegree)).buffer_of_blocks(indegree)?,
    );
    let call = Call::NeighborAllgather {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub fn plan_Neighbor_allgatherv(sendbuf: SendMem, recvbuf: RecvBlocks, comm: MPI_Comm) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf.address())?;
    let (outdegree, _) = degrees(&neighbours);
    let (send, recv) = (
        sendbuf.up_to(limit(outdegree)).buffer()?,
        received_blocks(&neighbours, recvbuf)?,
    );
    let call = Call::NeighborAllgatherv {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub fn plan_Neighbor_alltoall(sendbuf: SendMem, recvbuf: RecvMem, comm: MPI_Comm) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf.address())?;
    let (outdegree, indegree) = degrees(&neighbours);
    let (send, recv) = (
        sendbuf
            .up_to(limit(outdegree))
            .buffer_of_blocks(outdegree)?,
        recvbuf.up_to(limit(indegree)).buffer_of_blocks(indegree)?,
    );
    let call = Call::NeighborAlltoall {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub fn plan_Neighbor_alltoallv(
    sendbuf: SendBlocks,
    recvbuf: RecvBlocks,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf.address())?;
    let (send, recv) = (
        sent_blocks(&neighbours, sendbuf)?,
        received_blocks(&neighbours, recvbuf)?,
    );
    let call = Call::NeighborAlltoallv {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub fn plan_Neighbor_alltoallw(
    sendbuf: SendBlocks,
    recvbuf: RecvBlocks,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf.address())?;
    let (send, recv) = (
        sent_blocks(&neighbours, sendbuf)?,
        received_blocks(&neighbours, recvbuf)?,
    );
    let call = Call::NeighborAlltoallw {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}
