//! Folding of the ranks of a communicator to a power of two, for algorithms that need one.
//!
//! With `power` the largest power of two in `size`: of the first `2 * (size - power)` ranks,
//! each even rank sends its data to the next (odd) rank and is idle until the result arrives.
//! All other ranks are workers, numbered in the order of ranks, so that operands keep their order
//! (R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 3).

use super::combine;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

/// The sizes of a fold: `power` is the number of workers, `rest` is the number of idle ranks.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    pub power: u32,
    rest: u32,
}

/// The role of a rank in a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The rank sends its data to rank `to`, is idle, and receives the result from rank `to`.
    Rests { to: u32 },
    /// The rank is worker `number`, for its own data and for the data of the idle rank `other`.
    WorksFor { number: u32, other: u32 },
    /// The rank is worker `number`, for its own data only.
    Works { number: u32 },
}

/// This rank's role as a worker: it works on its own data, and possibly on those of an idle rank.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    pub fold: Fold,
    pub number: u32,
    /// The idle rank whose data this worker has taken over.
    other: Option<u32>,
}

impl Worker {
    /// Begins a fold. An idle rank sends its `own` data, receives its `result` and returns `None`.
    pub async fn begin(
        invocation: &Invocation,
        own: &SendBuf,
        result: Option<&RecvBuf>,
    ) -> Result<Option<Worker>, Error> {
        let fold = Fold::new(invocation.size());
        let (number, other) = match fold.part(invocation.rank()) {
            Part::Works { number } => (number, None),
            Part::WorksFor { number, other } => (number, Some(other)),
            Part::Rests { to } => {
                invocation.send(own, to).await?;
                if let Some(result) = result {
                    invocation.recv(result, to).await?;
                }
                return Ok(None);
            }
        };
        Ok(Some(Worker {
            fold,
            number,
            other,
        }))
    }

    /// Receives the idle rank's data in `fresh`, if this worker has an idle rank, and combines them into `acc`.
    pub async fn take_in(
        &self,
        invocation: &Invocation,
        acc: &RecvBuf,
        fresh: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let Some(other) = self.other else {
            return Ok(());
        };
        invocation.recv(fresh, other).await?;
        combine(op, &fresh.as_send(), acc)
    }

    /// Sends the result to the idle rank, if this worker has one.
    pub async fn give_back(&self, invocation: &Invocation, result: &SendBuf) -> Result<(), Error> {
        match self.other {
            Some(other) => invocation.send(result, other).await,
            None => Ok(()),
        }
    }
}

impl Fold {
    pub fn new(size: u32) -> Fold {
        let power = 1 << (31 - size.max(1).leading_zeros());
        Fold {
            power,
            rest: size - power,
        }
    }

    pub fn part(&self, rank: u32) -> Part {
        match rank {
            r if r >= 2 * self.rest => Part::Works {
                number: r - self.rest,
            },
            r if r % 2 == 0 => Part::Rests { to: r + 1 },
            r => Part::WorksFor {
                number: r / 2,
                other: r - 1,
            },
        }
    }

    /// Returns the worker number of a rank; for an idle rank, the number of the worker that has its data.
    pub fn number(&self, rank: u32) -> u32 {
        match self.part(rank) {
            Part::Works { number } | Part::WorksFor { number, .. } => number,
            Part::Rests { to } => self.number(to),
        }
    }

    /// Returns the rank of worker `number`.
    pub fn rank(&self, number: u32) -> u32 {
        if number < self.rest {
            2 * number + 1
        } else {
            number + self.rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_a_power_of_two_in_the_order_of_ranks() {
        for size in 1..40 {
            let fold = Fold::new(size);
            assert!(fold.power <= size && size < 2 * fold.power);
            let mut next = 0;
            for rank in 0..size {
                match fold.part(rank) {
                    Part::Rests { to } => {
                        assert!(
                            matches!(fold.part(to), Part::WorksFor { other, .. } if other == rank)
                        );
                        assert_eq!(fold.number(rank), fold.number(to));
                    }
                    Part::WorksFor { number, .. } | Part::Works { number } => {
                        assert_eq!((number, fold.number(rank)), (next, next));
                        assert_eq!(fold.rank(number), rank);
                        next += 1;
                    }
                }
            }
            assert_eq!(next, fold.power);
        }
    }
}
