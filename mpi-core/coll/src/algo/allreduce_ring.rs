//! Ring allreduce: pieces of the data go round the ring twice, first to be summed (reduce-scatter), then to be distributed (allgather).
//!
//! P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
//! Each rank sends 2 (n - 1) / n of the data, the minimum. The operator must commute, since each piece's sum starts on a different rank.
//! This file only calls the segmented ring, with one segment per piece.

use super::allreduce_segmented_ring;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn allreduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    allreduce_segmented_ring::allreduce(invocation, send, recv, op, i64::MAX).await
}
