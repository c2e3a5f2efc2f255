//! Error and its text if members of a communicator make different collective calls.

use super::amounts::Disagreement;
use super::types;
use std::fmt;

pub use mpi_engine::coll::CallSignature;

/// The error: which call of the communicator failed, and how the members' calls differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    comm: String,
    /// Number of the call among the communicator's collective calls, counted from one.
    number: u64,
    difference: Difference,
}

/// The kind of difference between the members' calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Different calls: for each call, its text and the ascending ranks that made it; the call of the lowest rank comes first.
    Calls(Vec<(Vec<u32>, String)>),
    /// The calls are the same, but their byte counts differ.
    Amounts(Disagreement),
}

impl Difference {
    /// Groups the members by call signature; `signatures` is indexed by rank.
    pub fn calls(signatures: &[CallSignature]) -> Difference {
        let groups = grouped(signatures.iter().copied()).into_iter();
        Difference::Calls(
            groups
                .map(|(what, ranks)| (ranks, what.to_string()))
                .collect(),
        )
    }

    /// Groups the members by the types of their data; `types` has the [words](types::words) of all members.
    pub fn types(signatures: &[CallSignature], types: &[u64]) -> Difference {
        let with_text = |(signature, words): (&CallSignature, &[u64])| {
            format!("{signature} with data of {}", types::text(words))
        };
        let texts = signatures
            .iter()
            .zip(types.chunks(types::WORDS))
            .map(with_text);
        let groups = grouped(texts).into_iter();
        Difference::Calls(groups.map(|(what, ranks)| (ranks, what)).collect())
    }
}

/// Groups the ranks by their item in `of_ranks`, which is indexed by rank.
fn grouped<T: PartialEq>(of_ranks: impl Iterator<Item = T>) -> Vec<(T, Vec<u32>)> {
    let mut groups: Vec<(T, Vec<u32>)> = Vec::new();
    for (rank, what) in (0..).zip(of_ranks) {
        match groups.iter_mut().find(|(other, _)| *other == what) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((what, vec![rank])),
        }
    }
    groups
}

impl Mismatch {
    /// Creates the error for the communicator's call number `tag`, counted from zero.
    pub fn new(comm: String, tag: i32, difference: Difference) -> Mismatch {
        Mismatch {
            comm,
            number: tag as u64 + 1,
            difference,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch {
            comm,
            number,
            difference,
        } = self;
        write!(
            f,
            "in collective call {number} on {comm} the members differ: "
        )?;
        let groups = match difference {
            Difference::Amounts(amounts) => return amounts.fmt(f),
            Difference::Calls(groups) => groups,
        };
        for (i, (ranks, what)) in groups.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            let (noun, verb) = match ranks.len() {
                1 => ("rank", "calls"),
                _ => ("ranks", "call"),
            };
            write!(f, "{separator}{noun} {} {verb} {what}", Ranks(ranks))?;
        }
        Ok(())
    }
}

/// Formats ascending ranks, for example "0, 2 to 5, 9".
struct Ranks<'a>(&'a [u32]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            match run {
                [first, .., last] if run.len() > 2 => write!(f, "{separator}{first} to {last}")?,
                _ => {
                    let ranks: Vec<String> = run.iter().map(u32::to_string).collect();
                    write!(f, "{separator}{}", ranks.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
