//! Rabenseifner's allreduce: a reduce-scatter by recursive halving, then an allgather by recursive doubling.
//!
//! R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
//! Best for long data: 2 log2 n rounds and the least data sent; needs a commutative operator.

use super::fold::Worker;
use super::halving::{Parts, halve};
use super::{contribute, own, twin};
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
    let fresh = twin(recv)?;
    worker.take_in(invocation, recv, &fresh, op).await?;

    let Worker { fold, number, .. } = worker;
    let parts = Parts::even(fold, recv.count());
    halve(invocation, &parts, number, recv, &fresh, op).await?;
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        let rank = fold.rank(partner);
        let (mine, theirs) = (
            recv.slice(parts.group(number, step)),
            recv.slice(parts.group(partner, step)),
        );
        invocation
            .sendrecv(&mine.as_send(), rank, &theirs, rank)
            .await?;
        step *= 2;
    }
    worker.give_back(invocation, &recv.as_send()).await
}
