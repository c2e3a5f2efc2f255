//! Proof that no rank of a job can make progress, from snapshots of all living ranks.
//!
//! A rank is *passive* while it waits inside MPI
//! and its polls find nothing ([`mpi_base::state::Quiet`]).
//! A rank with several waiting threads is passive if all of them wait so
//! ([`mpi_base::state::ThreadWaits`]).
//! A passive rank acts only on a message or a store to shared memory.
//! Passive ranks send and store nothing.
//! So all ranks stay passive if they are passive at one time and no message is in flight.
//! No message is in flight if the state has not changed between two rounds and the total counts of
//! sent and received messages are equal (F. Mattern, "Algorithms for distributed termination
//! detection", Distributed Computing 2, 1987).
//!
//! *Rounds* establish a time at which all ranks are passive.
//! A round is complete when each rank has polled again, without a result, in the same wait.
//! The polls of a round begin after all ranks have completed the previous round.
//! The clocks of different hosts are never compared.
//!
//! The proof does not use the wait-for graph.
//! A rank that computes, sleeps outside MPI, is stopped or not scheduled is not passive.

use super::Seen;
use crate::rank_snapshot::{Gate, Quiet, RankSnapshot, Stage};

/// The number of complete rounds that form a proof.
/// Two rounds would suffice if a poll read all memory words at the same time.
const ROUNDS: u32 = 4;

/// The time for which nothing has arrived at any rank when a proof is complete.
/// The proof does not rely on this time.
const STILL_NS: u64 = 1_000_000_000;

/// Calls that other jobs or the launcher may complete.
const FROM_OUTSIDE: [&str; 10] = [
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_join",
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Comm_disconnect",
    "MPI_Open_port",
    "MPI_Publish_name",
    "MPI_Unpublish_name",
    "MPI_Lookup_name",
];

/// Identifies the wait of a rank:
/// as long as the position is unchanged, the rank is in the same wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    rank: u32,
    waits: u64,
    calls: u64,
    progress: u64,
    switches: u64,
}

/// A proof in progress, to which snapshots are added.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// The position of each living rank.
    positions: Vec<Position>,
    /// The time of each rank's snapshot when the latest round was completed, by its host's clock.
    taken_ns: Vec<u64>,
    rounds: u32,
}

impl Proof {
    /// Restarts the proof, because a rank may have made progress.
    pub fn reset(&mut self) {
        *self = Proof::default();
    }

    /// Returns true if a proof has begun and no rank has changed its position since its begin.
    pub fn has_begun(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Adds one snapshot of each rank of all connected jobs.
    /// Returns true if the snapshots prove that no rank can make progress any more.
    pub fn add(&mut self, ranks: &[Seen]) -> bool {
        let Some(passive) = passive_ranks(ranks) else {
            self.reset();
            return false;
        };
        let positions: Vec<Position> = passive.iter().map(|rank| rank.position()).collect();
        let taken_ns = || passive.iter().map(|rank| rank.quiet.taken_ns).collect();
        if positions != self.positions {
            *self = Proof {
                positions,
                taken_ns: taken_ns(),
                rounds: 0,
            };
            return false;
        }
        let mut polled = passive.iter().zip(&self.taken_ns);
        if polled.all(|(rank, before)| rank.quiet.checked_ns > *before) {
            self.taken_ns = taken_ns();
            self.rounds += 1;
        }
        let sum = |count: fn(&Quiet) -> u64| {
            let counts = passive.iter().map(|rank| count(rank.quiet));
            counts.fold(0, u64::wrapping_add)
        };
        let nothing_under_way = sum(|quiet| quiet.sent) == sum(|quiet| quiet.received);
        let is_still = |rank: &Passive<'_>| {
            let quiet = rank.quiet;
            quiet.taken_ns.saturating_sub(quiet.since_ns) >= STILL_NS
        };
        self.rounds >= ROUNDS && nothing_under_way && passive.iter().all(is_still)
    }
}

/// A living rank that may be passive.
struct Passive<'a> {
    rank: u32,
    snapshot: &'a RankSnapshot,
    quiet: &'a Quiet,
}

impl Passive<'_> {
    fn position(&self) -> Position {
        Position {
            rank: self.rank,
            waits: self.quiet.waits,
            calls: self.snapshot.calls,
            progress: self.snapshot.progress,
            switches: self.quiet.switches,
        }
    }
}

/// Returns all living ranks; `None` if there is none, or if one of them is not passive.
fn passive_ranks(ranks: &[Seen]) -> Option<Vec<Passive<'_>>> {
    let living = ranks.iter().filter(|seen| seen.alive);
    let passive: Vec<Passive<'_>> = living.map(passive).collect::<Option<_>>()?;
    let wires: Vec<Gate> = passive.iter().filter_map(|one| one.snapshot.gate).collect();
    let is_released_by_hardware =
        |one: &Passive<'_>| one.snapshot.gate.is_some() && may_be_released(one.snapshot, &wires);
    (!passive.is_empty() && !passive.iter().any(is_released_by_hardware)).then_some(passive)
}

/// Returns the position of a rank that may be passive, the time of its snapshot, and the time
/// at which its latest poll began.
pub(super) fn position(seen: &Seen) -> Option<(Position, (u64, u64))> {
    let passive = passive(seen)?;
    let is_counted = passive.quiet.sent + passive.quiet.received > 0;
    // With a network transport, a message may be in flight.
    (!is_counted).then(|| {
        let quiet = passive.quiet;
        (passive.position(), (quiet.taken_ns, quiet.checked_ns))
    })
}

/// Returns true if the rank is passive as far as its own snapshot shows.
pub fn may_be_passive(seen: &Seen) -> bool {
    passive(seen).is_some()
}

fn passive(seen: &Seen) -> Option<Passive<'_>> {
    let snapshot = seen.snapshot.as_ref()?;
    let quiet = snapshot.quiet.as_ref()?;
    let call = snapshot.call.as_deref()?;
    let is_waiting = snapshot.stage == Stage::Running
        && snapshot.waited.is_some()
        && snapshot.in_file.is_none()
        && !quiet.is_open
        && quiet.others_sleep;
    let may_be_served = |call: &str| FROM_OUTSIDE.contains(&call) || call.starts_with("MPIX_");
    let mut calls = snapshot.threads.iter().map(|wait| wait.call.as_str());
    let is_served = may_be_served(call) || calls.any(may_be_served);
    (is_waiting && !is_served).then_some(Passive {
        rank: seen.rank,
        snapshot,
        quiet,
    })
}

/// Returns true if the hardware may release the rank from a barrier.
/// The hardware cannot if another rank's wire has not toggled;
/// otherwise a release may be in flight.
fn may_be_released(snapshot: &RankSnapshot, wires: &[Gate]) -> bool {
    let is_in_barrier = snapshot.in_round().is_some_and(|round| {
        round.what.starts_with("MPI_Barrier") || round.what.starts_with("MPI_Ibarrier")
    });
    let waits_at_wire = |gate: &Gate| gate.released < gate.entered;
    let is_behind = |gate: &Gate| wires.iter().any(|other| other.entered < gate.entered);
    match snapshot.gate.filter(waits_at_wire) {
        Some(gate) => !is_behind(&gate),
        // The hardware may also perform a barrier of another communicator.
        None => is_in_barrier,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::hang::tests::{gone, idle, meets, receives};
    use crate::rank_snapshot::InFile;
    use std::time::Duration;

    /// Returns rank `rank` in a wait for rank `from`,
    /// with the times of the snapshot and of its latest poll.
    pub(in crate::hang) fn waits(rank: u32, from: u32, taken_ns: u64, checked_ns: u64) -> Seen {
        let mut seen = receives(rank, from, 7);
        if let Some(snapshot) = &mut seen.snapshot {
            snapshot.quiet = Some(Quiet {
                waits: 1,
                since_ns: 0,
                checked_ns,
                taken_ns,
                sent: 0,
                received: 0,
                is_open: false,
                others_sleep: true,
                switches: 0,
            });
        }
        seen
    }

    /// Returns the snapshots of two ranks that wait for each other, for `count` rounds.
    fn rounds(count: u64) -> Vec<Vec<Seen>> {
        let time = |round| STILL_NS / 4 * (round + 1);
        let pair = |round| {
            let (taken, checked) = (time(round), time(round) - 10);
            vec![waits(0, 1, taken, checked), waits(1, 0, taken, checked)]
        };
        (0..count).map(pair).collect()
    }

    fn quiet_of(seen: &mut Seen) -> &mut Quiet {
        seen.snapshot.as_mut().unwrap().quiet.as_mut().unwrap()
    }

    /// Returns true if a prefix of the rounds is a proof;
    /// `change` modifies the ranks of each round.
    fn is_proven(change: impl Fn(usize, &mut Vec<Seen>)) -> bool {
        let mut proof = Proof::default();
        rounds(20).into_iter().enumerate().any(|(at, mut ranks)| {
            change(at, &mut ranks);
            proof.add(&ranks)
        })
    }

    #[test]
    fn ranks_that_have_all_polled_without_a_result_for_some_rounds_are_dead() {
        assert!(is_proven(|_, _| {}));
        let mut proof = Proof::default();
        let proven = |ranks: &Vec<Seen>| proof.add(ranks);
        assert_eq!(rounds(20).iter().map(proven).position(|dead| dead), Some(4));
        // Ranks that have ended have no effect on the proof.
        assert!(is_proven(|_, ranks| ranks.push(gone(2))));
    }

    #[test]
    fn a_job_whose_ranks_have_waited_for_less_than_a_second_is_not_dead_yet() {
        let since = |since_ns| {
            move |_: usize, ranks: &mut Vec<Seen>| quiet_of(&mut ranks[1]).since_ns = since_ns
        };
        let end = rounds(20)[19][1].snapshot.as_ref().unwrap().quiet;
        let end = end.unwrap().taken_ns;
        assert!(is_proven(since(end - STILL_NS)));
        assert!(!is_proven(since(end - STILL_NS + 1)));
    }

    #[test]
    fn a_rank_outside_mpi_keeps_its_job_alive() {
        assert!(!is_proven(|_, ranks| ranks.push(idle(2))));
        assert!(!is_proven(|_, ranks| ranks[1].snapshot = None));
        assert!(!is_proven(|_, ranks| ranks.clear()));
    }

    #[test]
    fn a_stopped_rank_does_not_poll_so_its_job_is_alive() {
        assert!(!is_proven(
            |_, ranks| quiet_of(&mut ranks[1]).checked_ns = 90
        ));
        // The rank is stopped, and continues only in a later round.
        let stopped_until = |round: usize| {
            move |at: usize, ranks: &mut Vec<Seen>| {
                if at < round {
                    quiet_of(&mut ranks[1]).checked_ns = 90;
                }
            }
        };
        assert!(is_proven(stopped_until(10)));
        assert!(!is_proven(stopped_until(17)));
    }

    #[test]
    fn a_rank_that_moves_between_snapshots_begins_the_proof_again() {
        assert!(!is_proven(
            |at, ranks| quiet_of(&mut ranks[0]).waits = at as u64 / 4
        ));
        assert!(!is_proven(|at, ranks| {
            let snapshot = ranks[0].snapshot.as_mut().unwrap();
            snapshot.progress = at as u64 / 4;
        }));
        assert!(!is_proven(
            |at, ranks| quiet_of(&mut ranks[1]).switches = at as u64 / 4
        ));
        assert!(!is_proven(|at, ranks| {
            let snapshot = ranks[1].snapshot.as_mut().unwrap();
            snapshot.calls = at as u64 / 4;
        }));
    }

    #[test]
    fn a_message_under_way_keeps_the_job_alive() {
        assert!(!is_proven(|_, ranks| quiet_of(&mut ranks[0]).sent = 5));
        assert!(is_proven(|_, ranks| {
            quiet_of(&mut ranks[0]).sent = 5;
            quiet_of(&mut ranks[1]).received = 5;
        }));
    }

    #[test]
    fn what_may_come_from_outside_the_job_keeps_it_alive() {
        assert!(!is_proven(|_, ranks| quiet_of(&mut ranks[0]).is_open = true));
        assert!(!is_proven(
            |_, ranks| quiet_of(&mut ranks[0]).others_sleep = false
        ));
        let calls = FROM_OUTSIDE.iter().copied();
        for call in calls.chain(["MPIX_Eureka_wait"]) {
            assert!(!is_proven(|_, ranks| {
                ranks[0].snapshot.as_mut().unwrap().call = Some(call.into());
            }));
        }
    }

    #[test]
    fn a_rank_that_is_not_in_a_wait_of_a_running_program_keeps_its_job_alive() {
        let is_alive = |change: fn(&mut RankSnapshot)| {
            !is_proven(|_, ranks| change(ranks[0].snapshot.as_mut().unwrap()))
        };
        assert!(is_alive(|rank| rank.call = None));
        assert!(is_alive(|rank| rank.stage = Stage::Starting));
        assert!(is_alive(|rank| rank.waited = None), "it polls");
        assert!(is_alive(|rank| rank.quiet = None), "it has not slept");
        let in_file = |rank: &mut RankSnapshot| {
            rank.in_file = Some(Box::new(InFile {
                call: "pwrite".into(),
                name: "data".into(),
                since: Duration::from_secs(9),
            }));
        };
        assert!(is_alive(in_file));
    }

    #[test]
    fn a_hardware_barrier_is_dead_only_if_a_wire_was_never_toggled() {
        let wire = |entered, released| {
            Some(Gate {
                wire: 0,
                entered,
                released,
            })
        };
        let wired = |first: Option<Gate>, second: Option<Gate>| {
            is_proven(move |_, ranks| {
                ranks[0].snapshot.as_mut().unwrap().gate = first;
                ranks[1].snapshot.as_mut().unwrap().gate = second;
            })
        };
        assert!(!wired(wire(3, 2), wire(3, 2)), "the release is in flight");
        assert!(wired(wire(3, 2), wire(2, 2)), "rank 1 has not arrived");
        assert!(wired(wire(2, 2), wire(2, 2)), "both wait for messages");
        for call in ["MPI_Barrier", "MPI_Ibarrier"] {
            assert!(
                !is_proven(|_, ranks| {
                    for seen in ranks {
                        let snapshot = seen.snapshot.as_mut().unwrap();
                        let inside = meets(0, call, 3).snapshot.unwrap();
                        (snapshot.gate, snapshot.round) = (wire(2, 2), inside.round);
                    }
                }),
                "{call} of another communicator may have a wire"
            );
        }
    }
}
