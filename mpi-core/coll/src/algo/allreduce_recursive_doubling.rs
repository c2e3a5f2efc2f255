//! Recursive doubling allreduce: pairs exchange partial results, then pairs of pairs.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.5.
//! Best for short data: log2 n rounds.
//! The left operand is always the lower partner's data, so every rank computes the same expression and operators need not commute.

use super::fold::Worker;
use super::{combine, contribute, copy, own, twin};
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
    let Some(worker) = Worker::begin(invocation, &own(send, recv), Some(recv)).await? else {
        return Ok(());
    };
    contribute(send, recv);
    if invocation.size() == 1 {
        return Ok(());
    }
    let (mut acc, mut fresh) = (recv.clone(), twin(recv)?);
    worker.take_in(invocation, &acc, &fresh, op).await?;
    let Worker { fold, number, .. } = worker;
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        let rank = fold.rank(partner);
        invocation
            .sendrecv(&acc.as_send(), rank, &fresh, rank)
            .await?;
        if partner < number {
            combine(op, &fresh.as_send(), &acc)?;
        } else {
            combine(op, &acc.as_send(), &fresh)?;
            std::mem::swap(&mut acc, &mut fresh);
        }
        step *= 2;
    }
    if acc.ptr() != recv.ptr() {
        copy(&acc.as_send(), recv);
    }
    worker.give_back(invocation, &recv.as_send()).await
}
