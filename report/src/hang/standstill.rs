//! Ranks that stand still in a circle while others go on: a part of a job that seems dead.
//!
//! It is no proof as [`proof`](super::proof) is one: another rank may hold what a message of the circle waits for.
//! So it is reported and never ends a job, and only after a long time and with exact edges:
//! each rank of the circle waits in a call for one request, whose peer is the next one, and has polled in every round without a result.

use super::graph::{Graph, Needs};
use super::proof::{Position, position};
use super::{Finding, Seen, find};
use crate::rank_snapshot::{Partner, Waiting};
use std::collections::BTreeMap;

/// Rounds in which a circle has not moved before it is reported.
const ROUNDS: u32 = 4;

/// A circle that has been seen.
#[derive(Debug)]
struct Standing {
    positions: Vec<Position>,
    taken_ns: Vec<u64>,
    rounds: u32,
}

/// The circles that have been seen, by their ranks.
#[derive(Debug, Default)]
pub struct Standstill {
    circles: BTreeMap<Vec<u32>, Standing>,
}

impl Standstill {
    /// Adds a snapshot of the living ranks of one host. Returns the circles that have stood still for long, each once.
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

/// Returns true if a rank waits for one message of one rank, and for nothing else.
fn waits_for_one_message(seen: &Seen) -> bool {
    let waiting = seen.snapshot.as_ref().and_then(|s| s.waiting.as_ref());
    matches!(
        waiting,
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

    /// Adds this number of rounds of ranks that `of` makes, and returns in which a circle was found.
    fn found(rounds: u64, of: impl Fn(u64) -> Vec<Seen>) -> Vec<u64> {
        let mut standstill = Standstill::default();
        let mut is_found = |round: &u64| !standstill.add(&of(*round)).is_empty();
        (0..rounds).filter(|round| is_found(round)).collect()
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
