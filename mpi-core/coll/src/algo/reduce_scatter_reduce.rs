//! Reduce-scatter as a reduction to rank 0 and a scatter from there.
//!
//! Operands keep the order of ranks.
//! The catalogue's algorithm "linear" is this algorithm with the linear reduction, whose order of operations is fixed.
//! `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::elements;
use super::reduction::Reduction;
use super::{Blocks, scatter_linear, scattered};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce_scatter(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
    op: &Op,
    reduction: Reduction,
) -> Result<(), Error> {
    let (input, recv) = scattered::buffers(invocation, send, recv, counts);
    if invocation.rank() != 0 {
        reduction.run(invocation, Some(&input), None, op, 0).await?;
        return scatter_linear::scatter(invocation, None, Some(&recv), 0).await;
    }
    let whole = elements(input.count(), recv.datatype())?.all();
    reduction
        .run(invocation, Some(&input), Some(&whole), op, 0)
        .await?;
    let blocks = Blocks::Each(scattered::cut(&whole.as_send(), counts).into());
    scatter_linear::scatter(invocation, Some(&blocks), Some(&recv), 0).await
}
