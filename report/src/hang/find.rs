//! Search for explanations of a job without progress; the most informative findings come first.

use super::doing::DisplayRound;
use super::graph::{Graph, Needs, missing};
use super::{Finding, Group, Seen, Wire};
use crate::rank_snapshot::{Comm, Gate, Round, Waiting};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn all(ranks: &[Seen]) -> Vec<Finding> {
    let graph = Graph::of(ranks);
    let mut found = exceptions(ranks);
    found.extend(mismatches(ranks));
    found.extend(circles(ranks, &graph));
    found.extend(absent(ranks));
    found.extend(culprits(ranks, &graph));
    found.extend(no_sender(ranks, &graph));
    found.extend(wires(ranks));
    let is_exception = |finding: &Finding| matches!(finding, Finding::Exception { .. });
    if found.iter().all(is_exception) {
        found.extend(unended(ranks));
    }
    found
}

fn exceptions(ranks: &[Seen]) -> Vec<Finding> {
    let of = |seen: &Seen| {
        Some(Finding::Exception {
            rank: seen.rank,
            exception: seen.exception.clone()?,
            doing: seen.doing(),
        })
    };
    ranks.iter().filter_map(of).collect()
}

/// Returns the collective operations in which ranks wait, each with its waiting ranks.
/// The operations are sorted by communicator and then by their number on the communicator.
fn rounds(ranks: &[Seen]) -> BTreeMap<(Comm, u64), Vec<(&Seen, &Round)>> {
    let mut rounds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for seen in ranks.iter().filter(|seen| !seen.has_left()) {
        if let Some(round) = seen
            .snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.in_round())
        {
            let key = (round.comm, round.number);
            rounds.entry(key).or_default().push((seen, round));
        }
    }
    rounds
}

fn mismatches(ranks: &[Seen]) -> Vec<Finding> {
    rounds(ranks)
        .into_iter()
        .filter_map(|((comm, number), inside)| {
            let mut groups: Vec<Group> = Vec::new();
            for (seen, round) in &inside {
                add_to_groups(&mut groups, seen.rank, &round.what, true);
            }
            let differ_inside = groups.len() > 1;
            let (_, first) = *inside.first()?;
            let left = left(ranks, (comm, number), &inside);
            let differs = |round: &Round| function_and_root(round) != function_and_root(first);
            let differ_from_left = left.iter().any(|(_, round)| differs(round));
            for (seen, round) in left {
                add_to_groups(&mut groups, seen.rank, &round.what, false);
            }
            (differ_inside || differ_from_left).then(|| Finding::Mismatch {
                comm: comm.to_string(),
                number,
                groups,
            })
        })
        .collect()
}

fn add_to_groups(groups: &mut Vec<Group>, rank: u32, operation: &str, inside: bool) {
    let same = |group: &&mut Group| group.operation == operation && group.inside == inside;
    match groups.iter_mut().find(same) {
        Some(group) => group.ranks.push(rank),
        None => groups.push(Group {
            ranks: vec![rank],
            operation: operation.into(),
            inside,
        }),
    }
}

/// Returns the ranks whose latest collective operation is this one, and that do not wait in it:
/// the root of a broadcast, for example, returns before the other members.
fn left<'a>(
    ranks: &'a [Seen],
    (comm, number): (Comm, u64),
    inside: &[(&Seen, &Round)],
) -> Vec<(&'a Seen, &'a Round)> {
    let is_inside = |rank: u32| inside.iter().any(|(seen, _)| seen.rank == rank);
    ranks
        .iter()
        .filter(|seen| !is_inside(seen.rank))
        .filter_map(|seen| Some((seen, seen.snapshot.as_ref()?.round.as_ref()?)))
        .filter(|(_, round)| (round.comm, round.number) == (comm, number))
        .collect()
}

/// Returns the function and the root of an operation, without the length.
fn function_and_root(round: &Round) -> &str {
    let described = round.what.split_once(" of ");
    described.map_or(&*round.what, |(head, _)| head)
}

/// Finds cycles of ranks, and the ranks outside of them that wait for their members.
fn circles(ranks: &[Seen], graph: &Graph<'_>) -> Vec<Finding> {
    let circles = graph.circles();
    let inside: BTreeSet<usize> = circles.iter().flatten().copied().collect();
    let mut found = Vec::new();
    for circle in &circles {
        let members: Vec<&Seen> = circle.iter().map(|&at| &ranks[at]).collect();
        found.push(circle_of(&members));
    }
    let behind = waiting_for_one(ranks, graph, |waiting| !inside.contains(&waiting));
    let behind = behind.into_iter().filter(|(at, _)| inside.contains(at));
    found.extend(behind.map(|(at, waiting)| Finding::Behind {
        waiting,
        rank: ranks[at].rank,
        doing: ranks[at].doing(),
    }));
    found
}

/// Returns the finding for a cycle of ranks in which each waits for the next.
pub(super) fn circle_of(members: &[&Seen]) -> Finding {
    Finding::Circle {
        ranks: members.iter().map(|seen| seen.rank).collect(),
        doing: members.iter().map(|seen| seen.doing()).collect(),
        tags_differ: matches!(members, [a, b] if tags_differ(a, b)),
    }
}

/// Returns true if one rank sends to the other, which receives from it with another tag.
fn tags_differ(a: &Seen, b: &Seen) -> bool {
    let waiting = |seen: &Seen| {
        let snapshot = seen.snapshot.as_ref();
        let snapshot = snapshot.filter(|snapshot| !snapshot.has_several_waits());
        snapshot.and_then(|snapshot| snapshot.waiting.clone())
    };
    let (out, back) = match (waiting(a), waiting(b)) {
        (Some(Waiting::Send(out)), Some(Waiting::Recv(back)))
        | (Some(Waiting::Recv(back)), Some(Waiting::Send(out))) => (out, back),
        _ => return false,
    };
    out.comm == back.comm && back.tag.is_some() && out.tag != back.tag
}

/// Finds collective operations in which ranks wait although all members have entered them.
///
/// In this case the members' arguments do not match.
/// Only the earliest operation of each communicator is reported.
/// The caller uses this finding only if there is no other:
/// if members forward data, the cause may be a member that waits somewhere else.
fn unended(ranks: &[Seen]) -> Vec<Finding> {
    let mut earliest = BTreeSet::new();
    rounds(ranks)
        .into_iter()
        .filter_map(|((comm, _), inside)| {
            let (_, round) = *inside.first()?;
            let come: Vec<u32> = ranks
                .iter()
                .filter(|seen| super::graph::has_come(seen, round))
                .map(|seen| seen.rank)
                .collect();
            let all = earliest.insert(comm)
                && missing(round, ranks).is_empty()
                && come.len() == round.members as usize;
            let known = left(ranks, (comm, round.number), &inside);
            let inside: Vec<u32> = inside.iter().map(|(seen, _)| seen.rank).collect();
            let left: Vec<u32> = come.into_iter().filter(|r| !inside.contains(r)).collect();
            let is_later = |rank: &u32| !known.iter().any(|(seen, _)| seen.rank == *rank);
            all.then(|| Finding::Unended {
                operation: DisplayRound(round).to_string(),
                later: left.iter().copied().filter(is_later).collect(),
                left,
                inside,
                is_comparable: true,
            })
        })
        .collect()
}

/// Finds collective operations that some members have not entered,
/// the earliest of each communicator.
fn absent(ranks: &[Seen]) -> Vec<Finding> {
    let mut earliest = BTreeSet::new();
    rounds(ranks)
        .into_iter()
        .filter_map(|((comm, number), inside)| {
            let (_, round) = *inside.first()?;
            if !earliest.insert(comm) {
                return None;
            }
            let missing = missing(round, ranks);
            let here = ranks
                .iter()
                .filter(|seen| super::graph::has_come(seen, round));
            let known = here.count() + missing.len();
            let unknown = match comm {
                Comm::WORLD => 0,
                _ => round.members.saturating_sub(known as u32),
            };
            if missing.is_empty() && unknown == 0 {
                return None;
            }
            let agreed = inside.iter().all(|(_, other)| other.what == round.what);
            Some(Finding::Absent {
                operation: match agreed {
                    true => DisplayRound(round).to_string(),
                    // The members call different operations, which the finding of a mismatch lists.
                    false => format!("collective operation #{number} on {comm}"),
                },
                inside: inside.iter().map(|(seen, _)| seen.rank).collect(),
                missing: missing.iter().map(|&at| ranks[at].rank).collect(),
                unknown,
                doing: missing.iter().map(|&at| ranks[at].doing()).collect(),
            })
        })
        .collect()
}

/// Returns the ranks that others need for a message or at a window, each with those of them
/// that `counts` admits. The keys and the argument of `counts` are indices into `ranks`.
fn waiting_for_one(
    ranks: &[Seen],
    graph: &Graph<'_>,
    counts: impl Fn(usize) -> bool,
) -> BTreeMap<usize, Vec<u32>> {
    let mut waiting: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (at, seen) in ranks.iter().enumerate().filter(|(at, _)| counts(*at)) {
        let is_for_one = seen.snapshot.as_ref().is_some_and(|snapshot| {
            matches!(
                snapshot.waiting,
                Some(Waiting::Send(_) | Waiting::Recv(_) | Waiting::Window(_))
            )
        });
        if is_for_one {
            let others: BTreeSet<usize> = graph.needs(at).edges().into_iter().collect();
            for other in others {
                waiting.entry(other).or_default().push(seen.rank);
            }
        }
    }
    waiting
}

/// Finds ranks that do not wait themselves, but that other ranks need for a message or at a window.
/// Each such rank is reported with the ranks that wait for it.
fn culprits(ranks: &[Seen], graph: &Graph<'_>) -> Vec<Finding> {
    waiting_for_one(ranks, graph, |_| true)
        .into_iter()
        .filter(|(culprit, _)| *graph.needs(*culprit) == Needs::Nothing)
        .map(|(culprit, waiting)| Finding::Culprit {
            waiting,
            rank: ranks[culprit].rank,
            // If the rank is dead, the report names its death as the cause.
            left: ranks[culprit].has_left() && ranks[culprit].lost.is_none(),
            doing: ranks[culprit].doing(),
        })
        .collect()
}

fn no_sender(ranks: &[Seen], graph: &Graph<'_>) -> Option<Finding> {
    let stuck = graph.stuck();
    let waiting: Vec<u32> = ranks
        .iter()
        .enumerate()
        .filter(|(at, _)| stuck[*at] && *graph.needs(*at) == Needs::Any)
        .map(|(_, seen)| seen.rank)
        .collect();
    let takes_any = |rank: &u32| {
        let seen = ranks.iter().find(|seen| seen.rank == *rank);
        let waiting = seen.and_then(|seen| seen.snapshot.as_ref()?.waiting.as_ref());
        matches!(waiting, Some(Waiting::RecvAny { .. }))
    };
    (!waiting.is_empty()).then(|| Finding::NoSender {
        take_any: waiting.iter().all(takes_any),
        waiting,
    })
}

/// Finds wires of the hardware barrier that have not
/// toggled although other ranks wait in the barrier.
fn wires(ranks: &[Seen]) -> Option<Finding> {
    let gates: Vec<(u32, Gate)> = ranks
        .iter()
        .filter_map(|seen| Some((seen.rank, seen.snapshot.as_ref()?.gate?)))
        .collect();
    let waiting = gates
        .iter()
        .filter(|(_, gate)| gate.released < gate.entered);
    let barrier = waiting.map(|(_, gate)| gate.entered).max()?;
    let late: Vec<Wire> = gates
        .iter()
        .filter(|(_, gate)| gate.entered < barrier)
        .map(|&(rank, Gate { wire, entered, .. })| Wire {
            wire,
            rank,
            entered,
        })
        .collect();
    (!late.is_empty()).then_some(Finding::Wires {
        barrier,
        entered: gates.len() - late.len(),
        late,
    })
}
