//! Recursive halving: the division of data into one part per worker of a [`Fold`], and the reduce-scatter of these parts.

use super::blocks::share;
use super::fold::{Fold, Part, Worker};
use super::{combine, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::RecvBuf;
use crate::op::Op;
use std::ops::Range;

/// The range of elements of each worker's part, in the order of workers.
#[derive(Debug)]
pub struct Parts {
    fold: Fold,
    /// The start of each worker's part, followed by the end of the last part.
    starts: Vec<i64>,
}

impl Parts {
    /// Divides `total` elements into one part per worker, of nearly equal length.
    pub fn even(fold: Fold, total: i64) -> Parts {
        let starts = (0..fold.power).map(|worker| share(total, fold.power, worker).start);
        Parts {
            fold,
            starts: starts.chain([total]).collect(),
        }
    }

    /// Returns the parts of a reduce-scatter: a worker's part covers its own elements and those of the idle rank for which it works.
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

    /// Returns the range of elements of the parts of consecutive workers.
    pub fn of(&self, workers: Range<u32>) -> Range<i64> {
        self.starts[workers.start as usize]..self.starts[workers.end as usize]
    }

    /// Returns the range of elements of the parts of the aligned group of `step` workers that contains worker `number`.
    pub fn group(&self, number: u32, step: u32) -> Range<i64> {
        let first = number & !(step - 1);
        self.of(first..first + step)
    }
}

/// Exchanges halves with partners until `acc` has the sum of this worker's own part.
/// The operator must commute.
pub async fn halve(
    invocation: &Invocation,
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
        invocation
            .sendrecv(&acc.slice(theirs).as_send(), rank, &space, rank)
            .await?;
        combine(op, &space.as_send(), &acc.slice(mine))?;
        step /= 2;
    }
    Ok(())
}

/// Distributes a worker's part of the result: sends the beginning to the idle rank, if there is one, and copies the rest to `recv`.
pub async fn hand_out(
    invocation: &Invocation,
    worker: &Worker,
    part: &RecvBuf,
    recv: &RecvBuf,
) -> Result<(), Error> {
    let theirs = part.count() - recv.count();
    copy(&part.slice(theirs..part.count()).as_send(), recv);
    worker
        .give_back(invocation, &part.slice(0..theirs).as_send())
        .await
}
