//! Fast path of collectives on contiguous data ([`mpi_core::coll::FastCall`]).
//!
//! A function `fast_X` has the arguments of `MPI_X`, and runs before a plan is built.
//! Its last argument executes the call: [`carry_out`] for `MPI_X`, [`begin`] for `MPI_IX`.
//! A fast function returns `None`, without side effects, unless the call is simple and valid.
//! A simple call has a predefined datatype without holes, a predefined operator and an
//! intracommunicator. `MPI_IN_PLACE` and buffers with equal addresses are not simple.
//! The collective component must also accept the operation as a fast call.
//! For all other arguments, `plan_X` runs the call and reports the errors.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::api::args::{Blocks, RecvBlocks, RecvMem, SendMem};
use crate::error::{Failure, Outcome};
use crate::handle::FIRST_DYNAMIC;
use crate::object::comm::CommObject;
use crate::registry::request::{DONE, running};
use crate::state::{self, COMMON, state};
use mpi_core::coll::FastCall;
use mpi_core::datatype::RecvBytes;
use mpi_core::op::DenseOp;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Returns the communicator, or `None` if it is not an intracommunicator.
#[inline(always)]
fn among(comm: MPI_Comm) -> Option<Rc<CommObject>> {
    let comm = state::comm(comm).ok()?;
    (!comm.comm.is_inter()).then_some(comm)
}

/// The execution of a fast call; `None` means that the component does not accept the call.
pub trait Execute<'a, T>: FnOnce(&Rc<CommObject>, &FastCall<'a>) -> Option<T> {}

impl<'a, T, F: FnOnce(&Rc<CommObject>, &FastCall<'a>) -> Option<T>> Execute<'a, T> for F {}

/// Executes a fast call as a blocking call.
#[inline(always)]
pub fn carry_out(comm: &Rc<CommObject>, fast_call: &FastCall<'_>) -> Option<Outcome> {
    match comm.comm.collectives().try_fast_call(fast_call)? {
        Ok(()) => Some(Ok(())),
        Err(e) => Some(Err(e.into())),
    }
}

/// Starts a fast call as a nonblocking call. Returns the handle of its request.
///
/// The buffers are valid until the operation is complete, by the contracts of `SendMem::new` and `RecvMem::new`;
/// so the send buffer's lifetime may be `'static`.
#[inline]
pub fn begin(
    comm: &Rc<CommObject>,
    fast_call: &FastCall<'static>,
) -> Option<Result<MPI_Request, Failure>> {
    Some(
        match comm.comm.collectives().try_fast_request(*fast_call)? {
            Ok(None) => Ok(DONE),
            Ok(Some(req)) => running(req, comm),
            Err(e) => Err(e.into()),
        },
    )
}

/// Returns the root's rank in the communicator, and true if this rank is the root.
#[inline(always)]
fn root_of(comm: &CommObject, root: c_int) -> Option<(u32, bool)> {
    let root = u32::try_from(root).ok()?;
    (root < comm.comm.size()).then_some((root, root == comm.comm.rank()))
}

/// Looks up a predefined operator and a predefined datatype.
/// Pairs that have been used are cached.
#[inline(always)]
fn dense(op: MPI_Op, datatype: MPI_Datatype) -> Option<DenseOp> {
    let known = state().program().known_ops().get(op, datatype);
    known.or_else(|| look_up(op, datatype))
}

/// Looks up the pairs that most programs use, so that their first reductions find them in the cache.
pub fn look_up_common() {
    for (op, datatype) in COMMON {
        let _ = look_up(op, datatype);
    }
}

#[cold]
fn look_up(op: MPI_Op, datatype: MPI_Datatype) -> Option<DenseOp> {
    // A handle of a predefined object always refers to the same object.
    if op.0 >= FIRST_DYNAMIC || datatype.0 >= FIRST_DYNAMIC {
        return None;
    }
    let found = DenseOp::new(&state::op(op).ok()?, &state::datatype(datatype).ok()?)?;
    state().program().known_ops().put(op, datatype, found);
    Some(found)
}

#[inline(always)]
pub fn fast_Barrier<'a, T>(comm: MPI_Comm, execute: impl Execute<'a, T>) -> Option<T> {
    let comm = among(comm)?;
    execute(&comm, &FastCall::Barrier)
}

#[inline(always)]
pub fn fast_Bcast<'a, T>(
    buffer: RecvMem,
    root: c_int,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (root, _) = root_of(&comm, root)?;
    let data = buffer.plain()?;
    execute(&comm, &FastCall::Bcast { data, root })
}

#[inline(always)]
pub fn fast_Gather<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    root: c_int,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    let send = sendbuf.plain()?;
    let recv = match here {
        true => Some(each_rank(&comm, recvbuf)?.plain()?),
        false => None,
    };
    if let Some(recv) = &recv {
        let (one, all) = (sendbuf.address(), recvbuf.address());
        matches_blocks(&comm, (one, send.len()), (all, recv.len()))?;
    }
    execute(&comm, &FastCall::Gather { send, recv, root })
}

#[inline(always)]
pub fn fast_Scatter<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    root: c_int,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    let send = match here {
        true => Some(each_rank(&comm, sendbuf)?.plain()?),
        false => None,
    };
    let recv = recvbuf.plain()?;
    if let Some(send) = send {
        let (one, all) = (recvbuf.address(), sendbuf.address());
        matches_blocks(&comm, (one, recv.len()), (all, send.len()))?;
    }
    execute(&comm, &FastCall::Scatter { send, recv, root })
}

#[inline(always)]
pub fn fast_Allgather<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (send, recv) = own_and_all(&comm, sendbuf, recvbuf)?;
    execute(&comm, &FastCall::Allgather { send, recv })
}

#[inline(always)]
pub fn fast_Allgatherv<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvBlocks,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (send, recv) = own_and_all(&comm, sendbuf, recvbuf)?;
    execute(&comm, &FastCall::Allgatherv { send, recv })
}

#[inline(always)]
pub fn fast_Alltoall<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (send, recv, one) = (
        each_rank(&comm, sendbuf)?.plain()?,
        each_rank(&comm, recvbuf)?.plain()?,
        recvbuf.plain()?,
    );
    let block = one.len();
    (send.len() == recv.len()).then_some(())?;
    apart(sendbuf.address(), recvbuf.address())?;
    execute(&comm, &FastCall::Alltoall { send, recv, block })
}

#[inline(always)]
pub fn fast_Reduce<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    let comm = among(comm)?;
    let (root, here) = root_of(&comm, root)?;
    let op = dense(op, recvbuf.datatype())?;
    let send = sendbuf.plain()?;
    let recv = match here {
        true => {
            apart(sendbuf.address(), recvbuf.address())?;
            Some(recvbuf.plain()?)
        }
        false => None,
    };
    let fast_call = FastCall::Reduce {
        send,
        recv,
        op,
        root,
    };
    execute(&comm, &fast_call)
}

/// Runs a collective in which each rank has an operand and a result of the same length.
#[inline(always)]
fn combine<'a, T>(
    (sendbuf, recvbuf): (SendMem<'a>, RecvMem<'_>),
    op: MPI_Op,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
    fast_call: impl FnOnce(&'a [u8], RecvBytes, DenseOp) -> FastCall<'a>,
) -> Option<T> {
    apart(sendbuf.address(), recvbuf.address())?;
    let (comm, op) = (among(comm)?, dense(op, recvbuf.datatype())?);
    let (send, recv) = (sendbuf.plain()?, recvbuf.plain()?);
    execute(&comm, &fast_call(send, recv, op))
}

#[inline(always)]
pub fn fast_Allreduce<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    op: MPI_Op,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    combine((sendbuf, recvbuf), op, comm, execute, |send, recv, op| {
        FastCall::Allreduce { send, recv, op }
    })
}

#[inline(always)]
pub fn fast_Scan<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    op: MPI_Op,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    combine((sendbuf, recvbuf), op, comm, execute, |send, recv, op| {
        FastCall::Scan { send, recv, op }
    })
}

#[inline(always)]
pub fn fast_Exscan<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    op: MPI_Op,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    combine((sendbuf, recvbuf), op, comm, execute, |send, recv, op| {
        FastCall::Exscan { send, recv, op }
    })
}

#[inline(always)]
pub fn fast_Reduce_scatter_block<'a, T>(
    sendbuf: SendMem<'a>,
    recvbuf: RecvMem,
    op: MPI_Op,
    comm: MPI_Comm,
    execute: impl Execute<'a, T>,
) -> Option<T> {
    apart(sendbuf.address(), recvbuf.address())?;
    let comm = among(comm)?;
    let op = dense(op, recvbuf.datatype())?;
    let (send, recv) = (each_rank(&comm, sendbuf)?.plain()?, recvbuf.plain()?);
    execute(&comm, &FastCall::ReduceScatterBlock { send, recv, op })
}

/// Returns the buffer of the blocks of all ranks, if these are equal and consecutive.
#[inline(always)]
fn each_rank<M: Blocks>(comm: &CommObject, one: M) -> Option<M::All> {
    // SAFETY: the buffer has one block per rank (sections 6.5 to 6.8 and 6.10 of the standard).
    unsafe { one.blocks(comm.comm.size()) }
}

/// Returns the data of this rank and the buffer for the data of all ranks.
#[inline(always)]
fn own_and_all<'a, 'b>(
    comm: &CommObject,
    sendbuf: SendMem<'a>,
    recvbuf: impl Blocks<All = RecvMem<'b>>,
) -> Option<(&'a [u8], RecvBytes)> {
    let (send, all) = (sendbuf.plain()?, each_rank(comm, recvbuf)?);
    let recv = all.plain()?;
    let (one, blocks) = (sendbuf.address(), all.address());
    matches_blocks(comm, (one, send.len()), (blocks, recv.len()))?;
    Some((send, recv))
}

/// Returns `Some` if the second buffer has exactly one block of the first one's length for each rank,
/// and if this rank's block has another address than the first buffer.
#[inline(always)]
fn matches_blocks(
    comm: &CommObject,
    (one, len): (*const c_void, usize),
    (all, all_len): (*const c_void, usize),
) -> Option<()> {
    let (rank, size) = (comm.comm.rank() as usize, comm.comm.size() as usize);
    apart(one, all.wrapping_byte_add(rank.checked_mul(len)?))?;
    (all_len == len.checked_mul(size)?).then_some(())
}

/// Returns `Some` if input and output begin at different addresses.
/// Otherwise [`alias_check`](super::alias_check) decides whether the call is an error.
#[inline(always)]
fn apart(one: *const c_void, other: *const c_void) -> Option<()> {
    (one != other).then_some(())
}
