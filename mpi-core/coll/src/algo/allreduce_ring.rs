//! Ring allreduce: pieces go round once to be summed (reduce-scatter) and once to be distributed (allgather).
//!
//! P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
//! Each rank sends 2 (n - 1) / n of the data, the minimum; needs a commutative operator, since each piece starts on a different rank.
//! It is the segmented ring with one segment per piece.

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
