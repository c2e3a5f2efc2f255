//! Fast path of blocking collectives on contiguous data, tried before a plan is built ([`mpi_core::coll::FastCall`]).
//!
//! A function `fast_X` has the arguments of `MPI_X`.
//! It returns `None`, without side effects, unless all arguments are valid and of the simplest kind:
//! predefined types without holes, a predefined operator, no `MPI_IN_PLACE`, an intracommunicator, a call that a component accepts as fast call,
//! and buffers that begin at different addresses.
//! Errors in all other arguments are reported by `plan_X`.

use crate::abi::*;
use crate::api::args::{IntoI64, plain_data, plain_room};
use crate::error::Outcome;
use crate::handle::FIRST_DYNAMIC;
use crate::object::comm::CommObject;
use crate::state::{self, state};
use mpi_core::coll::FastCall;
use mpi_core::datatype::RecvBytes;
use mpi_core::op::DenseOp;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Returns an intracommunicator.
#[inline(always)]
fn among(comm: MPI_Comm) -> Option<Rc<CommObject>> {
    let comm = state::comm(comm).ok()?;
    (!comm.comm.is_inter()).then_some(comm)
}

#[inline(always)]
fn carry_out(comm: &CommObject, fast_call: &FastCall<'_>) -> Option<Outcome> {
    match comm.comm.collectives().try_fast_call(fast_call)? {
        Ok(()) => Some(Ok(())),
        Err(e) => Some(Err(e.into())),
    }
}

/// Returns a rank of the communicator, and true if it is this rank.
#[inline(always)]
fn root_of(comm: &CommObject, root: c_int) -> Option<(u32, bool)> {
    let root = u32::try_from(root).ok()?;
    (root < comm.comm.size()).then_some((root, root == comm.comm.rank()))
}

/// Resolves an operator and a type, both predefined: programs mostly combine one type in one way, so the last pair is cached.
#[inline(always)]
fn dense(op: MPI_Op, datatype: MPI_Datatype) -> Option<DenseOp> {
    match state().program().last_op().get() {
        Some((last, of, found)) if (last, of) == (op, datatype) => Some(found),
        _ => look_up(op, datatype),
    }
}

#[cold]
fn look_up(op: MPI_Op, datatype: MPI_Datatype) -> Option<DenseOp> {
    // Handles of predefined objects never change their meaning.
    if op.0 >= FIRST_DYNAMIC || datatype.0 >= FIRST_DYNAMIC {
        return None;
    }
    let found = DenseOp::new(&state::op(op).ok()?, &state::datatype(datatype).ok()?)?;
    state().program().last_op().set(Some((op, datatype, found)));
    Some(found)
}

pub unsafe fn fast_Barrier(comm: MPI_Comm) -> Option<Outcome> {
    let comm = among(comm)?;
    carry_out(&comm, &FastCall::Barrier)
}

pub unsafe fn fast_Bcast(
    buffer: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    let (root, _) = root_of(&comm, root)?;
    // SAFETY: `buffer` is valid as the C binding of MPI_Bcast requires of its caller.
    let data = unsafe { plain_room(buffer, count.wide(), datatype)? };
    carry_out(&comm, &FastCall::Bcast { data, root })
}

pub unsafe fn fast_Gather(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Gather requires of its caller.
    let (send, recv) = unsafe {
        let send = plain_data(sendbuf, sendcount.wide(), sendtype)?;
        let recv = match here {
            true => Some(plain_room(recvbuf, every(&comm, recvcount)?, recvtype)?),
            false => None,
        };
        (send, recv)
    };
    if let Some(recv) = &recv {
        holds_blocks(&comm, recv.len(), send.len())?;
        apart(sendbuf, own_block(&comm, recvbuf, send.len()))?;
    }
    carry_out(&comm, &FastCall::Gather { send, recv, root })
}

pub unsafe fn fast_Scatter(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Scatter requires of its caller.
    let (send, recv) = unsafe {
        let send = match here {
            true => Some(plain_data(sendbuf, every(&comm, sendcount)?, sendtype)?),
            false => None,
        };
        (send, plain_room(recvbuf, recvcount.wide(), recvtype)?)
    };
    if let Some(send) = send {
        holds_blocks(&comm, send.len(), recv.len())?;
        apart(own_block(&comm, sendbuf, recv.len()), recvbuf)?;
    }
    carry_out(&comm, &FastCall::Scatter { send, recv, root })
}

pub unsafe fn fast_Allgather(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Allgather requires of its caller.
    let (send, recv) = unsafe {
        (
            plain_data(sendbuf, sendcount.wide(), sendtype)?,
            plain_room(recvbuf, every(&comm, recvcount)?, recvtype)?,
        )
    };
    holds_blocks(&comm, recv.len(), send.len())?;
    apart(sendbuf, own_block(&comm, recvbuf, send.len()))?;
    carry_out(&comm, &FastCall::Allgather { send, recv })
}

pub unsafe fn fast_Alltoall(
    sendbuf: *const c_void,
    sendcount: impl IntoI64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Alltoall requires of its caller.
    let (send, recv, one) = unsafe {
        (
            plain_data(sendbuf, every(&comm, sendcount)?, sendtype)?,
            plain_room(recvbuf, every(&comm, recvcount)?, recvtype)?,
            plain_room(recvbuf, recvcount.wide(), recvtype)?,
        )
    };
    let block = one.len();
    (send.len() == recv.len()).then_some(())?;
    apart(sendbuf, recvbuf)?;
    carry_out(&comm, &FastCall::Alltoall { send, recv, block })
}

pub unsafe fn fast_Reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    let op = dense(op, datatype)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Reduce requires of its caller.
    let (send, recv) = unsafe {
        let send = plain_data(sendbuf, count.wide(), datatype)?;
        let recv = match here {
            true => {
                apart(sendbuf, recvbuf)?;
                Some(plain_room(recvbuf, count.wide(), datatype)?)
            }
            false => None,
        };
        (send, recv)
    };
    let fast_call = FastCall::Reduce {
        send,
        recv,
        op,
        root,
    };
    carry_out(&comm, &fast_call)
}

/// A call in which each rank passes an operand and a result buffer of the same length.
///
/// # Safety
/// As [`plain_data`] and [`plain_room`].
#[inline(always)]
unsafe fn combine<'a>(
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
    (count, datatype): (i64, MPI_Datatype),
    op: MPI_Op,
    comm: MPI_Comm,
    fast_call: impl FnOnce(&'a [u8], RecvBytes, DenseOp) -> FastCall<'a>,
) -> Option<Outcome> {
    apart(sendbuf, recvbuf)?;
    let (comm, op) = (among(comm)?, dense(op, datatype)?);
    // SAFETY: `sendbuf` and `recvbuf` are valid by the `# Safety` contract of this function, which is that of `plain_data` and `plain_room`.
    let (send, recv) = unsafe {
        (
            plain_data(sendbuf, count, datatype)?,
            plain_room(recvbuf, count, datatype)?,
        )
    };
    carry_out(&comm, &fast_call(send, recv, op))
}

pub unsafe fn fast_Allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let (buffers, data) = ((sendbuf, recvbuf), (count.wide(), datatype));
    // SAFETY: `sendbuf` and `recvbuf`, in `buffers`, are valid as the C binding of MPI_Allreduce requires of its caller.
    unsafe {
        combine(buffers, data, op, comm, |send, recv, op| {
            FastCall::Allreduce { send, recv, op }
        })
    }
}

pub unsafe fn fast_Scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let (buffers, data) = ((sendbuf, recvbuf), (count.wide(), datatype));
    // SAFETY: `sendbuf` and `recvbuf`, in `buffers`, are valid as the C binding of MPI_Scan requires of its caller.
    unsafe {
        combine(buffers, data, op, comm, |send, recv, op| FastCall::Scan {
            send,
            recv,
            op,
        })
    }
}

pub unsafe fn fast_Exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Option<Outcome> {
    let (buffers, data) = ((sendbuf, recvbuf), (count.wide(), datatype));
    // SAFETY: `sendbuf` and `recvbuf`, in `buffers`, are valid as the C binding of MPI_Exscan requires of its caller.
    unsafe {
        combine(buffers, data, op, comm, |send, recv, op| FastCall::Exscan {
            send,
            recv,
            op,
        })
    }
}

pub unsafe fn fast_Reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Option<Outcome> {
    apart(sendbuf, recvbuf)?;
    let comm = among(comm)?;
    let op = dense(op, datatype)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Reduce_scatter_block requires of its caller.
    let (send, recv) = unsafe {
        (
            plain_data(sendbuf, every(&comm, recvcount)?, datatype)?,
            plain_room(recvbuf, recvcount.wide(), datatype)?,
        )
    };
    carry_out(&comm, &FastCall::ReduceScatterBlock { send, recv, op })
}

/// The number of elements in one block per rank.
#[inline(always)]
fn every(comm: &CommObject, count: impl IntoI64) -> Option<i64> {
    count.wide().checked_mul(comm.comm.size().into())
}

/// `Some` if `all` bytes are one block of `one` bytes for each rank.
#[inline(always)]
fn holds_blocks(comm: &CommObject, all: usize, one: usize) -> Option<()> {
    (all == one * comm.comm.size() as usize).then_some(())
}

/// `Some` if input and output begin at different addresses; if not, [`alias_check`](super::alias_check) decides whether that is an error.
#[inline(always)]
fn apart(reads: *const c_void, writes: *const c_void) -> Option<()> {
    (reads != writes).then_some(())
}

/// The address of this rank's own block of `one` bytes.
#[inline(always)]
fn own_block(comm: &CommObject, blocks: *const c_void, one: usize) -> *const c_void {
    blocks.wrapping_byte_add(comm.comm.rank() as usize * one)
}
