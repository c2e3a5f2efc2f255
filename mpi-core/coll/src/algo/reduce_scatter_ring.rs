//! Ring reduce-scatter: partial sums of the parts go round the ring, until each rank has the complete sum of its own part.
//!
//! P. Patarasuk, X. Yuan, JPDC 69(2), 2009, see [`super::ring`].
//! It takes n - 1 rounds between neighbours, and each rank sends (n - 1) / n of the data, the minimum.
//! The operator must commute.
//! `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::elements;
use super::{copy, ring, scattered};
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
    segment: i64,
) -> Result<(), Error> {
    let (input, recv) = scattered::buffers(invocation, send, recv, counts);
    let acc = elements(input.count(), recv.datatype())?.all();
    copy(&input, &acc);
    let pieces = scattered::cut(&acc, counts);
    ring::reduce_scatter(invocation, &pieces, op, segment).await?;
    copy(&pieces[invocation.rank() as usize].as_send(), &recv);
    Ok(())
}
