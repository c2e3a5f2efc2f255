//! Reductions and prefix reductions (sections 6.9 to 6.11).
#![allow(unsafe_code)]

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{Blocks, IntoI64, RecvMem, Resolved, SendMem, widened};
use crate::api::op::combining;
use crate::error::Failure;
use crate::handle::FIRST_DYNAMIC;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::op::Op;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Checks the operator and the buffers of a reduction whose result is stored on all ranks.
#[inline(always)]
fn reduction(
    comm: &CommObject,
    sendbuf: SendMem,
    recvbuf: RecvMem,
    op: MPI_Op,
) -> Result<(Option<SendBuf>, RecvBuf, Op), Failure> {
    let (op, datatype) = operator(op, recvbuf.datatype())?;
    Ok((
        sent(comm, sendbuf, &datatype)?,
        recvbuf.buffer_of(&datatype)?,
        op,
    ))
}

/// The last checked predefined operator (upper 32 bits) and datatype (lower 32 bits), as handles.
/// Most programs reduce one datatype with one operator, so a repeated check is skipped.
static LAST_CHECKED: AtomicU64 = AtomicU64::new(0);

/// Returns the operator and the datatype. An operator not defined for the datatype is an error.
#[inline]
fn operator(op: MPI_Op, datatype: MPI_Datatype) -> Result<(Op, Resolved), Failure> {
    // A handle of a predefined object always refers to the same object.
    let pair = (op.0 < FIRST_DYNAMIC && datatype.0 < FIRST_DYNAMIC)
        .then_some((op.0 as u64) << 32 | datatype.0 as u64);
    let (op, datatype) = (combining(op)?, Resolved::of(datatype)?);
    if pair != Some(LAST_CHECKED.load(Ordering::Relaxed)) {
        op.check(datatype.datatype())?;
        if let Some(pair) = pair {
            LAST_CHECKED.store(pair, Ordering::Relaxed);
        }
    }
    Ok((op, datatype))
}

#[cold]
fn too_many(each: i64) -> Failure {
    let text = format!("the blocks of {each} elements for each rank are more than can be counted");
    Failure::new(MPI_ERR_COUNT, text)
}

/// Returns the send buffer, or `None` for `MPI_IN_PLACE`.
#[inline]
fn sent(comm: &CommObject, buf: SendMem, datatype: &Resolved) -> Result<Option<SendBuf>, Failure> {
    if comm.in_place(buf.address())? {
        return Ok(None);
    }
    buf.buffer_of(datatype).map(Some)
}

pub fn plan_Reduce(
    sendbuf: SendMem,
    recvbuf: RecvMem,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    if root == inter::PROC_NULL {
        // With `MPI_PROC_NULL` as the root, the datatype is not significant.
        let (send, recv, op) = (None, None, state::op(op)?);
        let call = Call::Reduce {
            send,
            recv,
            op,
            root,
        };
        return Plan::of(comm, call);
    }
    let (op, datatype) = operator(op, recvbuf.datatype())?;
    let is_root = comm.is_root(root);
    let recv = is_root.then(|| recvbuf.buffer_of(&datatype));
    let has_none = comm.is_beside(root) || (is_root && comm.in_place(sendbuf.address())?);
    let send = (!has_none).then(|| sendbuf.buffer_of(&datatype));
    let (send, recv) = (send.transpose()?, recv.transpose()?);
    let call = Call::Reduce {
        send,
        recv,
        op,
        root,
    };
    Plan::of(comm, call)
}

pub fn plan_Allreduce(sendbuf: SendMem, recvbuf: RecvMem, op: MPI_Op, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    let (send, recv, op) = reduction(&comm, sendbuf, recvbuf, op)?;
    let call = Call::Allreduce { send, recv, op };
    Plan::of(comm, call)
}

pub fn plan_Scan(sendbuf: SendMem, recvbuf: RecvMem, op: MPI_Op, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    let (send, recv, op) = reduction(&comm, sendbuf, recvbuf, op)?;
    let call = Call::Scan { send, recv, op };
    Plan::of(comm, call)
}

pub fn plan_Exscan(sendbuf: SendMem, recvbuf: RecvMem, op: MPI_Op, comm: MPI_Comm) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    let (op, datatype) = operator(op, recvbuf.datatype())?;
    let send = sent(&comm, sendbuf, &datatype)?;
    // Rank 0 of MPI_Exscan has no result, so its receive buffer is not checked (section 6.11.2).
    let recv = match send.is_some() && comm.comm.rank() == 0 {
        true => recvbuf.unchecked(&datatype),
        false => recvbuf.buffer_of(&datatype),
    }?;
    let call = Call::Exscan { send, recv, op };
    Plan::of(comm, call)
}

pub unsafe fn plan_Reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let (op, resolved) = operator(op, datatype)?;
    // SAFETY: `recvcounts` has one element per rank, as MPI_Reduce_scatter requires.
    let counts = unsafe { widened(recvcounts, comm.members(), "recvcounts")? };
    if let Some(negative) = counts.iter().find(|c| **c < 0) {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("recvcounts has {negative}, which is negative"),
        ));
    }
    let total = counts.iter().sum::<i64>();
    // With `MPI_IN_PLACE`, the receive buffer holds the whole input.
    let received = if comm.in_place(sendbuf)? {
        total
    } else {
        counts[comm.comm.rank() as usize]
    };
    // SAFETY: MPI_Reduce_scatter requires these lengths of its caller.
    // The input has `total` elements. The output has this rank's count, or `total` in place.
    let (input, output) = unsafe {
        (
            SendMem::new(sendbuf, total, datatype),
            RecvMem::new(recvbuf, received, datatype),
        )
    };
    let (send, recv) = (sent(&comm, input, &resolved)?, output.buffer_of(&resolved)?);
    let counts = counts.into();
    let call = Call::ReduceScatter {
        send,
        recv,
        counts,
        op,
    };
    Plan::of(comm, call)
}

pub fn plan_Reduce_scatter_block(
    sendbuf: SendMem,
    recvbuf: RecvMem,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let (op, datatype) = operator(op, recvbuf.datatype())?;
    // SAFETY: the send buffer has one block per rank (section 6.10.1).
    let all = unsafe { sendbuf.blocks(comm.comm.size()) };
    let all = all.ok_or_else(|| too_many(recvbuf.count()))?;
    let send = sent(&comm, all, &datatype)?;
    // With `MPI_IN_PLACE`, the receive buffer holds the whole input.
    let recv = match send {
        Some(_) => recvbuf.buffer_of(&datatype),
        None => recvbuf.buffer_of_blocks(comm.members()),
    }?;
    let call = Call::ReduceScatterBlock { send, recv, op };
    Plan::of(comm, call)
}
