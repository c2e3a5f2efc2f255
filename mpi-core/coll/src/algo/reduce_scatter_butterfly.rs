//! Butterfly reduce-scatter that keeps the order of operands.
//!
//! J. L. Traeff, "An improved algorithm for (non-commutative) reduce-scatter with an application", EuroPVM/MPI 2005.
//! In the first round partners are neighbours, so the combined operands are always of consecutive ranks.
//! At the end each worker has the part of the worker with the bit-reversed number,
//! and sends this part to that worker in one more step.
//! It takes log2 n + 1 rounds; operators need not commute.
//! `recv` is this rank's part of the result; with MPI_IN_PLACE it is the start of the whole input.

use super::elements;
use super::fold::Worker;
use super::halving::{Parts, hand_out};
use super::{combine, copy, scattered, twin};
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
    let mut acc = elements(input.count(), recv.datatype())?.all();
    copy(&input, &acc);
    let mut fresh = twin(&acc)?;
    worker.take_in(invocation, &acc, &fresh, op).await?;

    let Worker { fold, number, .. } = worker;
    let parts = Parts::of_ranks(fold, counts);
    let mut have = 0..fold.power;
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        let rank = fold.rank(partner);
        let middle = have.start + (have.end - have.start) / 2;
        let (lower, upper) = (have.start..middle, middle..have.end);
        let (keep, give) = match number & step == 0 {
            true => (lower, upper),
            false => (upper, lower),
        };
        let kept = parts.of(keep.clone());
        let space = fresh.slice(kept.clone());
        let out = acc.slice(parts.of(give)).as_send();
        invocation.sendrecv(&out, rank, &space, rank).await?;
        let own = acc.slice(kept);
        if partner < number {
            combine(op, &space.as_send(), &own)?;
        } else {
            combine(op, &own.as_send(), &space)?;
            std::mem::swap(&mut acc, &mut fresh);
        }
        have = keep;
        step *= 2;
    }

    let own = fresh.slice(parts.group(number, 1));
    let made = acc.slice(parts.of(have.clone())).as_send();
    if have.start == number {
        copy(&made, &own);
    } else {
        // Bit reversal is its own inverse: the worker to which this part belongs has this worker's part.
        // So the two workers exchange their parts.
        let rank = fold.rank(have.start);
        invocation.sendrecv(&made, rank, &own, rank).await?;
    }
    hand_out(invocation, &worker, &own, &recv).await
}
