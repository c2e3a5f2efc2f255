//! The blocks of a call, one per rank, of equal (`MPI_Gather`) or different lengths (`MPI_Gatherv`).

use crate::datatype::{RecvBuf, SendBuf};
use std::ops::Range;
use std::rc::Rc;

/// The operations that send buffers and receive buffers have in common, for code that is generic over both.
pub trait Buffer: Clone {
    fn count(&self) -> i64;
    fn bytes(&self) -> i64;
    /// Returns a buffer with the same start and type, and `count` elements.
    /// `count` may be larger than that of this buffer, if the memory behind it is part of the same user buffer.
    fn with_count(&self, count: i64) -> Self;
    fn slice(&self, elements: Range<i64>) -> Self;
}

macro_rules! buffer {
    ($buf:ty) => {
        impl Buffer for $buf {
            fn count(&self) -> i64 {
                self.count()
            }
            fn bytes(&self) -> i64 {
                self.bytes()
            }
            fn with_count(&self, count: i64) -> Self {
                self.with_count(count)
            }
            fn slice(&self, elements: Range<i64>) -> Self {
                self.slice(elements)
            }
        }
    };
}

buffer!(SendBuf);
buffer!(RecvBuf);

/// The buffers of a call, one per rank: contiguous blocks of equal counts, or individual buffers.
#[derive(Clone)]
pub enum Blocks<B> {
    Equal { first: B, size: u32 },
    Each(Rc<[B]>),
}

impl<B: Buffer> Blocks<B> {
    /// `size` blocks of `first.count()` elements, as in `MPI_Gather`.
    pub fn equal(first: &B, size: u32) -> Blocks<B> {
        Blocks::Equal {
            first: first.clone(),
            size,
        }
    }

    /// One buffer per rank, as in `MPI_Gatherv`.
    pub fn each(all: &Rc<[B]>) -> Blocks<B> {
        Blocks::Each(all.clone())
    }

    /// Returns the block of rank `rank`.
    pub fn of(&self, rank: u32) -> B {
        match self {
            Blocks::Equal { first, size } => {
                let (each, at) = (first.count(), first.count() * i64::from(rank));
                first
                    .with_count(each * i64::from(*size))
                    .slice(at..at + each)
            }
            Blocks::Each(all) => all[rank as usize].clone(),
        }
    }

    pub fn size(&self) -> u32 {
        match self {
            Blocks::Equal { size, .. } => *size,
            Blocks::Each(all) => all.len() as u32,
        }
    }

    /// Returns all blocks as one buffer, if they are known to be contiguous in rank order.
    pub fn as_one(&self) -> Option<B> {
        match self {
            Blocks::Equal { first, size } => {
                Some(first.with_count(first.count() * i64::from(*size)))
            }
            Blocks::Each(_) => None,
        }
    }

    /// Returns the total length of all blocks in bytes of packed data.
    pub fn bytes(&self) -> i64 {
        (0..self.size()).map(|r| self.of(r).bytes()).sum()
    }
}

/// Divides `total` elements into `parts` consecutive parts whose sizes differ by at most one; returns the range of part `which`.
pub fn share(total: i64, parts: u32, which: u32) -> Range<i64> {
    let (parts, which) = (i64::from(parts), i64::from(which));
    let (each, more) = (total / parts, total % parts);
    let start = which * each + which.min(more);
    start..start + each + i64::from(which < more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_one_another_and_differ_by_one_at_most() {
        for total in 0..40 {
            for parts in 1..10 {
                let mut next = 0;
                for which in 0..parts {
                    let piece = share(total, parts, which);
                    assert_eq!(piece.start, next);
                    assert!((piece.end - piece.start - total / i64::from(parts)).abs() <= 1);
                    next = piece.end;
                }
                assert_eq!(next, total);
            }
        }
    }
}
