//! List of the performance guidelines.

use std::fmt;

use super::ways::Call;

/// The block size of a call, as a function of the row's size `n` and the number of ranks `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// The row's size, `n` bytes
    Row,
    /// The share of one rank, `n / p` bytes
    Share,
    /// The blocks of all ranks, `n * p` bytes
    All,
    /// The next larger size of the row, in the order of `--sizes`
    Next,
}

use Bytes::{All, Next, Row, Share};

/// A guideline: the calls on the left must not be slower than the calls on the right.
#[derive(Clone, Copy, Debug)]
pub struct Guideline {
    left: (Call, Bytes),
    right: &'static [(Call, Bytes)],
}

const fn than(left: Call, right: &'static [(Call, Bytes)]) -> Guideline {
    Guideline {
        left: (left, Row),
        right,
    }
}

/// All guidelines, in four groups. The right side is one of:
/// - other collectives that compute the same result;
/// - the call with counts instead of the call without (`Gatherv` for `Gather`), or the reverse;
/// - the blocking call, for a nonblocking call;
/// - the same call with the next larger size.
pub const GUIDELINES: [Guideline; 40] = {
    use Call::*;
    [
        than(Allreduce, &[(Reduce, Row), (Bcast, Row)]),
        than(Allreduce, &[(ReduceScatter, Share), (Allgather, Share)]),
        than(Reduce, &[(Allreduce, Row)]),
        than(Reduce, &[(ReduceScatter, Share), (Gather, Share)]),
        than(Bcast, &[(Scatter, Share), (Allgather, Share)]),
        than(Gather, &[(Allgather, Row)]),
        than(Gather, &[(Reduce, All)]),
        than(Scatter, &[(Bcast, All)]),
        than(Allgather, &[(Gather, Row), (Bcast, All)]),
        than(Allgather, &[(Alltoall, Row)]),
        than(Allgather, &[(Allreduce, All)]),
        than(ReduceScatter, &[(Reduce, All), (Scatter, Row)]),
        than(ReduceScatter, &[(Allreduce, All)]),
        than(Exscan, &[(Scan, Row)]),
        than(Gatherv, &[(Gather, Row)]),
        than(Scatterv, &[(Scatter, Row)]),
        than(Allgatherv, &[(Allgather, Row)]),
        than(Alltoallv, &[(Alltoall, Row)]),
        than(Gather, &[(Gatherv, Row)]),
        than(Scatter, &[(Scatterv, Row)]),
        than(Allgather, &[(Allgatherv, Row)]),
        than(Alltoall, &[(Alltoallv, Row)]),
        than(Ibarrier, &[(Barrier, Row)]),
        than(Ibcast, &[(Bcast, Row)]),
        than(Ireduce, &[(Reduce, Row)]),
        than(Iallreduce, &[(Allreduce, Row)]),
        than(Iallgather, &[(Allgather, Row)]),
        than(Ialltoall, &[(Alltoall, Row)]),
        than(Bcast, &[(Bcast, Next)]),
        than(Reduce, &[(Reduce, Next)]),
        than(Allreduce, &[(Allreduce, Next)]),
        than(ReduceScatter, &[(ReduceScatter, Next)]),
        than(Scan, &[(Scan, Next)]),
        than(Gather, &[(Gather, Next)]),
        than(Scatter, &[(Scatter, Next)]),
        than(Allgather, &[(Allgather, Next)]),
        than(Alltoall, &[(Alltoall, Next)]),
        than(Gatherv, &[(Gatherv, Next)]),
        than(Scatterv, &[(Scatterv, Next)]),
        than(Allgatherv, &[(Allgatherv, Next)]),
    ]
};

impl Guideline {
    /// Returns the calls of both sides with their block sizes in bytes.
    /// Returns `None` if a block is not a positive multiple of the element size or `next` is missing.
    pub fn sides(
        &self,
        size: usize,
        next: Option<usize>,
        ranks: usize,
    ) -> Option<[Vec<(Call, usize)>; 2]> {
        /// The element size in bytes; a block has at least one element.
        const NUMBER: usize = size_of::<f32>();
        let bytes = |what: Bytes| match what {
            Row => Some(size),
            Share => Some(size / ranks).filter(|share| share * ranks == size),
            All => Some(size * ranks),
            Next => next,
        };
        let side = |calls: &[(Call, Bytes)]| -> Option<Vec<(Call, usize)>> {
            calls
                .iter()
                .map(|(call, what)| {
                    let bytes = bytes(*what)?;
                    let fits = bytes.is_multiple_of(NUMBER) && bytes > 0;
                    fits.then_some((*call, bytes))
                })
                .collect()
        };
        Some([side(&[self.left])?, side(self.right)?])
    }

    /// Returns the calls of both sides, without duplicates.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls = vec![self.left.0];
        for (call, _) in self.right {
            if !calls.contains(call) {
                calls.push(*call);
            }
        }
        calls
    }
}

impl fmt::Display for Guideline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <=", self.left.0)?;
        for (index, (call, what)) in self.right.iter().enumerate() {
            let plus = if index > 0 { " +" } else { "" };
            let suffix = match what {
                Row => "",
                Share => " of n/p",
                All => " of n*p",
                Next => " of more bytes",
            };
            write!(f, "{plus} {call}{suffix}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_guidelines_differ() {
        let names: std::collections::BTreeSet<String> =
            GUIDELINES.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), GUIDELINES.len());
    }

    #[test]
    fn a_size_that_cannot_be_shared_is_left_out() {
        let shared = than(
            Call::Bcast,
            &[(Call::Scatter, Share), (Call::Allgather, Share)],
        );
        assert_eq!(shared.sides(8, None, 3), None);
        let [left, right] = shared.sides(24, None, 3).expect("two sides");
        assert_eq!(left, [(Call::Bcast, 24)]);
        assert_eq!(right, [(Call::Scatter, 8), (Call::Allgather, 8)]);
    }

    #[test]
    fn the_largest_size_has_no_next_one() {
        let more = than(Call::Bcast, &[(Call::Bcast, Next)]);
        assert_eq!(more.sides(8, None, 2), None);
        assert!(more.sides(8, Some(64), 2).is_some());
        assert_eq!(more.to_string(), "bcast <= bcast of more bytes");
    }
}
