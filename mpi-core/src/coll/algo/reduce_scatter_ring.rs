//! Ring reduce-scatter: the parts go round and grow, until each rank has the whole sum of its own.
//!
//! P. Patarasuk, X. Yuan, JPDC 69(2), 2009, see [`super::ring`].
//! n - 1 rounds between neighbours, each rank sends the least possible; needs an operator that commutes.
//! `recv` is this rank's part, and in place it starts the whole input.

use super::elements;
use super::{Buffer, copy, ring};
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
    segment: i64,
) -> Result<(), Error> {
    let total: i64 = counts.iter().sum();
    let input = send
        .cloned()
        .unwrap_or_else(|| Buffer::with_count(recv, total).as_send());
    let acc = elements(total, recv.datatype())?.all();
    copy(&input, &acc);
    let mut at = 0;
    let pieces: Vec<RecvBuf> = counts
        .iter()
        .map(|count| {
            at += count;
            acc.slice(at - count..at)
        })
        .collect();
    ring::reduce_scatter(cx, &pieces, op, segment).await?;
    let mine = &pieces[cx.rank() as usize];
    copy(&mine.as_send(), &Buffer::with_count(recv, mine.count()));
    Ok(())
}
