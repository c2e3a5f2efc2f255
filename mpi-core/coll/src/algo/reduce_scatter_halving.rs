//! Reduce-scatter by recursive halving: in each round partners exchange halves of their data.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.6.
//! It takes log2 n rounds; the operator must commute.
//! `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::elements;
use super::fold::Worker;
use super::halving::{Parts, halve, hand_out};
use super::{copy, scattered, twin};
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
) -> Result<(), Error> {
    let (input, recv) = scattered::buffers(invocation, send, recv, counts);
    let Some(worker) = Worker::begin(invocation, &input, Some(&recv)).await? else {
        return Ok(());
    };
    let acc = elements(input.count(), recv.datatype())?.all();
    copy(&input, &acc);
    let fresh = twin(&acc)?;
    worker.take_in(invocation, &acc, &fresh, op).await?;
    let Worker { fold, number, .. } = worker;
    let parts = Parts::of_ranks(fold, counts);
    halve(invocation, &parts, number, &acc, &fresh, op).await?;
    let own = acc.slice(parts.group(number, 1));
    hand_out(invocation, &worker, &own, &recv).await
}
