//! Detection of an apparent deadlock of some ranks while other ranks make progress.
//!
//! Unlike in [`proof`](super::proof),
//! a rank outside the cycle may hold data on which the cycle depends.
//! So a finding is only reported and never ends a job.
//! A cycle is reported if it has lasted several rounds and its edges are exact:
//! each rank of the cycle waits in a call for one request, a message from or to the next rank,
//! and the rank's polls in all rounds have found nothing.

use super::graph::{Graph, Needs};
use super::proof::{Position, position};
use super::{Finding, Seen, find};
use crate::rank_snapshot::{Partner, Waiting};
use std::collections::BTreeMap;

/// The number of rounds without progress after which a cycle is reported.
const ROUNDS: u32 = 4;

/// The state of an observed cycle.
#[derive(Debug)]
struct Standing {
    positions: Vec<Position>,
    taken_ns: Vec<u64>,
    rounds: u32,
}

/// The observed cycles, indexed by their ranks.
#[derive(Debug, Default)]
pub struct Standstill {
    circles: BTreeMap<Vec<u32>, Standing>,
}

impl Standstill {
    /// Adds one snapshot of each living rank of one host.
    /// Returns the cycles that have made no progress for `ROUNDS` rounds, each cycle once.
    pub fn add(&mut self, ranks: &[Seen]) -> Vec<Finding> {
        let graph = Graph::of(ranks);
        let mut before = std::mem::take(&mut self.circles);
        let mut found = Vec::new();
        for circle in graph.circles() {
            let members: Vec<&Seen> = circle.iter().filter_map(|&at| ranks.get(at)).collect();
            let is_exact = |at: &usize| {
                matches!(graph.needs(*at), Needs::All(others) if others.len() == 1)
                    && ranks.get(*at).is_some_and(waits_for_one_message)
            };
            let positions: Option<Vec<_>> = members.iter().map(|seen| position(seen)).collect();
            let Some(positions) = positions.filter(|_| circle.iter().all(is_exact)) else {
                continue;
            };
            let (positions, times): (Vec<Position>, Vec<_>) = positions.into_iter().unzip();
            let numbers: Vec<u32> = members.iter().map(|seen| seen.rank).collect();
            let taken_ns: Vec<u64> = times.iter().map(|(taken, _)| *taken).collect();
            let known = before.remove(&numbers);
            let known = known.filter(|known| known.positions == positions);
            let standing = match known {
                None => Standing {
                    positions,
                    taken_ns,
                    rounds: 0,
                },
                Some(known) => {
                    let mut polled = times.iter().zip(&known.taken_ns);
                    match polled.all(|((_, checked), taken)| checked > taken) {
                        true => Standing {
                            taken_ns,
                            rounds: known.rounds + 1,
                            ..known
                        },
                        false => known,
                    }
                }
            };
            if standing.rounds == ROUNDS {
                found.push(find::circle_of(&members));
            }
            self.circles.insert(numbers, standing);
        }
        found
    }
}

/// Returns true if a rank waits only for one message, from or to one rank.
fn waits_for_one_message(seen: &Seen) -> bool {
    let snapshot = seen.snapshot.as_ref();
    let snapshot = snapshot.filter(|snapshot| !snapshot.has_several_waits());
    matches!(
        snapshot.and_then(|snapshot| snapshot.waiting.as_ref()),
        Some(
            Waiting::Send(Partner { requests: 1, .. }) | Waiting::Recv(Partner { requests: 1, .. })
        )
    )
}

#[cfg(test)]
mod tests {
    use super::super::proof::tests::waits;
    use super::super::tests::idle;
    use super::*;

    /// Adds `rounds` rounds of the ranks that `of` returns;
    /// returns the rounds with a reported cycle.
    fn found(rounds: u64, of: impl Fn(u64) -> Vec<Seen>) -> Vec<u64> {
        let mut standstill = Standstill::default();
        let is_found = |round: &u64| !standstill.add(&of(*round)).is_empty();
        (0..rounds).filter(is_found).collect()
    }

    fn circle(round: u64) -> Vec<Seen> {
        let (taken, checked) = (100 * (round + 1), 100 * (round + 1) - 10);
        vec![
            waits(0, 1, taken, checked),
            waits(1, 0, taken, checked),
            idle(2),
        ]
    }

    #[test]
    fn a_circle_beside_a_rank_that_computes_is_found_once() {
        assert_eq!(found(20, circle), [u64::from(ROUNDS)]);
    }

    #[test]
    fn a_circle_that_moves_or_does_not_poll_is_none() {
        let moves = |round| {
            let mut ranks = circle(round);
            if let Some(snapshot) = &mut ranks[0].snapshot {
                snapshot.calls = round / 3;
            }
            ranks
        };
        assert!(found(20, moves).is_empty());
        let is_stopped = |round| {
            let mut ranks = circle(round);
            ranks[1] = waits(1, 0, 100 * (round + 1), 90);
            ranks
        };
        assert!(found(20, is_stopped).is_empty());
    }

    #[test]
    fn a_rank_that_waits_for_several_requests_is_in_no_circle() {
        let several = |round| {
            let mut ranks = circle(round);
            let waiting = ranks[0].snapshot.as_mut().and_then(|s| s.waiting.as_mut());
            if let Some(Waiting::Recv(partner)) = waiting {
                partner.requests = 2;
            }
            ranks
        };
        assert!(found(20, several).is_empty());
    }
}
