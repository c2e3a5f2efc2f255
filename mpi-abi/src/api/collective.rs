//! Collective communication (chapter 6).
//!
//! A collective operation is a value of the engine, so what differs between `MPI_Bcast`, `MPI_Ibcast`, `MPI_Bcast_init` and
//! their large-count twins is only what is done with it.
//! A function `plan_Bcast` here checks the arguments and makes the value; the build script exports all six over it, with
//! [`perform`], [`begin`] and [`prepare`].
//!
//! Arguments that are significant only at the root are not looked at elsewhere.

use super::args::{Wide, out, recv_buf, send_buf, slice};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::comm::CommObject;
use crate::object::request::{persistent, running};
use crate::state;
use mpi_core::coll::{Call, inter};
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::op::Op;
use mpi_core::request::Operation;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A collective operation whose arguments are in order.
pub struct Plan {
    comm: Rc<CommObject>,
    call: Call,
}

type Planned = Result<Plan, Failure>;

/// Carries an operation out.
pub(crate) fn perform(plan: Plan) -> Outcome {
    Ok(plan.comm.comm.collective(plan.call)?)
}

/// Starts an operation.
///
/// # Safety
/// `request` is an output argument of the caller.
pub(crate) unsafe fn begin(plan: Plan, request: *mut MPI_Request) -> Outcome {
    let req = plan.comm.comm.icollective(plan.call)?;
    // SAFETY: passed on.
    unsafe { out(request, running(req, &plan.comm)?, "request") }
}

/// Keeps an operation to be started later.
///
/// # Safety
/// `request` is an output argument of the caller.
pub(crate) unsafe fn prepare(plan: Plan, info: MPI_Info, request: *mut MPI_Request) -> Outcome {
    // The hints that the standard knows for this change nothing here; a wrong handle is still an error.
    info::hints(info)?;
    // SAFETY: passed on.
    unsafe {
        out(
            request,
            persistent(&plan.comm, Operation::Collective(plan.call))?,
            "request",
        )
    }
}

impl CommObject {
    /// Whether this process is the root, whose arguments describe everybody's data.
    fn is_root(&self, root: u32) -> bool {
        match self.comm.is_inter() {
            false => self.comm.rank() == root,
            true => root == inter::ROOT,
        }
    }

    fn members(&self) -> usize {
        self.comm.size() as usize
    }

    /// How many blocks a buffer has that holds one for each rank that messages name.
    fn blocks(&self) -> usize {
        self.comm.peers().size() as usize
    }

    /// A root argument; between groups it may also be `MPI_ROOT`, or `MPI_PROC_NULL` beside the root (section 6.2.3).
    fn root(&self, root: c_int) -> Result<u32, Failure> {
        match (self.comm.is_inter(), root) {
            (true, MPI_ROOT) => return Ok(inter::ROOT),
            (true, MPI_PROC_NULL) => return Ok(inter::NOBODY),
            _ => {}
        }
        let ranks = self.comm.peers().size();
        u32::try_from(root)
            .ok()
            .filter(|r| *r < ranks)
            .ok_or_else(|| {
                let last = ranks.saturating_sub(1);
                let label = self.label();
                let of = if self.comm.is_inter() {
                    "the remote group of "
                } else {
                    ""
                };
                Failure::new(
                    MPI_ERR_ROOT,
                    format!("root is {root}, but {of}{label} has ranks 0 to {last}"),
                )
            })
    }

    /// The failure of an operation that is not defined between groups.
    fn only_intra(&self) -> Outcome {
        match self.comm.is_inter() {
            false => Ok(()),
            true => Err(Failure::new(
                MPI_ERR_COMM,
                format!(
                    "{} is an intercommunicator, and this operation is not defined between groups",
                    self.label()
                ),
            )),
        }
    }

    /// Whether a buffer argument is `MPI_IN_PLACE`, which has no meaning between groups.
    fn in_place(&self, buf: *const c_void) -> Result<bool, Failure> {
        let in_place = buf.addr() == MPI_IN_PLACE.addr();
        if in_place && self.comm.is_inter() {
            return Err(Failure::new(
                MPI_ERR_BUFFER,
                "MPI_IN_PLACE has no meaning on an intercommunicator",
            ));
        }
        Ok(in_place)
    }

    /// A send buffer, or none for `MPI_IN_PLACE`.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent(
        &self,
        buf: *const c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.in_place(buf)? {
            return Ok(None);
        }
        // SAFETY: passed on.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// A process's own contribution to a root: `MPI_IN_PLACE` at the root only, and nothing in the root's own group between groups.
    ///
    /// # Safety
    /// As [`send_buf`].
    unsafe fn sent_to(
        &self,
        root: u32,
        buf: *const c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<SendBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: passed on.
        unsafe { send_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// What a process gets from a root: `MPI_IN_PLACE` at the root only, and nothing in the root's own group between groups.
    ///
    /// # Safety
    /// As [`recv_buf`].
    unsafe fn received_from(
        &self,
        root: u32,
        buf: *mut c_void,
        count: impl Wide,
        datatype: MPI_Datatype,
    ) -> Result<Option<RecvBuf>, Failure> {
        if self.is_beside(root) || (self.is_root(root) && self.in_place(buf)?) {
            return Ok(None);
        }
        // SAFETY: passed on.
        unsafe { recv_buf(buf, count.wide(), datatype).map(Some) }
    }

    /// Whether this process is in the root's group, between groups: it has no data of its own.
    fn is_beside(&self, root: u32) -> bool {
        self.comm.is_inter() && (root == inter::ROOT || root == inter::NOBODY)
    }
}

/// One block of a buffer for each rank: where it is and how much it holds.
struct Block {
    offset: isize,
    count: i64,
    datatype: MPI_Datatype,
}

/// The blocks of a `v` operation, whose displacements count elements.
///
/// # Safety
/// The arrays are arguments of the caller with `n` elements.
unsafe fn blocks(
    n: usize,
    counts: *const impl Wide,
    displacements: *const impl Wide,
    datatype: MPI_Datatype,
) -> Result<Vec<Block>, Failure> {
    let extent = state::datatype(datatype)?.extent();
    // SAFETY: passed on.
    let (counts, displacements) = unsafe {
        (
            slice(counts, n, "counts")?,
            slice(displacements, n, "displs")?,
        )
    };
    let block = |(count, displacement): (&_, &_)| Block {
        offset: Wide::wide(*displacement).wrapping_mul(extent) as isize,
        count: Wide::wide(*count),
        datatype,
    };
    Ok(counts.iter().zip(displacements).map(block).collect())
}

/// The blocks of a `w` operation, whose displacements count bytes.
///
/// # Safety
/// The arrays are arguments of the caller with `n` elements.
unsafe fn typed_blocks(
    n: usize,
    counts: *const impl Wide,
    displacements: *const impl Wide,
    datatypes: *const MPI_Datatype,
) -> Result<Vec<Block>, Failure> {
    // SAFETY: passed on.
    let (counts, displacements, datatypes) = unsafe {
        (
            slice(counts, n, "counts")?,
            slice(displacements, n, "displs")?,
            slice(datatypes, n, "types")?,
        )
    };
    let block = |((count, displacement), datatype): ((&_, &_), &_)| Block {
        offset: Wide::wide(*displacement) as isize,
        count: Wide::wide(*count),
        datatype: *datatype,
    };
    Ok(counts
        .iter()
        .zip(displacements)
        .zip(datatypes)
        .map(block)
        .collect())
}

/// A block of a send buffer for each rank.
///
/// # Safety
/// As [`send_buf`] for each block.
unsafe fn sent_blocks(buf: *const c_void, blocks: Vec<Block>) -> Result<Rc<[SendBuf]>, Failure> {
    // SAFETY: passed on.
    let one = |b: Block| unsafe { send_buf(at(buf, &b), b.count, b.datatype) };
    blocks.into_iter().map(one).collect()
}

/// A block of a receive buffer for each rank.
///
/// # Safety
/// As [`recv_buf`] for each block.
unsafe fn received_blocks(buf: *mut c_void, blocks: Vec<Block>) -> Result<Rc<[RecvBuf]>, Failure> {
    // SAFETY: passed on.
    let one = |b: Block| unsafe { recv_buf(at(buf, &b).cast_mut(), b.count, b.datatype) };
    blocks.into_iter().map(one).collect()
}

/// Where a block begins; one without data may lie anywhere, also where the buffer is null.
fn at(buf: *const c_void, block: &Block) -> *const c_void {
    buf.wrapping_byte_offset(block.offset)
}

pub unsafe fn plan_Barrier(comm: MPI_Comm) -> Planned {
    Ok(Plan {
        comm: state::comm(comm)?,
        call: Call::Barrier,
    })
}

pub unsafe fn plan_Bcast(
    buffer: *mut c_void,
    count: impl Wide,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    let buf = match root {
        inter::NOBODY => RecvBuf::empty(),
        // SAFETY: a buffer of the caller.
        _ => unsafe { recv_buf(buffer, count.wide(), datatype)? },
    };
    let call = Call::Bcast { buf, root };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Gather(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        let recv = comm
            .is_root(root)
            .then(|| recv_buf(recvbuf, recvcount.wide(), recvtype));
        (
            comm.sent_to(root, sendbuf, sendcount, sendtype)?,
            recv.transpose()?,
        )
    };
    let call = Call::Gather { send, recv, root };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Gatherv(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Wide,
    displs: *const impl Wide,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: buffers and arrays of the caller.
    let (send, recv) = unsafe {
        let recv = match comm.is_root(root) {
            true => Some(received_blocks(
                recvbuf,
                blocks(comm.blocks(), recvcounts, displs, recvtype)?,
            )?),
            false => None,
        };
        (comm.sent_to(root, sendbuf, sendcount, sendtype)?, recv)
    };
    let call = Call::Gatherv { send, recv, root };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Scatter(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        let send = comm
            .is_root(root)
            .then(|| send_buf(sendbuf, sendcount.wide(), sendtype));
        (
            send.transpose()?,
            comm.received_from(root, recvbuf, recvcount, recvtype)?,
        )
    };
    let call = Call::Scatter { send, recv, root };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Scatterv(
    sendbuf: *const c_void,
    sendcounts: *const impl Wide,
    displs: *const impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let root = comm.root(root)?;
    // SAFETY: buffers and arrays of the caller.
    let (send, recv) = unsafe {
        let send = match comm.is_root(root) {
            true => Some(sent_blocks(
                sendbuf,
                blocks(comm.blocks(), sendcounts, displs, sendtype)?,
            )?),
            false => None,
        };
        (
            send,
            comm.received_from(root, recvbuf, recvcount, recvtype)?,
        )
    };
    let call = Call::Scatterv { send, recv, root };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Allgather(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, sendcount, sendtype)?,
            recv_buf(recvbuf, recvcount.wide(), recvtype)?,
        )
    };
    let call = Call::Allgather { send, recv };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Allgatherv(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Wide,
    displs: *const impl Wide,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: buffers and arrays of the caller.
    let (send, recv) = unsafe {
        let recv = received_blocks(
            recvbuf,
            blocks(comm.blocks(), recvcounts, displs, recvtype)?,
        )?;
        (comm.sent(sendbuf, sendcount, sendtype)?, recv)
    };
    let call = Call::Allgatherv { send, recv };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Alltoall(
    sendbuf: *const c_void,
    sendcount: impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Wide,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    // SAFETY: buffers of the caller.
    let (send, recv) = unsafe {
        (
            comm.sent(sendbuf, sendcount, sendtype)?,
            recv_buf(recvbuf, recvcount.wide(), recvtype)?,
        )
    };
    let call = Call::Alltoall { send, recv };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Alltoallv(
    sendbuf: *const c_void,
    sendcounts: *const impl Wide,
    sdispls: *const impl Wide,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Wide,
    rdispls: *const impl Wide,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let n = comm.blocks();
    // SAFETY: buffers and arrays of the caller.
    let (send, recv) = unsafe {
        let send = match comm.in_place(sendbuf)? {
            true => None,
            false => Some(sent_blocks(
                sendbuf,
                blocks(n, sendcounts, sdispls, sendtype)?,
            )?),
        };
        (
            send,
            received_blocks(recvbuf, blocks(n, recvcounts, rdispls, recvtype)?)?,
        )
    };
    let call = Call::Alltoallv { send, recv };
    Ok(Plan { comm, call })
}

pub unsafe fn plan_Alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const impl Wide,
    sdispls: *const impl Wide,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Wide,
    rdispls: *const impl Wide,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Planned {
    let comm = state::comm(comm)?;
    let n = comm.blocks();
    // SAFETY: buffers and arrays of the caller.
    let (send, recv) = unsafe {
        let send = match comm.in_place(sendbuf)? {
            true => None,
            false => Some(sent_blocks(
                sendbuf,
                typed_blocks(n, sendcounts, sdispls, sendtypes)?,
            )?),
        };
        (
            send,
            received_blocks(recvbuf, typed_blocks(n, recvcounts, rdispls, recvtypes)?)?,
        )
    };
    let call = Call::Alltoallw { send, recv };
    Ok(Plan { comm, call })
}

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
    let op = operator(op, datatype)?;
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
    let counts = unsafe { super::args::wides(recvcounts, comm.members(), "recvcounts")? };
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
