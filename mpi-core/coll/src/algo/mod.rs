//! Collective algorithms: one per file, each an `async fn` on nonblocking point-to-point calls, with a reference to its paper.
//!
//! All algorithms guarantee:
//! * they accept every communicator size (including one and odd sizes), every root, zero counts and every datatype;
//! * `send: None` is `MPI_IN_PLACE`;
//! * operands keep the order of ranks, unless the file says that the operator must commute;
//! * no decision depends on timing, so a repeated call gives the same bits;
//! * if members pass different counts, the call fails and does not hang;
//!   exceptions are pipelines, because their members then expect different numbers of segments.
//!
//! Messages are always packed data, so members may describe the same data by different datatypes.
//! Sums of different algorithms may differ in the last bit; in one call all members get the same result.

pub mod allgather_bruck;
pub mod allgather_neighbor_exchange;
pub mod allgather_recursive_doubling;
pub mod allgather_ring;
pub mod allreduce_rabenseifner;
pub mod allreduce_recursive_doubling;
pub mod allreduce_reduce_bcast;
pub mod allreduce_ring;
pub mod allreduce_segmented_ring;
pub mod alltoall_bruck;
pub mod alltoall_linear;
pub mod alltoall_pairwise;
pub mod alltoallv_bruck;
pub mod barrier_dissemination;
pub mod barrier_double_ring;
pub mod barrier_recursive_doubling;
pub mod barrier_tree;
pub mod bcast_binomial;
pub mod bcast_chain;
pub mod bcast_knomial;
pub mod bcast_scatter_allgather;
mod blocks;
mod catalogue;
pub mod exscan_recursive_doubling;
mod fold;
pub mod gather_binomial;
pub mod gather_linear;
pub mod gatherv_binomial;
mod halving;
mod in_order;
mod lengths;
pub mod neighbor_linear;
pub mod reduce_binomial;
pub mod reduce_in_order;
pub mod reduce_linear;
pub mod reduce_pipeline;
pub mod reduce_rabenseifner;
pub mod reduce_scatter_butterfly;
pub mod reduce_scatter_halving;
pub mod reduce_scatter_pairwise;
pub mod reduce_scatter_reduce;
pub mod reduce_scatter_ring;
mod reduction;
mod ring;
mod row;
mod run;
pub mod scan_recursive_doubling;
pub mod scatter_binomial;
pub mod scatter_linear;
pub(super) mod scattered;
pub mod scatterv_binomial;
mod segments;
mod staged;

pub use blocks::{Blocks, Buffer, share};
pub use catalogue::Algorithm;

use super::CollError;
use crate::Error;
use crate::datatype::{self, Datatype, RecvBuf, Scratch, SendBuf};
use crate::op::Op;
use crate::topo::{tree, turn};

pub use turn::{ahead, behind};

/// Copies data between two buffers of this process.
pub(super) fn copy(from: &SendBuf, to: &RecvBuf) {
    datatype::copy(from, &mut to.clone());
}

/// Computes `right = left op right`.
fn combine(op: &Op, left: &SendBuf, right: &RecvBuf) -> Result<(), Error> {
    Ok(op.apply(left, &mut right.clone())?)
}

/// Allocates temporary memory for packed data.
pub(crate) fn bytes(len: i64) -> Result<Scratch, Error> {
    Ok(Scratch::bytes(len).map_err(CollError::NoMemory)?)
}

/// Allocates temporary memory for elements of a datatype.
pub(super) fn elements(count: i64, datatype: &Datatype) -> Result<Scratch, Error> {
    Ok(Scratch::new(count, datatype).map_err(CollError::NoMemory)?)
}

/// Allocates temporary memory of the same type and count as `like`.
fn twin(like: &RecvBuf) -> Result<RecvBuf, Error> {
    Ok(elements(like.count(), like.datatype())?.all())
}

/// Copies a rank's own contribution to the result buffer;
/// does nothing with MPI_IN_PLACE (`send` is `None`).
fn contribute(send: Option<&SendBuf>, recv: &RecvBuf) {
    if let Some(send) = send {
        copy(send, recv);
    }
}

/// Returns a rank's own contribution; with MPI_IN_PLACE it is in the result buffer.
fn own(send: Option<&SendBuf>, recv: &RecvBuf) -> SendBuf {
    send.cloned().unwrap_or_else(|| recv.as_send())
}
