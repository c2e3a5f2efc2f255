//! Reduce-scatter by recursive halving: partners exchange the half of their parts that is the other's.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.6.
//! log2 n rounds; needs an operator that commutes.
//! `recv` is this rank's part, and in place it starts the whole input.

use super::elements;
use super::fold::{Fold, Part};
use super::halving::{Parts, halve};
use super::{Buffer, copy, twin};
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
) -> Result<(), Error> {
    let total: i64 = counts.iter().sum();
    let input = send
        .cloned()
        .unwrap_or_else(|| Buffer::with_count(recv, total).as_send());
    let recv = Buffer::with_count(recv, counts[cx.rank() as usize]);
    let fold = Fold::new(cx.size());
    let part = fold.part(cx.rank());
    if let Part::Rests { to } = part {
        cx.send(&input, to).await?;
        return cx.recv(&recv, to).await;
    }
    let acc = elements(total, recv.datatype())?.all();
    copy(&input, &acc);
    let fresh = twin(&acc)?;
    let (number, other) = part.take_in(cx, &acc, &fresh, op).await?;
    let parts = Parts::of_ranks(fold, counts);
    halve(cx, &parts, number, &acc, &fresh, op).await?;

    // A worker's part starts with that of the rank that rests for it.
    let own = acc.slice(parts.group(number, 1));
    let theirs = own.count() - recv.count();
    copy(&own.slice(theirs..own.count()).as_send(), &recv);
    match other {
        Some(other) => cx.send(&own.slice(0..theirs).as_send(), other).await,
        None => Ok(()),
    }
}
