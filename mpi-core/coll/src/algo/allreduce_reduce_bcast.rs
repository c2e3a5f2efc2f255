//! Allreduce as a reduction to rank 0 and a broadcast from there.
//!
//! With a binomial reduction it takes 2 (n - 1) messages, the fewest of all allreduce algorithms.
//! This is an advantage when more ranks than cores run.
//! The catalogue's algorithm "linear" is this algorithm with the linear reduction, whose order of operations is fixed.
//! Operands keep the order of ranks.

use super::reduction::Reduction;
use super::{bcast_binomial, own};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn allreduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
    reduction: Reduction,
) -> Result<(), Error> {
    let own = own(send, recv);
    match invocation.rank() {
        0 => reduction.run(invocation, send, Some(recv), op, 0).await?,
        _ => reduction.run(invocation, Some(&own), None, op, 0).await?,
    }
    bcast_binomial::bcast(invocation, recv, 0).await
}
