//! In-order binary reduction: segments go up a binary search tree of the ranks, whose top is the root.
//!
//! This is the in-order binary tree of Open MPI's coll/tuned, after J. Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007, section 4.3.
//! It takes about log2 n + segments steps.
//! Operands keep their order for every root, without an additional message to the root.

use super::in_order::InOrder;
use super::segments;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    root: u32,
    segment: i64,
) -> Result<(), Error> {
    let tree = InOrder::binary(invocation.rank(), root, invocation.size());
    segments::reduce(invocation, tree, send, recv, op, segment).await
}
