//! Reduce-scatter by recursive halving: partners exchange the half of their parts that is the other's.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.6.
//! log2 n rounds; needs an operator that commutes.
//! `recv` is this rank's part, and in place it starts the whole input.

use super::elements;
use super::fold::{Fold, Part};
use super::{Buffer, combine, copy, twin};
use crate::Error;
use crate::coll::Cx;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use std::ops::Range;

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
    let (number, other) = match part {
        Part::WorksFor { number, other } => {
            cx.recv(&fresh, other).await?;
            combine(op, &fresh.as_send(), &acc)?;
            (number, Some(other))
        }
        Part::Works { number } | Part::Rests { to: number } => (number, None),
    };

    // Where each rank's part starts, and the end.
    let starts: Vec<i64> = std::iter::once(0)
        .chain(counts.iter().scan(0, |at, count| {
            *at += count;
            Some(*at)
        }))
        .collect();
    // The first rank that worker `number` answers for; it answers up to the next worker's first.
    let first = |number: u32| match number {
        n if n == fold.power => cx.size(),
        n => match fold.part(fold.rank(n)) {
            Part::WorksFor { other, .. } => other,
            _ => fold.rank(n),
        },
    };
    let elements = |workers: Range<u32>| {
        starts[first(workers.start) as usize]..starts[first(workers.end) as usize]
    };
    let group = |number: u32, step: u32| {
        let start = number & !(step - 1);
        elements(start..start + step)
    };
    let mut step = fold.power / 2;
    while step > 0 {
        let partner = number ^ step;
        let rank = fold.rank(partner);
        let (mine, theirs) = (group(number, step), group(partner, step));
        let space = fresh.slice(mine.clone());
        cx.sendrecv(&acc.slice(theirs).as_send(), rank, &space, rank)
            .await?;
        combine(op, &space.as_send(), &acc.slice(mine))?;
        step /= 2;
    }
    let part_of = |rank: u32| {
        acc.slice(starts[rank as usize]..starts[rank as usize + 1])
            .as_send()
    };
    copy(&part_of(cx.rank()), &recv);
    match other {
        Some(other) => cx.send(&part_of(other), other).await,
        None => Ok(()),
    }
}
