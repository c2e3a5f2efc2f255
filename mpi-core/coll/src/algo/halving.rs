//! What the algorithms by recursive halving have in common: which elements a worker of a [`Fold`] answers for, and the halving itself.

use super::blocks::share;
use super::fold::{Fold, Part, Worker};
use super::{combine, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;
use crate::op::Op;
use std::ops::Range;

/// The elements of each worker's part, in the order of workers.
#[derive(Debug)]
pub struct Parts {
    fold: Fold,
    /// Where each worker's part starts, and the end.
    starts: Vec<i64>,
}

impl Parts {
    /// Parts of about the same length.
    pub fn even(fold: Fold, total: i64) -> Parts {
        let starts = (0..fold.power).map(|worker| share(total, fold.power, worker).start);
        Parts {
            fold,
            starts: starts.chain([total]).collect(),
        }
    }

    /// What the ranks are to get: a worker's part is its own and that of the rank that rests for it.
    pub fn of_ranks(fold: Fold, counts: &[i64]) -> Parts {
        let first = |worker: u32| match fold.part(fold.rank(worker)) {
            Part::WorksFor { other, .. } => other,
            _ => fold.rank(worker),
        };
        let before = |rank: u32| counts[..rank as usize].iter().sum();
        let starts = (0..fold.power).map(|worker| before(first(worker)));
        Parts {
            fold,
            starts: starts.chain([counts.iter().sum()]).collect(),
        }
    }

    /// The elements of consecutive workers.
    pub fn of(&self, workers: Range<u32>) -> Range<i64> {
        self.starts[workers.start as usize]..self.starts[workers.end as usize]
    }

    /// The elements of a worker's aligned group of `step` workers.
    pub fn group(&self, number: u32, step: u32) -> Range<i64> {
        let first = number & !(step - 1);
        self.of(first..first + step)
    }
}

/// Partners exchange the half of their parts that is the other's, until each worker has the sum of its own part in `acc`.
/// Needs an operator that commutes.
pub async fn halve(
    cx: &Invocation,
    parts: &Parts,
    number: u32,
    acc: &RecvBuf,
    fresh: &RecvBuf,
    op: &Op,
) -> Result<(), Error> {
    let mut step = parts.fold.power / 2;
    while step > 0 {
        let partner = number ^ step;
        let rank = parts.fold.rank(partner);
        let (mine, theirs) = (parts.group(number, step), parts.group(partner, step));
        let space = fresh.slice(mine.clone());
        cx.sendrecv(&acc.slice(theirs).as_send(), rank, &space, rank)
            .await?;
        combine(op, &space.as_send(), &acc.slice(mine))?;
        step /= 2;
    }
    Ok(())
}

/// Gives out a worker's part, which starts with that of the rank that rests for it; the rest is `recv`, its own.
pub async fn hand_out(
    cx: &Invocation,
    worker: &Worker,
    part: &RecvBuf,
    recv: &RecvBuf,
) -> Result<(), Error> {
    let theirs = part.count() - recv.count();
    copy(&part.slice(theirs..part.count()).as_send(), recv);
    worker.give_back(cx, &part.slice(0..theirs).as_send()).await
}
