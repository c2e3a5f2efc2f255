//! Ring allreduce: pieces go round once to be summed and once to be told.
//!
//! P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
//! Each rank sends 2 (n - 1) / n of the data, the least possible; needs an operator that commutes, since each piece starts at another rank.
//! It is the segmented ring whose pieces are one segment.

use super::allreduce_segmented_ring;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn allreduce(
    cx: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    allreduce_segmented_ring::allreduce(cx, send, recv, op, i64::MAX).await
}
