//! The eureka line as a word in the node's shared memory, for members on one node.
//!
//! Memory: the word, then one bit per member, which is set when the member has freed the communicator.
//! The upper half of the word is the number of the last round in which the line was raised,
//! the lower half is the rank that raised it first, plus one.
//! A member raises the line by a compare-and-swap that succeeds only if the word is of an earlier round,
//! so one member per round succeeds.
//! A member begins a round only after all have ended the previous one,
//! so a member never reads the word of a later round.

use super::Comm;
use crate::fault::Deaths;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::cells::LINE;
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock, ShmOffset};
use mpi_transport::btl::ProcId;
use std::cell::Cell;
use std::rc::Rc;

/// The offset of the word that rank 0 allocated, or the code of the reason why there is none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offer(u64);

/// Codes for a missing word, below any valid offset:
/// a node's memory begins with a header, so no block has such an offset.
const APART: u64 = 0;
const FULL: u64 = 1;

const NUMBER: u32 = 32;
const BITS: usize = u64::BITS as usize;

impl Offer {
    pub(super) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Decodes the offset. If the bytes are a code for a missing word, returns the reason,
    /// a clause for the text of `EurekaError::NoLine`.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<ShmOffset, &'static str> {
        let word = bytes.try_into().map_or(APART, u64::from_le_bytes);
        match word {
            APART => Err("not all members share the memory of one node"),
            FULL => Err("the memory of the node has no room for one"),
            offset => Ok(ShmOffset(offset)),
        }
    }
}

/// A member's access to the line's word in shared memory.
pub(super) struct FoundWord {
    memory: Rc<Held<[AtomicU64]>>,
    me: u32,
    procs: Rc<[ProcId]>,
    block: Cell<Option<ShmBlock>>,
    deaths: Rc<Deaths>,
    retired: Rc<RetiredBlocks>,
}

fn words(members: usize) -> usize {
    1 + members.div_ceil(BITS)
}

impl FoundWord {
    /// On rank 0: allocates the word, if all members are on this node.
    pub(super) fn offer(comm: &Comm) -> (Offer, Option<ShmBlock>) {
        let (engine, group) = (comm.engine(), comm.group());
        let members = group.size() as usize;
        if engine.place().members_here(group).count() != members {
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

    /// Maps the word at this offset; on rank 0 `block` is its memory.
    pub(super) fn at(comm: &Comm, offset: ShmOffset, block: Option<ShmBlock>) -> Option<FoundWord> {
        let (engine, group) = (comm.engine(), comm.group());
        let faults = engine.faults()?;
        let memory = engine
            .node()
            .hold_all(offset, words(group.size() as usize))?;
        Some(FoundWord {
            memory: Rc::new(memory),
            me: comm.rank(),
            procs: group.iter().collect(),
            block: Cell::new(block),
            deaths: faults.deaths().clone(),
            retired: faults.retired().clone(),
        })
    }

    /// Raises the line in this round. Returns true if no other member has raised it in this round.
    pub(super) fn raise(&self, round: u32, rank: u32) -> bool {
        let mine = u64::from(round) << NUMBER | (u64::from(rank) + 1);
        let word = &self.memory[0];
        let mut seen = word.load(Ordering::Acquire);
        while seen >> NUMBER != u64::from(round) {
            // SYNC POINT eureka.raised:
            // a member that reads the line as raised also reads the raising member's earlier writes.
            match word.compare_exchange(seen, mine, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// Returns true if a member has raised the line in this round.
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
