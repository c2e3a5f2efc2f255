//! The barrier for ranks with a core each: dissemination through flags in shared memory.
//!
//! D. Hensgen, R. Finkel, U. Manber, IJPP 17(1), 1988, as in J. M. Mellor-Crummey, M. L. Scott, ACM TOCS 9(1), 1991, section 3.3:
//! in round r, rank i stores to a flag of rank (i + 2^r) mod n and polls its own flag of that round.
//! Each flag has a cache line of its own and is written by one rank.
//!
//! A flag's value is the number, counted from one, of the last barrier that its writer has entered.
//! Barriers use two sets of flags alternately.
//! The writer may be one barrier ahead of the reader, but not two,
//! since the second barrier requires the reader's arrival; so the reader misses no value.
//!
//! A write to a cache line that another core has read costs a round trip between the caches.
//! So after writing a flag, the writer prefetches the line of the next barrier's flag, which no rank polls yet.

use super::members::{LINE, Members, Stage};
use mpi_base::atomic::{AtomicU64, Ordering, prefetch_for_write};
use mpi_base::mem::Held;
use mpi_base::node::{Node, ShmOffset};

pub struct Flags {
    rounds: Box<[Round]>,
}

/// One round of this rank, with the flags for even and for odd barriers.
struct Round {
    to: u32,
    /// The flags of rank `to` that this rank writes.
    theirs: [Held<AtomicU64>; SETS],
    /// The flags of this rank that another rank writes.
    mine: [Held<AtomicU64>; SETS],
}

const SETS: usize = 2;

fn rounds(members: u32) -> u32 {
    members.next_power_of_two().trailing_zeros()
}

impl Flags {
    pub fn len(members: u32) -> usize {
        members as usize * rounds(members) as usize * SETS * LINE
    }

    pub fn at(node: &Node, offset: ShmOffset, me: u32, members: u32) -> Option<Flags> {
        let flag = |rank: u32, round: u32, set: u64| {
            let which = u64::from(rank) * u64::from(rounds(members)) + u64::from(round);
            let which = which * SETS as u64 + set;
            node.hold(ShmOffset(offset.0 + which * LINE as u64))
        };
        let flags = |rank, round| Some([flag(rank, round, 0)?, flag(rank, round, 1)?]);
        let round = |round: u32| {
            let to = ((u64::from(me) + (1 << round)) % u64::from(members)) as u32;
            Some(Round {
                to,
                theirs: flags(to, round)?,
                mine: flags(me, round)?,
            })
        };
        let rounds = (0..rounds(members)).map(round).collect::<Option<_>>()?;
        Some(Flags { rounds })
    }

    /// Prefetches, for writing, the flags that this rank writes in barrier `number`.
    pub fn prefetch_next(&self, number: u64) {
        let set = (number + 1) as usize % SETS;
        for round in &self.rounds {
            prefetch_for_write(std::ptr::from_ref::<AtomicU64>(&round.theirs[set]).cast());
        }
    }

    #[inline]
    pub fn step(&self, members: &Members, number: u64, stage: &mut Stage) -> bool {
        let mark = number + 1;
        let (set, next) = (mark as usize % SETS, number as usize % SETS);
        while let Some(round) = self.rounds.get(stage.round as usize) {
            if !stage.told {
                stage.told = true;
                // SYNC POINT shm.flags: releases this rank's earlier writes,
                // and the writes of other ranks that this rank has acquired.
                round.theirs[set].store(mark, Ordering::Release);
                members.ring(round.to);
                prefetch_for_write(std::ptr::from_ref::<AtomicU64>(&round.theirs[next]).cast());
            }
            // SYNC POINT shm.flags
            if round.mine[set].load(Ordering::Acquire) < mark {
                return false;
            }
            *stage = Stage {
                round: stage.round + 1,
                told: false,
            };
        }
        true
    }
}
