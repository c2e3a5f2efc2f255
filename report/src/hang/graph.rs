//! The wait-for graph of a job: searches for cycles, and for ranks that can never proceed.
//!
//! An AND wait ends when *all* awaited ranks have proceeded:
//! a wait for one other rank, or in a collective operation for all absent members.
//! A cycle of AND waits is a deadlock.
//! An OR wait ends when *one* rank has proceeded: a receive from any source, or a wait for any
//! request of several. Ranks in OR waits are deadlocked if no rank that can proceed is left.
//! A rank of which several threads wait proceeds when *one* of them does.
//! Source: E. Knapp, "Deadlock detection in distributed databases",
//! ACM Computing Surveys 19(4), 1987.

use super::Seen;
use crate::rank_snapshot::{Comm, RankSnapshot, Round, Waiting};
use std::collections::VecDeque;

/// The condition under which a rank proceeds; ranks are indices into the slice of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// The rank does not wait, or has left the job.
    Nothing,
    All(Vec<usize>),
    Any,
    /// One of the rank's threads must proceed; each has another need.
    OneThread(Vec<Needs>),
}

impl Needs {
    /// Returns the ranks of AND waits.
    pub(super) fn edges(&self) -> Vec<usize> {
        match self {
            Needs::All(others) => others.clone(),
            Needs::OneThread(threads) => threads.iter().flat_map(Needs::edges).collect(),
            Needs::Nothing | Needs::Any => Vec::new(),
        }
    }

    /// Returns true if a rank with these needs can proceed; `free` are the ranks that can.
    fn are_met(&self, at: usize, free: &[bool]) -> bool {
        match self {
            Needs::Nothing => false,
            Needs::All(others) => others.iter().all(|&other| free[other]),
            Needs::Any => {
                let count = free.iter().filter(|free| **free).count();
                count > usize::from(free[at])
            }
            Needs::OneThread(threads) => threads
                .iter()
                .any(|needs| *needs == Needs::Nothing || needs.are_met(at, free)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Graph<'a> {
    ranks: &'a [Seen],
    needs: Vec<Needs>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(ranks: &'a [Seen]) -> Graph<'a> {
        let needs = ranks.iter().map(|seen| needs(seen, ranks)).collect();
        Graph { ranks, needs }
    }

    pub(super) fn needs(&self, at: usize) -> &Needs {
        &self.needs[at]
    }

    /// Returns a shortest cycle for each rank in a cycle, unless an earlier cycle has that rank.
    /// A cycle in which a rank waits for one of its threads is a deadlock only if all its ranks are stuck.
    pub(super) fn circles(&self) -> Vec<Vec<usize>> {
        let mut circles = self.all_circles();
        let stuck = self.stuck();
        let is_of_threads = |at: &usize| matches!(self.needs[*at], Needs::OneThread(_));
        circles.retain(|circle| {
            !circle.iter().any(is_of_threads) || circle.iter().all(|at| stuck[*at])
        });
        circles
    }

    fn all_circles(&self) -> Vec<Vec<usize>> {
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for start in 0..self.ranks.len() {
            if circles.iter().any(|circle| circle.contains(&start)) {
                continue;
            }
            circles.extend(self.way_back(start));
        }
        // A cycle that shares a rank with a shorter cycle gives no new information.
        circles.sort_by_key(Vec::len);
        let mut told: Vec<usize> = Vec::new();
        circles.retain(|circle| {
            let new = !circle.iter().any(|rank| told.contains(rank));
            told.extend(circle);
            new
        });
        circles.sort();
        circles
    }

    /// Returns the shortest path of AND waits from a rank back to itself.
    fn way_back(&self, start: usize) -> Option<Vec<usize>> {
        let mut from: Vec<Option<usize>> = vec![None; self.ranks.len()];
        let mut ahead = VecDeque::from([start]);
        while let Some(here) = ahead.pop_front() {
            for next in self.needs[here].edges() {
                if next == start {
                    let step = |at: &usize| from[*at];
                    let mut way: Vec<usize> = std::iter::successors(Some(here), step).collect();
                    way.reverse();
                    return Some(way);
                }
                if from[next].is_none() {
                    from[next] = Some(here);
                    ahead.push_back(next);
                }
            }
        }
        None
    }

    /// Returns for each rank whether it can never proceed, whatever the other ranks do.
    pub(super) fn stuck(&self) -> Vec<bool> {
        let mut free: Vec<bool> = (0..self.ranks.len())
            .map(|at| self.needs[at] == Needs::Nothing && !self.ranks[at].has_left())
            .collect();
        loop {
            let before = free.clone();
            for (at, free) in free.iter_mut().enumerate() {
                *free |= self.needs[at].are_met(at, &before);
            }
            if free == before {
                break;
            }
        }
        let stuck = |at: usize| !free[at] && !self.ranks[at].has_left();
        (0..free.len()).map(stuck).collect()
    }
}

fn needs(seen: &Seen, ranks: &[Seen]) -> Needs {
    let Some(snapshot) = seen.snapshot.as_ref().filter(|_| !seen.has_left()) else {
        return Needs::Nothing;
    };
    if snapshot.call.is_none() {
        return Needs::Nothing;
    }
    if !snapshot.has_several_waits() {
        return needs_of(snapshot.waiting.as_ref(), snapshot, ranks);
    }
    let threads = snapshot.threads.iter();
    let mut needs: Vec<Needs> = Vec::new();
    for wait in threads {
        let of_one = needs_of(wait.waiting.as_ref(), snapshot, ranks);
        if !needs.contains(&of_one) {
            needs.push(of_one);
        }
    }
    match needs.len() {
        1 => needs.remove(0),
        _ => Needs::OneThread(needs),
    }
}

/// Returns the needs of one wait of a rank.
fn needs_of(waiting: Option<&Waiting>, snapshot: &RankSnapshot, ranks: &[Seen]) -> Needs {
    match waiting {
        Some(Waiting::Send(partner) | Waiting::Recv(partner)) => {
            let known = ranks.iter().position(|seen| seen.rank == partner.job_rank);
            known.map_or(Needs::Nothing, |at| Needs::All(vec![at]))
        }
        // The holder must release the lock; without a holder, the window's member itself must act.
        Some(Waiting::Window(at)) => {
            let known = ranks.iter().position(|seen| seen.rank == at.needed());
            known.map_or(Needs::Nothing, |at| Needs::All(vec![at]))
        }
        Some(Waiting::RecvAny { .. } | Waiting::Any { .. }) => Needs::Any,
        Some(Waiting::Collective) | None => match snapshot.in_round() {
            Some(round) => {
                let missing = missing(round, ranks);
                match missing.is_empty() {
                    true => Needs::Nothing,
                    false => Needs::All(missing),
                }
            }
            None => Needs::Nothing,
        },
    }
}

/// Returns true if a rank has entered or passed a collective operation.
pub(super) fn has_come(seen: &Seen, round: &Round) -> bool {
    let theirs = seen
        .snapshot
        .as_ref()
        .and_then(|snapshot| snapshot.round.as_ref());
    theirs.is_some_and(|theirs| theirs.comm == round.comm && theirs.number >= round.number)
}

/// Returns the members that are known not to have entered a collective operation.
///
/// All ranks are members of `MPI_COMM_WORLD`.
/// A rank is known to be a member of another communicator if its latest collective was on it.
pub(super) fn missing(round: &Round, ranks: &[Seen]) -> Vec<usize> {
    let member = |seen: &Seen| {
        let theirs = seen
            .snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.round.as_ref());
        round.comm == Comm::WORLD || theirs.is_some_and(|theirs| theirs.comm == round.comm)
    };
    ranks
        .iter()
        .enumerate()
        .filter(|(_, seen)| member(seen) && !has_come(seen, round))
        .map(|(at, _)| at)
        .collect()
}
