//! Pipelined reduction: segments go along two chains of ranks that end at the root, and each rank combines its operand with them.
//!
//! The "pipeline" of J. Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007, section 4.3.
//! Best for long data on few ranks: it takes n + segments - 2 steps.
//! The chains are in rank order and both end at the root, so operands keep their order.

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
    let tree = InOrder::chain(invocation.rank(), root, invocation.size());
    segments::reduce(invocation, tree, send, recv, op, segment).await
}
