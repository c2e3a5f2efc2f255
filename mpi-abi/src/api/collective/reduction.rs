//! Reductions and prefix reductions (sections 6.9 to 6.11).

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{IntoI64, recv_of, send_of, widened};
use crate::error::Failure;
use crate::handle::FIRST_DYNAMIC;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{Datatype, RecvBuf, SendBuf};
use mpi_core::op::Op;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Checks the operator and the buffers of a reduction whose result goes to every member.
///
/// # Safety
/// As [`send_of`] and [`recv_of`].
unsafe fn reduction(
    comm: &CommObject,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<(Option<SendBuf>, RecvBuf, Op), Failure> {
    let (op, datatype) = operator(op, datatype)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid by the `# Safety` contract of this function.
    unsafe {
        Ok((
            sent(comm, sendbuf, count, &datatype)?,
            recv_of(recvbuf, count, &datatype)?,
            op,
        ))
    }
}

/// The predefined operator and datatype checked last: programs mostly combine one type in one way.
static LAST_CHECKED: AtomicU64 = AtomicU64::new(0);

/// Returns an operator that is defined for the datatype, and the datatype.
#[inline]
fn operator(op: MPI_Op, datatype: MPI_Datatype) -> Result<(Op, Datatype), Failure> {
    // Handles of predefined objects never change their meaning.
    let pair = (op.0 < FIRST_DYNAMIC && datatype.0 < FIRST_DYNAMIC)
        .then_some((op.0 as u64) << 32 | datatype.0 as u64);
    if op == MPI_NO_OP {
        return Err(combines_nothing());
    }
    let (op, datatype) = (state::op(op)?, state::datatype(datatype)?);
    if pair != Some(LAST_CHECKED.load(Ordering::Relaxed)) {
        op.check(&datatype)?;
        if let Some(pair) = pair {
            LAST_CHECKED.store(pair, Ordering::Relaxed);
        }
    }
    Ok((op, datatype))
}

#[cold]
fn combines_nothing() -> Failure {
    let text = "MPI_NO_OP combines nothing: it is for fetching in one-sided communication and not for reductions (section 12.3.4)";
    Failure::new(MPI_ERR_OP, text)
}

/// Returns an operand, or `None` for `MPI_IN_PLACE`.
///
/// # Safety
/// As [`send_of`].
#[inline]
unsafe fn sent(
    comm: &CommObject,
    buf: *const c_void,
    count: i64,
    datatype: &Datatype,
) -> Result<Option<SendBuf>, Failure> {
    if comm.in_place(buf)? {
        return Ok(None);
    }
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    unsafe { send_of(buf, count, datatype).map(Some) }
}

pub unsafe fn plan_Reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    if root == inter::PROC_NULL {
        // A process that takes no part in the reduction has no significant datatype.
        let (send, recv, op) = (None, None, state::op(op)?);
        let call = Call::Reduce {
            send,
            recv,
            op,
            root,
        };
        return Plan::of(comm, call);
    }
    let (op, datatype) = operator(op, datatype)?;
    let (is_root, count) = (comm.is_root(root), count.wide());
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Reduce requires of its caller.
    let (send, recv) = unsafe {
        let recv = is_root.then(|| recv_of(recvbuf, count, &datatype));
        let has_none = comm.is_beside(root) || (is_root && comm.in_place(sendbuf)?);
        let send = (!has_none).then(|| send_of(sendbuf, count, &datatype));
        (send.transpose()?, recv.transpose()?)
    };
    let call = Call::Reduce {
        send,
        recv,
        op,
        root,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Allreduce requires of its caller.
    let (send, recv, op) =
        unsafe { reduction(&comm, sendbuf, recvbuf, count.wide(), datatype, op)? };
    let call = Call::Allreduce { send, recv, op };
    Plan::of(comm, call)
}

pub unsafe fn plan_Scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Scan requires of its caller.
    let (send, recv, op) =
        unsafe { reduction(&comm, sendbuf, recvbuf, count.wide(), datatype, op)? };
    let call = Call::Scan { send, recv, op };
    Plan::of(comm, call)
}

pub unsafe fn plan_Exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    let count = count.wide();
    let (op, datatype) = operator(op, datatype)?;
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Exscan requires of its caller.
    let call = unsafe {
        let send = sent(&comm, sendbuf, count, &datatype)?;
        // Rank 0 receives nothing, so it needs no buffer (section 6.11.2).
        let recv = match send.is_some() && comm.comm.rank() == 0 {
            true => RecvBuf::new(recvbuf.cast(), count, datatype),
            false => recv_of(recvbuf, count, &datatype)?,
        };
        Call::Exscan { send, recv, op }
    };
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
    let (op, datatype) = operator(op, datatype)?;
    // SAFETY: `recvcounts` is valid as the C binding of MPI_Reduce_scatter requires of its caller.
    let counts = unsafe { widened(recvcounts, comm.members(), "recvcounts")? };
    if let Some(negative) = counts.iter().find(|c| **c < 0) {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("recvcounts has {negative}, which is negative"),
        ));
    }
    let total = counts.iter().sum::<i64>();
    // In place, the receive buffer holds the whole input.
    let received = if comm.in_place(sendbuf)? {
        total
    } else {
        counts[comm.comm.rank() as usize]
    };
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Reduce_scatter requires of its caller.
    let (send, recv) = unsafe {
        (
            sent(&comm, sendbuf, total, &datatype)?,
            recv_of(recvbuf, received, &datatype)?,
        )
    };
    let counts = counts.into();
    let call = Call::ReduceScatter {
        send,
        recv,
        counts,
        op,
    };
    Plan::of(comm, call)
}

pub unsafe fn plan_Reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: impl IntoI64,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let (op, datatype) = operator(op, datatype)?;
    let total = recvcount.wide().saturating_mul(comm.members() as i64);
    // SAFETY: `sendbuf` and `recvbuf` are valid as the C binding of MPI_Reduce_scatter_block requires of its caller.
    let (send, recv) = unsafe {
        (
            sent(&comm, sendbuf, total, &datatype)?,
            recv_of(recvbuf, recvcount.wide(), &datatype)?,
        )
    };
    let call = Call::ReduceScatterBlock { send, recv, op };
    Plan::of(comm, call)
}
