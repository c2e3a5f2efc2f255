//! Rabenseifner's reduction: a reduce-scatter by recursive halving, then a binomial gather of the pieces at the root.
//!
//! R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
//! Best for long data: 2 log2 n rounds and the least data sent; needs a commutative operator.

use super::elements;
use super::fold::Worker;
use super::halving::{Parts, halve};
use super::{contribute, copy, twin};
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
) -> Result<(), Error> {
    let me = invocation.rank();
    let Some(own) = send.cloned().or_else(|| recv.map(RecvBuf::as_send)) else {
        return Ok(());
    };
    let result = recv.filter(|_| me == root);
    let Some(worker) = Worker::begin(invocation, &own, result).await? else {
        return Ok(());
    };
    let acc = match result {
        Some(result) => {
            contribute(send, result);
            result.clone()
        }
        None => {
            let acc = elements(own.count(), own.datatype())?.all();
            copy(&own, &acc);
            acc
        }
    };
    let fresh = twin(&acc)?;
    worker.take_in(invocation, &acc, &fresh, op).await?;
    let Worker { fold, number, .. } = worker;
    let parts = Parts::even(fold, acc.count());
    halve(invocation, &parts, number, &acc, &fresh, op).await?;

    // The pieces are gathered at the root's worker: the root itself, or the rank that has taken over its data.
    let top = fold.number(root);
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        if (number ^ top) & step != 0 {
            let mine = acc.slice(parts.group(number, step));
            return invocation.send(&mine.as_send(), fold.rank(partner)).await;
        }
        let theirs = acc.slice(parts.group(partner, step));
        invocation.recv(&theirs, fold.rank(partner)).await?;
        step *= 2;
    }
    match fold.rank(top) == root {
        true => Ok(()),
        false => invocation.send(&acc.as_send(), root).await,
    }
}
