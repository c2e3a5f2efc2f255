//! Reductions and prefix reductions (sections 6.9 to 6.11).

use super::{Plan, Planned};
use crate::abi::*;
use crate::api::args::{Wide, recv_buf, wides};
use crate::error::Failure;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::op::Op;
use std::ffi::{c_int, c_void};

/// The operator and the buffers of a reduction whose result goes to every member.
///
/// # Safety
/// As [`send_buf`] and [`recv_buf`].
unsafe fn reduction(
    comm: &CommObject,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<(Option<SendBuf>, RecvBuf, Op), Failure> {
    let op = operator(op, datatype)?;
    // SAFETY: passed on.
    unsafe {
        Ok((
            comm.sent(sendbuf, count, datatype)?,
            recv_buf(recvbuf, count, datatype)?,
            op,
        ))
    }
}

/// An operator that is defined for the datatype.
fn operator(op: MPI_Op, datatype: MPI_Datatype) -> Result<Op, Failure> {
    let op = state::op(op)?;
    op.check(&state::datatype(datatype)?)?;
    Ok(op)
}

pub unsafe fn plan_Reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let op = match root {
        // Who has no part in it has no datatype to name.
        inter::NOBODY => state::op(op)?,
        _ => operator(op, datatype)?,
    };
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        let recv = comm
            .is_root(root)
            .then(|| recv_buf(recvbuf, count.wide(), datatype));
        (
            comm.sent_to(root, sendbuf, count, datatype)?,
            recv.transpose()?,
        )
    };
    let call = Call::Reduce {
        send,
        recv,
        op,
        root,
    };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: buffers of the caller.
    let (send, recv, op) =
        unsafe { reduction(&comm, sendbuf, recvbuf, count.wide(), datatype, op)? };
    let call = Call::Allreduce { send, recv, op };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    // SAFETY: buffers of the caller.
    let (send, recv, op) =
        unsafe { reduction(&comm, sendbuf, recvbuf, count.wide(), datatype, op)? };
    let call = Call::Scan { send, recv, op };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    comm.only_intra()?;
    // SAFETY: buffers of the caller.
    let (send, recv, op) =
        unsafe { reduction(&comm, sendbuf, recvbuf, count.wide(), datatype, op)? };
    let call = Call::Exscan { send, recv, op };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: *const impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let op = operator(op, datatype)?;
    // SAFETY: an array of the caller.
    let counts = unsafe { wides(recvcounts, comm.members(), "recvcounts")? };
    if let Some(negative) = counts.iter().find(|c| **c < 0) {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("recvcounts has {negative}, which is negative"),
        ));
    }
    let total = counts.iter().sum::<i64>();
    // In place the receive buffer holds the whole input.
    let received = if comm.in_place(sendbuf)? {
        total
    } else {
        counts[comm.comm.rank() as usize]
    };
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, total, datatype)?,
            recv_buf(recvbuf, received, datatype)?,
        )
    };
    let counts = counts.into();
    let call = Call::ReduceScatter {
        send,
        recv,
        counts,
        op,
    };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let op = operator(op, datatype)?;
    let total = recvcount.wide().saturating_mul(comm.members() as i64);
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, total, datatype)?,
            recv_buf(recvbuf, recvcount.wide(), datatype)?,
        )
    };
    let call = Call::ReduceScatterBlock { send, recv, op };
    Ok(Plan { comm, call })
}
