//! Rabenseifner's reduction: a reduce-scatter by recursive halving, then a binomial gather of the pieces at the root.
//!
//! R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
//! Best for long data: 2 log2 n rounds and the least data; needs an operator that commutes.

use super::elements;
use super::fold::{Fold, Part};
use super::halving::{Parts, halve};
use super::{contribute, copy, twin};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce(
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    let me = cx.rank();
    let Some(own) = send.cloned().or_else(|| recv.map(RecvBuf::as_send)) else {
        return Ok(());
    };
    let fold = Fold::new(cx.size());
    let part = fold.part(me);
    if let Part::Rests { to } = part {
        cx.send(&own, to).await?;
        return match recv {
            Some(recv) if me == root => cx.recv(recv, to).await,
            _ => Ok(()),
        };
    }
    let acc = match recv {
        Some(recv) if me == root => {
            contribute(send, recv);
            recv.clone()
        }
        _ => {
            let acc = elements(own.count(), own.datatype())?.all();
            copy(&own, &acc);
            acc
        }
    };
    let fresh = twin(&acc)?;
    let (number, _) = part.take_in(cx, &acc, &fresh, op).await?;
    let parts = Parts::even(fold, acc.count());
    halve(cx, &parts, number, &acc, &fresh, op).await?;

    // The pieces come together at the worker that is the root or that the root rests for.
    let top = match fold.part(root) {
        Part::Rests { to } => to,
        _ => root,
    };
    let top_number = match fold.part(top) {
        Part::WorksFor { number, .. } | Part::Works { number } | Part::Rests { to: number } => {
            number
        }
    };
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        if (number ^ top_number) & step != 0 {
            let mine = acc.slice(parts.group(number, step));
            return cx.send(&mine.as_send(), fold.rank(partner)).await;
        }
        let theirs = acc.slice(parts.group(partner, step));
        cx.recv(&theirs, fold.rank(partner)).await?;
        step *= 2;
    }
    match top == root {
        true => Ok(()),
        false => cx.send(&acc.as_send(), root).await,
    }
}
