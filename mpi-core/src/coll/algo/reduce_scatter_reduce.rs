//! Reduce-scatter as a reduction to rank 0 and a scatter from there.
//!
//! Keeps the order of operands; by the linear reduction, whose operations are always the same, it is called "linear".
//! `recv` is this rank's part, and in place it starts the whole input.

use super::elements;
use super::reduction::Reduction;
use super::{Blocks, Buffer, scatter_linear};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce_scatter(
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
    op: &Op,
    reduction: Reduction,
) -> Result<(), Error> {
    let total: i64 = counts.iter().sum();
    let mine = counts[cx.rank() as usize];
    let input = send
        .cloned()
        .unwrap_or_else(|| Buffer::with_count(recv, total).as_send());
    let recv = Buffer::with_count(recv, mine);
    if cx.rank() != 0 {
        reduction.run(cx, Some(&input), None, op, 0).await?;
        return scatter_linear::scatter(cx, None, Some(&recv), 0).await;
    }
    let whole = elements(total, recv.datatype())?;
    reduction
        .run(cx, Some(&input), Some(&whole.all()), op, 0)
        .await?;
    let mut at = 0;
    let blocks = counts.iter().map(|count| {
        let elements = at..at + count;
        at = elements.end;
        whole.send(elements)
    });
    let blocks = Blocks::Each(blocks.collect());
    scatter_linear::scatter(cx, Some(&blocks), Some(&recv), 0).await
}
