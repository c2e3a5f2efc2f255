//! Groups: ordered sets of processes (MPI 5.0, section 7.3).
//!
//! Cloning a group copies a pointer to its members.
//! Members are identified by their rank in the job,
//! so the translation of ranks between groups needs no communication.

use mpi_base::proc::ProcId;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

#[cfg(test)]
mod tests;

/// An ordered set of processes.
#[derive(Clone)]
pub struct Group(Rc<Inner>);

struct Inner {
    members: Members,
    /// The rank of each process. Built by the first reverse lookup if the members are a list.
    ranks: OnceCell<HashMap<ProcId, u32>>,
}

enum Members {
    /// The job ranks `first..first + len` in order: all processes of the job, or one process.
    Range {
        first: ProcId,
        len: u32,
    },
    List(Box<[ProcId]>),
}

/// The result of comparing two groups or communicators (`MPI_IDENT` etc.), from equal to different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    Identical,
    Congruent,
    Similar,
    Unequal,
}

/// The reason why a group could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// A rank is outside `0..size`.
    Rank {
        position: usize,
        rank: i64,
        size: u32,
    },
    /// A rank is named twice.
    Twice {
        rank: i64,
        first: usize,
        second: usize,
    },
    /// A range triplet has the stride 0, or a stride that leads away from the last rank.
    Range {
        position: usize,
        first: i64,
        last: i64,
        stride: i64,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Rank {
                position,
                rank,
                size,
            } => {
                write!(
                    f,
                    "rank {rank} at position {position} is not in a group of {size}"
                )
            }
            GroupError::Twice {
                rank,
                first,
                second,
            } => {
                write!(
                    f,
                    "rank {rank} is named twice, at positions {first} and {second}"
                )
            }
            GroupError::Range {
                position,
                first,
                last,
                stride,
            } => {
                write!(
                    f,
                    "range {position} ({first}, {last}, {stride}) never arrives at its last rank"
                )
            }
        }
    }
}

impl std::error::Error for GroupError {}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Group {
    /// Creates the group of the job ranks `first..first + len`.
    pub fn range(first: ProcId, len: u32) -> Group {
        Group(Rc::new(Inner {
            members: Members::Range { first, len },
            ranks: OnceCell::new(),
        }))
    }

    /// Creates the group without members.
    pub fn empty() -> Group {
        Group::range(0, 0)
    }

    /// Creates a group of these members, in this order.
    /// The caller guarantees that no member occurs twice.
    pub fn from_procs(procs: Vec<ProcId>) -> Group {
        let consecutive = procs.windows(2).all(|w| w[0].checked_add(1) == Some(w[1]));
        match (consecutive, procs.first()) {
            (_, None) => Group::empty(),
            (true, Some(&first)) => Group::range(first, procs.len() as u32),
            (false, _) => Group(Rc::new(Inner {
                members: Members::List(procs.into_boxed_slice()),
                ranks: OnceCell::new(),
            })),
        }
    }

    /// Returns the number of members, which is 0 for the empty group (MPI 5.0, section 7.2.1).
    pub fn size(&self) -> u32 {
        match &self.0.members {
            Members::Range { len, .. } => *len,
            Members::List(list) => list.len() as u32,
        }
    }

    /// Returns the job rank of the member with rank `rank`.
    #[inline]
    pub fn proc(&self, rank: u32) -> Option<ProcId> {
        match &self.0.members {
            Members::Range { first, len } => (rank < *len).then(|| first + rank),
            Members::List(list) => list.get(rank as usize).copied(),
        }
    }

    /// Returns the rank of a process in this group, or `None` if it is not a member.
    pub fn rank_of(&self, proc: ProcId) -> Option<u32> {
        match &self.0.members {
            Members::Range { first, len } => proc.checked_sub(*first).filter(|r| r < len),
            Members::List(list) => self
                .0
                .ranks
                .get_or_init(|| {
                    list.iter()
                        .enumerate()
                        .map(|(r, p)| (*p, r as u32))
                        .collect()
                })
                .get(&proc)
                .copied(),
        }
    }

    /// Iterates over the job ranks of the members, in the order of their ranks in the group.
    pub fn iter(&self) -> impl Iterator<Item = ProcId> + '_ {
        (0..self.size()).filter_map(|r| self.proc(r))
    }

    /// Returns the members at `ranks`, in that order.
    pub fn include(&self, ranks: &[i64]) -> Result<Group, GroupError> {
        self.check(ranks)?;
        Ok(Group::from_procs(
            ranks.iter().filter_map(|r| self.proc(*r as u32)).collect(),
        ))
    }

    /// Returns all members except those at `ranks`, in the order of this group.
    pub fn exclude(&self, ranks: &[i64]) -> Result<Group, GroupError> {
        self.check(ranks)?;
        let mut keep = vec![true; self.size() as usize];
        for r in ranks {
            keep[*r as usize] = false;
        }
        Ok(Group::from_procs(
            self.iter()
                .zip(keep)
                .filter(|(_, k)| *k)
                .map(|(p, _)| p)
                .collect(),
        ))
    }

    /// Returns the ranks of `(first, last, stride)` triplets, as in `MPI_Group_range_incl`.
    pub fn expand(&self, ranges: &[(i64, i64, i64)]) -> Result<Vec<i64>, GroupError> {
        let mut ranks = Vec::new();
        for (position, &(first, last, stride)) in ranges.iter().enumerate() {
            if stride == 0 || (last > first && stride < 0) || (last < first && stride > 0) {
                return Err(GroupError::Range {
                    position,
                    first,
                    last,
                    stride,
                });
            }
            let mut r = first;
            while if stride > 0 { r <= last } else { r >= last } {
                // Only the ranks of the sequence must exist: (1, 6, 2) is valid in a group of six.
                self.check_rank(position, r)?;
                ranks.push(r);
                r += stride;
            }
        }
        Ok(ranks)
    }

    /// Returns the members of this group, then those of `other` that are not in it.
    pub fn union(&self, other: &Group) -> Group {
        let more = other.iter().filter(|p| self.rank_of(*p).is_none());
        Group::from_procs(self.iter().chain(more).collect())
    }

    /// Returns the members of both groups, in the order of this group.
    pub fn intersection(&self, other: &Group) -> Group {
        Group::from_procs(
            self.iter()
                .filter(|p| other.rank_of(*p).is_some())
                .collect(),
        )
    }

    /// Returns the members of this group that are not in `other`.
    pub fn difference(&self, other: &Group) -> Group {
        Group::from_procs(
            self.iter()
                .filter(|p| other.rank_of(*p).is_none())
                .collect(),
        )
    }

    /// Returns the first member that is not in `other`:
    /// its rank in this group and its rank in the job.
    pub fn outsider(&self, other: &Group) -> Option<(u32, ProcId)> {
        if Rc::ptr_eq(&self.0, &other.0) {
            return None;
        }
        (0..)
            .zip(self.iter())
            .find(|(_, proc)| other.rank_of(*proc).is_none())
    }

    /// Compares members and order: identical, similar (same members in another order), or unequal.
    pub fn compare(&self, other: &Group) -> Comparison {
        if Rc::ptr_eq(&self.0, &other.0)
            || (self.size() == other.size() && self.iter().eq(other.iter()))
        {
            Comparison::Identical
        } else if self.size() == other.size() && self.iter().all(|p| other.rank_of(p).is_some()) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    fn check_rank(&self, position: usize, rank: i64) -> Result<(), GroupError> {
        if (0..i64::from(self.size())).contains(&rank) {
            Ok(())
        } else {
            Err(GroupError::Rank {
                position,
                rank,
                size: self.size(),
            })
        }
    }

    fn check(&self, ranks: &[i64]) -> Result<(), GroupError> {
        let mut seen: Vec<Option<usize>> = vec![None; self.size() as usize];
        for (position, &rank) in ranks.iter().enumerate() {
            self.check_rank(position, rank)?;
            if let Some(first) = seen[rank as usize].replace(position) {
                return Err(GroupError::Twice {
                    rank,
                    first,
                    second: position,
                });
            }
        }
        Ok(())
    }
}
