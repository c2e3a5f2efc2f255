//! Detection of aliased send and receive buffers in a collective call without `MPI_IN_PLACE`.
//!
//! An output buffer must not alias any other argument (MPI 5.0, section 2.3).
//! An algorithm may write results before it reads all operands, so aliasing corrupts results.
//! The check compares only addresses.
//! The check finds blocks that begin at the same address and have the same datatype.
//! In a buffer with one block per rank, the check compares this rank's own block,
//! which is the input of this rank if the program passes `MPI_IN_PLACE`.
//! In an all-to-all call, the check compares the send and the receive block of each rank.
//!
//! The fast calls compare only the buffer addresses, and call this check if these are equal.

use crate::abi::*;
use crate::error::{Failure, Outcome};
use mpi_core::coll::Call;
use mpi_core::comm::Comm;
use mpi_core::datatype::{RecvBuf, SendBuf};

/// Returns an error if the send and the receive buffer of the call are aliased.
#[inline(always)]
pub(super) fn check(comm: &Comm, call: &Call) -> Outcome {
    match shared(comm, call) {
        None => Ok(()),
        Some(shared) => Err(refused(comm, shared)),
    }
}

/// Returns the failure for aliased buffers in a call that does not allow `MPI_IN_PLACE`.
#[cold]
pub(crate) fn without_another_form(writes: &str, reads: &str) -> Failure {
    let text = format!(
        "{writes} is the same memory as {reads}, but what is written here must not lie where something is read: give one of them memory of its own"
    );
    Failure::new(MPI_ERR_BUFFER, text)
}

/// The way in which the send and the receive buffer are aliased.
enum Shared {
    /// The two buffers begin at the same address.
    Whole,
    /// The send buffer is this rank's block of the receive buffer.
    OwnOfRecv,
    /// The receive buffer is this rank's block of the send buffer.
    OwnOfSend,
    /// In a neighbourhood collective, a send block is also a receive block.
    Neighbours,
}

#[cold]
fn refused(comm: &Comm, shared: Shared) -> Failure {
    if comm.is_inter() || matches!(shared, Shared::Neighbours) {
        return without_another_form("recvbuf", "sendbuf");
    }
    let text = match shared {
        Shared::OwnOfRecv => {
            "sendbuf is the same memory as this rank's own block of recvbuf: pass MPI_IN_PLACE as sendbuf for data that are there already"
        }
        Shared::OwnOfSend => {
            "recvbuf is the same memory as this rank's own block of sendbuf: pass MPI_IN_PLACE as recvbuf for data that stay there"
        }
        _ => {
            "recvbuf is the same memory as sendbuf: pass MPI_IN_PLACE as sendbuf for data that the result replaces"
        }
    };
    Failure::new(MPI_ERR_BUFFER, text)
}

#[inline(always)]
fn shared(comm: &Comm, call: &Call) -> Option<Shared> {
    let (found, shared) = match call {
        // Includes MPI_Exscan on rank 0, where the standard ignores the receive buffer.
        Call::Allreduce {
            send: Some(send),
            recv,
            ..
        }
        | Call::ReduceScatter {
            send: Some(send),
            recv,
            ..
        }
        | Call::ReduceScatterBlock {
            send: Some(send),
            recv,
            ..
        }
        | Call::Scan {
            send: Some(send),
            recv,
            ..
        }
        | Call::Exscan {
            send: Some(send),
            recv,
            ..
        }
        | Call::Reduce {
            send: Some(send),
            recv: Some(recv),
            ..
        }
        | Call::Alltoall {
            send: Some(send),
            recv,
        } => (overlap(send, recv), Shared::Whole),
        Call::Gather {
            send: Some(send),
            recv: Some(recv),
            ..
        }
        | Call::Allgather {
            send: Some(send),
            recv,
        } => {
            let own = own(comm, recv.count(), recv.datatype().extent());
            let recv_at = recv.ptr().wrapping_byte_offset(own);
            (begin_at(send, send.ptr(), recv, recv_at), Shared::OwnOfRecv)
        }
        Call::Scatter {
            send: Some(send),
            recv: Some(recv),
            ..
        } => {
            let own = own(comm, send.count(), send.datatype().extent());
            let send_at = send.ptr().wrapping_byte_offset(own);
            (begin_at(send, send_at, recv, recv.ptr()), Shared::OwnOfSend)
        }
        Call::Gatherv {
            send: Some(send),
            recv: Some(recv),
            ..
        }
        | Call::Allgatherv {
            send: Some(send),
            recv,
        } => {
            let own = recv.get(own_index(comm));
            let found = own.is_some_and(|recv| overlap(send, recv));
            (found, Shared::OwnOfRecv)
        }
        Call::Scatterv {
            send: Some(send),
            recv: Some(recv),
            ..
        } => {
            let own = send.get(own_index(comm));
            let found = own.is_some_and(|send| overlap(send, recv));
            (found, Shared::OwnOfSend)
        }
        Call::Alltoallv {
            send: Some(send),
            recv,
        }
        | Call::Alltoallw {
            send: Some(send),
            recv,
        } => {
            let mut pairs = send.iter().zip(recv.iter());
            (pairs.any(|(s, r)| overlap(s, r)), Shared::Whole)
        }
        // The block of an MPI_PROC_NULL neighbour of a grid is neither read nor written.
        Call::NeighborAlltoall {
            neighbours,
            send,
            recv,
        } => {
            let mut used = (neighbours.sources().iter().zip(neighbours.destinations()))
                .map(|(from, to)| from.is_some() && to.is_some());
            (
                overlap(send, recv) && used.any(|used| used),
                Shared::Neighbours,
            )
        }
        Call::NeighborAlltoallv {
            neighbours,
            send,
            recv,
        }
        | Call::NeighborAlltoallw {
            neighbours,
            send,
            recv,
        } => {
            let ends = neighbours.sources().iter().zip(neighbours.destinations());
            let mut pairs = ends.zip(send.iter().zip(recv.iter()));
            let found =
                pairs.any(|((from, to), (s, r))| from.is_some() && to.is_some() && overlap(s, r));
            (found, Shared::Neighbours)
        }
        Call::NeighborAllgather {
            neighbours,
            send,
            recv,
        } => {
            let first = neighbours.sources().first().is_some_and(Option::is_some);
            (
                first && neighbours.departures().next().is_some() && overlap(send, recv),
                Shared::Neighbours,
            )
        }
        Call::NeighborAllgatherv {
            neighbours,
            send,
            recv,
        } => {
            let mut blocks = neighbours.sources().iter().zip(recv.iter());
            let found = blocks.any(|(from, r)| from.is_some() && overlap(send, r));
            (
                found && neighbours.departures().next().is_some(),
                Shared::Neighbours,
            )
        }
        _ => return None,
    };
    found.then_some(shared)
}

/// Returns the index of this rank's own block.
/// On an intercommunicator no block belongs to the calling rank, and the check uses block 0.
fn own_index(comm: &Comm) -> usize {
    match comm.is_inter() {
        true => 0,
        false => comm.rank() as usize,
    }
}

/// Returns the byte offset of this rank's own block, where each block has `count` elements.
fn own(comm: &Comm, count: i64, extent: i64) -> isize {
    let index = own_index(comm) as i64;
    index.wrapping_mul(count).wrapping_mul(extent) as isize
}

#[inline]
fn overlap(send: &SendBuf, recv: &RecvBuf) -> bool {
    begin_at(send, send.ptr(), recv, recv.ptr())
}

/// Returns true if both blocks begin at one address, are not empty and have the same datatype.
#[inline]
fn begin_at(send: &SendBuf, send_at: *const u8, recv: &RecvBuf, recv_at: *mut u8) -> bool {
    // Data at MPI_BOTTOM (null) have absolute displacements: the datatype holds their addresses.
    send_at == recv_at.cast_const()
        && !send_at.is_null()
        && send.bytes() > 0
        && recv.bytes() > 0
        && send.datatype().same(recv.datatype())
}
