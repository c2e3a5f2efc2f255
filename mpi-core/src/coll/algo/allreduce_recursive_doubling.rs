//! Recursive doubling allreduce: pairs exchange partial results, then pairs of pairs.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.5.
//! Best for short data: log2 n rounds.
//! The lower of two partners is always the left operand, so every rank computes the same expression and operators need not commute.

use super::fold::{Fold, Part};
use super::{combine, contribute, copy, twin};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn allreduce(
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    let fold = Fold::new(cx.size());
    let part = fold.part(cx.rank());
    if let Part::Rests { to } = part {
        let own = send.cloned().unwrap_or_else(|| recv.as_send());
        cx.send(&own, to).await?;
        return cx.recv(recv, to).await;
    }
    contribute(send, recv);
    if cx.size() == 1 {
        return Ok(());
    }
    let (mut acc, mut fresh) = (recv.clone(), twin(recv)?);
    let (number, other) = part.take_in(cx, &acc, &fresh, op).await?;
    let mut step = 1;
    while step < fold.power {
        let partner = number ^ step;
        let rank = fold.rank(partner);
        cx.sendrecv(&acc.as_send(), rank, &fresh, rank).await?;
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
    match other {
        Some(other) => cx.send(&recv.as_send(), other).await,
        None => Ok(()),
    }
}
