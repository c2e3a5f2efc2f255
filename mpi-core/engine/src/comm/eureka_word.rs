//! The eureka line as a word in the memory of a node, for members that share one.
//!
//! Memory: the word, then a bit for each member that has gone.
//! The word holds the number of the last round in which a member has raised the line, and above zero which one it was.
//! A member raises the line by putting its own in the place of an earlier round's, so exactly one of a round does; since no member
//! is in a round before all have left the one before, no word of a later round is ever seen.

use super::Comm;
use crate::fault::Deaths;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::cells::LINE;
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock, ShmOffset};
use mpi_transport::btl::ProcId;
use std::cell::Cell;
use std::rc::Rc;

/// Where rank 0 has made the word, or why it has not.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offer(u64);

/// Codes below any place: memory of a node does not begin with blocks.
const APART: u64 = 0;
const FULL: u64 = 1;

const NUMBER: u32 = 32;
const BITS: usize = u64::BITS as usize;

impl Offer {
    pub(super) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The place, or a sentence's end.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<ShmOffset, &'static str> {
        let word = bytes.try_into().map_or(APART, u64::from_le_bytes);
        match word {
            APART => Err("not all members share the memory of one node"),
            FULL => Err("the memory of the node has no room for one"),
            place => Ok(ShmOffset(place)),
        }
    }
}

/// The word, as one member uses it.
pub(super) struct FoundWord {
    memory: Rc<Held<[AtomicU64]>>,
    me: u32,
    procs: Rc<[ProcId]>,
    /// At the member whose memory it is.
    block: Cell<Option<ShmBlock>>,
    deaths: Rc<Deaths>,
    retired: Rc<RetiredBlocks>,
}

fn words(members: usize) -> usize {
    1 + members.div_ceil(BITS)
}

impl FoundWord {
    /// At rank 0: makes the word, if all members are on this node.
    pub(super) fn offer(comm: &Comm) -> (Offer, Option<ShmBlock>) {
        let (engine, group) = (comm.engine(), comm.group());
        let members = group.size() as usize;
        if engine.members_here(group).count() != members {
            return (Offer(APART), None);
        }
        match engine
            .node()
            .alloc(words(members) * size_of::<AtomicU64>(), LINE)
        {
            Some(block) => (Offer(block.place().0), Some(block)),
            None => (Offer(FULL), None),
        }
    }

    /// The word at this place, which rank 0 made of `block`.
    pub(super) fn at(comm: &Comm, place: ShmOffset, block: Option<ShmBlock>) -> Option<FoundWord> {
        let (engine, group) = (comm.engine(), comm.group());
        let faults = engine.faults()?;
        let memory = engine
            .node()
            .hold_all(place, words(group.size() as usize))?;
        Some(FoundWord {
            memory: Rc::new(memory),
            me: comm.rank(),
            procs: group.iter().collect(),
            block: Cell::new(block),
            deaths: faults.deaths().clone(),
            retired: faults.retired().clone(),
        })
    }

    /// This member has found it in this round; true if no other has before.
    pub(super) fn raise(&self, round: u32, rank: u32) -> bool {
        let mine = u64::from(round) << NUMBER | (u64::from(rank) + 1);
        let word = &self.memory[0];
        let mut seen = word.load(Ordering::Acquire);
        while seen >> NUMBER != u64::from(round) {
            // SYNC POINT eureka.raised: a member that sees the line high sees what the first wrote before it raised it.
            match word.compare_exchange(seen, mine, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// Whether a member has found it in this round.
    pub(super) fn is_found(&self, round: u32) -> bool {
        // SYNC POINT eureka.raised
        self.memory[0].load(Ordering::Acquire) >> NUMBER == u64::from(round)
    }
}

impl Drop for FoundWord {
    fn drop(&mut self) {
        let gone = |member: u32| {
            (
                1 + member as usize / BITS,
                1_u64 << (member as usize % BITS),
            )
        };
        let (at, bit) = gone(self.me);
        self.memory[at].fetch_or(bit, Ordering::AcqRel);
        if let Some(block) = self.block.take() {
            let (memory, procs) = (self.memory.clone(), self.procs.clone());
            let deaths = self.deaths.clone();
            let has_gone = move |(member, proc): (u32, &ProcId)| {
                let (at, bit) = gone(member);
                memory[at].load(Ordering::Acquire) & bit != 0 || deaths.is_dead(*proc)
            };
            let all_gone = move || (0..).zip(&*procs).all(&has_gone);
            self.retired.push(block, all_gone);
        }
    }
}
