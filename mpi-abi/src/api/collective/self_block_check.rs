//! Length check of the block that a rank sends to itself.
//!
//! The send and receive lengths of each pair of ranks must match (MPI 5.0, sections 6.5 to 6.8).
//! Each rank of a pair knows one of the two lengths, and `coll_base_check` compares them.
//! A rank knows both lengths of the block that it sends to itself.
//! So a rank detects here, before any communication, that this block exceeds its receive buffer.
//! In a fast call both lengths are equal, so the fast path needs no check.

use crate::abi::*;
use crate::error::{Failure, Outcome};
use mpi_core::coll::{CHECK, Call};
use mpi_core::comm::Comm;
use mpi_core::datatype::{RecvBuf, SendBuf};

/// Returns an error if this rank's own block exceeds its receive buffer.
#[inline(always)]
pub(super) fn check(comm: &Comm, call: &Call) -> Outcome {
    match amounts(comm, call) {
        Some((sent, space)) if sent > space => too_long(comm, sent, space),
        _ => Ok(()),
    }
}

#[cold]
fn too_long(comm: &Comm, sent: i64, space: i64) -> Outcome {
    // With `coll_base_check` all members report every mismatch.
    // On an intercommunicator no rank sends to itself.
    if comm.is_inter() || comm.engine().params().get(&CHECK) == Ok(true) {
        return Ok(());
    }
    let me = comm.rank();
    let text = format!(
        "rank {me} sends itself {sent} bytes, but has room for {space} in its own block of recvbuf"
    );
    Err(Failure::new(MPI_ERR_TRUNCATE, text))
}

/// Returns the number of bytes that this rank sends to itself, and the number that it can receive.
#[inline(always)]
fn amounts(comm: &Comm, call: &Call) -> Option<(i64, i64)> {
    let me = comm.rank() as usize;
    let of = |send: Option<&SendBuf>, recv: Option<&RecvBuf>| Some((send?.bytes(), recv?.bytes()));
    match call {
        Call::Allgather { send, recv } | Call::Alltoall { send, recv } => {
            of(send.as_ref(), Some(recv))
        }
        Call::Gather { send, recv, .. } | Call::Scatter { send, recv, .. } => {
            of(send.as_ref(), recv.as_ref())
        }
        Call::Gatherv { send, recv, .. } => of(send.as_ref(), recv.as_ref()?.get(me)),
        Call::Allgatherv { send, recv } => of(send.as_ref(), recv.get(me)),
        Call::Scatterv { send, recv, .. } => of(send.as_ref()?.get(me), recv.as_ref()),
        Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => {
            of(send.as_ref()?.get(me), recv.get(me))
        }
        _ => None,
    }
}
