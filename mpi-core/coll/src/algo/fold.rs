//! Bringing any number of ranks down to a power of two and back.
//!
//! Of the first `2 * (size - power)` ranks each even one gives its part to the odd one behind it and rests;
//! every other rank works, numbered in the order of ranks, so that operands keep their order
//! (R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 3).

use super::combine;
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

/// The largest power of two in a size, and which ranks take part in it.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    pub power: u32,
    rest: u32,
}

/// What a rank does in a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Gives its data to `to`, rests, and gets the result from there.
    Rests { to: u32 },
    /// Works as `number`, on its own data and that of the rank in front of it.
    WorksFor { number: u32, other: u32 },
    /// Works as `number` on its own data.
    Works { number: u32 },
}

/// A rank that works in a fold, for itself or also for the one in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    pub fold: Fold,
    pub number: u32,
    /// The rank that rests for this one.
    other: Option<u32>,
}

impl Worker {
    /// Begins the fold of a communicator: a rank that rests gives its `own` data away, gets what is its `result`, and is done: `None`.
    pub async fn begin(
        cx: &Invocation,
        own: &SendBuf,
        result: Option<&RecvBuf>,
    ) -> Result<Option<Worker>, Error> {
        let fold = Fold::new(cx.size());
        let (number, other) = match fold.part(cx.rank()) {
            Part::Works { number } => (number, None),
            Part::WorksFor { number, other } => (number, Some(other)),
            Part::Rests { to } => {
                cx.send(own, to).await?;
                if let Some(result) = result {
                    cx.recv(result, to).await?;
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

    /// Combines what the rank that rests for this one gives into `acc`, by way of `fresh`.
    pub async fn take_in(
        &self,
        cx: &Invocation,
        acc: &RecvBuf,
        fresh: &RecvBuf,
        op: &Op,
    ) -> Result<(), Error> {
        let Some(other) = self.other else {
            return Ok(());
        };
        cx.recv(fresh, other).await?;
        combine(op, &fresh.as_send(), acc)
    }

    /// Gives the rank that rests for this one its result.
    pub async fn give_back(&self, cx: &Invocation, result: &SendBuf) -> Result<(), Error> {
        match self.other {
            Some(other) => cx.send(result, other).await,
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

    /// As which number a rank works, or the rank that it rests for.
    pub fn number(&self, rank: u32) -> u32 {
        match self.part(rank) {
            Part::Works { number } | Part::WorksFor { number, .. } => number,
            Part::Rests { to } => self.number(to),
        }
    }

    /// The rank that works as `number`.
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
