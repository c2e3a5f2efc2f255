//! What a process gives itself, of which it knows both sides: it has to fit.
//!
//! Amounts have to agree between each two processes (MPI 5.0, sections 6.5 to 6.8); of two different ones each knows one side,
//! and `coll_base_check` compares them. A block that a process sends to itself and that is longer than the room it has for it
//! is found here, before any process communicates. The calls in brief have equal blocks.

use crate::abi::*;
use crate::error::{Failure, Outcome};
use mpi_core::coll::{CHECK, Call};
use mpi_core::comm::Comm;
use mpi_core::datatype::{RecvBuf, SendBuf};

/// The failure of a call in which this process's own block does not fit.
#[inline(always)]
pub(super) fn check(comm: &Comm, call: &Call) -> Outcome {
    match amounts(comm, call) {
        Some((sent, room)) if sent > room => too_long(comm, sent, room),
        _ => Ok(()),
    }
}

#[cold]
fn too_long(comm: &Comm, sent: i64, room: i64) -> Outcome {
    // Where everything is compared, all members hear of it, and of all other amounts; between groups no process has a block of its own.
    if comm.is_inter() || comm.engine().params().get(&CHECK) == Ok(true) {
        return Ok(());
    }
    let me = comm.rank();
    let text = format!(
        "rank {me} sends itself {sent} bytes, but has room for {room} in its own block of recvbuf"
    );
    Err(Failure::new(MPI_ERR_TRUNCATE, text))
}

/// The bytes that this process sends to itself, and those that it has room for.
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
