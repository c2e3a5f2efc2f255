//! Neighbourhood collectives on a virtual topology (section 8.6).
//!
//! Buffers have a block for each neighbour in the order of the topology's queries: for a grid two for each dimension,
//! also beyond an open end, where a block of the receive buffer stays unchanged.

use super::blocks::{blocks, received_blocks, sent_blocks, typed_blocks};
use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{IntoI64, recv_buf, send_buf};
use crate::error::Failure;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::coll::Call;
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

/// The count of each block of a buffer with one block for each neighbour: without neighbours no buffer is needed.
fn of_blocks(count: impl IntoI64, neighbours: usize) -> i64 {
    match neighbours {
        // A negative count is an error all the same.
        0 => count.wide().min(0),
        _ => count.wide(),
    }
}

/// The numbers of blocks in a send buffer and in a receive buffer.
fn degrees(neighbours: &Neighbours) -> (usize, usize) {
    (neighbours.destinations().len(), neighbours.sources().len())
}

/// Fails for `MPI_IN_PLACE`, which no neighbourhood operation supports.
fn not_in_place(buf: *const c_void) -> Result<(), Failure> {
    if buf.addr() == MPI_IN_PLACE.addr() {
        return Err(Failure::new(
            MPI_ERR_BUFFER,
            "MPI_IN_PLACE has no meaning in a neighbourhood operation",
        ));
    }
    Ok(())
}

pub unsafe fn plan_Neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf)?;
    let (outdegree, indegree) = degrees(&neighbours);
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Neighbor_allgather requires of its caller.
    let (send, recv) = unsafe {
        (
            send_buf(sendbuf, of_blocks(sendcount, outdegree), sendtype)?,
            recv_buf(recvbuf, of_blocks(recvcount, indegree), recvtype)?,
        )
    };
    let call = Call::NeighborAllgather {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    displs: *const impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf)?;
    let (outdegree, indegree) = degrees(&neighbours);
    // SAFETY: `sendbuf`, `recvbuf`, `recvcounts` and `displs` are valid as the C binding of MPI_Neighbor_allgatherv requires of its caller.
    let (send, recv) = unsafe {
        (
            send_buf(sendbuf, of_blocks(sendcount, outdegree), sendtype)?,
            received_blocks(recvbuf, blocks(indegree, recvcounts, displs, recvtype)?)?,
        )
    };
    let call = Call::NeighborAllgatherv {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Neighbor_alltoall(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf)?;
    let (outdegree, indegree) = degrees(&neighbours);
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Neighbor_alltoall requires of its caller.
    let (send, recv) = unsafe {
        (
            send_buf(sendbuf, of_blocks(sendcount, outdegree), sendtype)?,
            recv_buf(recvbuf, of_blocks(recvcount, indegree), recvtype)?,
        )
    };
    let call = Call::NeighborAlltoall {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Neighbor_alltoallv(
    sendbuf: *const c_void,
    sendcounts: *const impl IntoI64,
    sdispls: *const impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    rdispls: *const impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf)?;
    let (outdegree, indegree) = degrees(&neighbours);
    // SAFETY: `sendbuf`, `sendcounts`, `sdispls`, `recvbuf`, `recvcounts` and `rdispls` are valid as the C binding of MPI_Neighbor_alltoallv requires of its caller.
    let (send, recv) = unsafe {
        (
            sent_blocks(sendbuf, blocks(outdegree, sendcounts, sdispls, sendtype)?)?,
            received_blocks(recvbuf, blocks(indegree, recvcounts, rdispls, recvtype)?)?,
        )
    };
    let call = Call::NeighborAlltoallv {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Neighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const impl IntoI64,
    sdispls: *const MPI_Aint,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    rdispls: *const MPI_Aint,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let (comm, neighbours) = neighbourhood(comm)?;
    not_in_place(sendbuf)?;
    let (outdegree, indegree) = degrees(&neighbours);
    // SAFETY: `sendbuf`, `sendcounts`, `sdispls`, `sendtypes`, `recvbuf`, `recvcounts`, `rdispls` and `recvtypes` are valid as the C binding of MPI_Neighbor_alltoallw requires of its caller.
    let (send, recv) = unsafe {
        (
            sent_blocks(
                sendbuf,
                typed_blocks(outdegree, sendcounts, sdispls, sendtypes)?,
            )?,
            received_blocks(
                recvbuf,
                typed_blocks(indegree, recvcounts, rdispls, recvtypes)?,
            )?,
        )
    };
    let call = Call::NeighborAlltoallw {
        neighbours,
        send,
        recv,
    };
    Plan::of(comm, call)
}
