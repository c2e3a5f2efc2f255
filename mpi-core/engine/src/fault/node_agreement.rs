//! Agreement in shared memory, for communicators whose members are all on one node.
//!
//! Each member writes its contribution to its own slot
//! and reads the slots of the others ([`ShmAgreement`]), so there are no messages, and no root that may die.
//! Each member computes the result from the slots;
//! when a round is settled (no living member is missing), all members read the same slots.
//!
//! The members find the memory through agreements over messages, whose values have a word for it
//! ([`Value::memory`]):
//! 1. while there is no memory, the first participating member allocates it, if all members are on its node, and contributes its offset;
//!    the decision contains the offset for all members;
//! 2. in the next agreement, a member that cannot map the memory contributes [`UNUSABLE`].
//!    If no member does so, all later agreements use the memory,
//!    otherwise none of them does.
//!
//! Most communicators make one or two agreements, when they are created or freed; these need no memory ([`FIRST`]).

use super::deaths::Deaths;
use super::era::Value;
use crate::Engine;
use crate::group::Group;
use crate::node_members::NodeMembers;
use mpi_base::atomic::AtomicU64;
use mpi_base::cells::LINE;
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock, ShmOffset};
use mpi_base::shm_agreement::{ShmAgreement, words};
use mpi_transport::btl::ProcId;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// Number of the first agreement in which memory is offered, counted from zero.
const FIRST: u64 = 2;

/// The word that a member contributes if it cannot map the offered memory.
const UNUSABLE: u64 = u64::MAX;

/// Number of words of a slot before the members' bits: the flag with [`HAS_BITS`], and the number.
const FIXED: usize = 2;

/// At most 8 members each read all slots. In a larger communicator, the first member that
/// computes the result writes it to a separate cache line, which the other members read.
const FEW: u32 = 8;

const HAS_BITS: u64 = 1 << 32;
const BITS: usize = u64::BITS as usize;

type Slots = ShmAgreement<Held<[AtomicU64]>>;

/// How far this member is in the search for memory.
#[derive(Default)]
enum Search {
    #[default]
    Nothing,
    /// The members are not all on one node, or the node's memory is exhausted.
    NotHere,
    /// This member has offered a block of its memory.
    Offered(ShmBlock),
    /// The offset is known; the value is this member's mapping, or `None` if it could not map the memory.
    Found(Option<NodeAgreement>),
    /// The search has ended: either all members use the memory, or none does.
    Over,
}

/// The shared memory for one communicator's agreements, and the search for it.
#[derive(Default)]
pub(crate) struct Memory {
    search: RefCell<Search>,
    ready: OnceCell<NodeAgreement>,
}

impl Memory {
    /// Returns the memory, if all members use it from now on.
    #[inline]
    pub(crate) fn ready(&self) -> Option<&NodeAgreement> {
        self.ready.get()
    }

    /// Returns the word that this member contributes to an agreement over messages:
    /// on the first participating member (`leads`), the offset of the memory that it has allocated;
    /// [`UNUSABLE`] if this member cannot map the memory; otherwise 0.
    pub(crate) fn word(&self, engine: &Engine, all: &[ProcId], number: u64, leads: bool) -> u64 {
        let mut search = self.search.borrow_mut();
        match &*search {
            Search::Nothing if number >= FIRST && leads => {
                let offered = NodeAgreement::allocate(engine, all);
                let place = offered.as_ref().map_or(0, |block| block.place().0);
                *search = offered.map_or(Search::NotHere, Search::Offered);
                place
            }
            Search::Found(None) => UNUSABLE,
            Search::Nothing
            | Search::NotHere
            | Search::Offered(_)
            | Search::Found(Some(_))
            | Search::Over => 0,
        }
    }

    /// Handles the memory word of a decision; the word is the same on all members.
    pub(crate) fn decided(&self, engine: &Engine, all: &[ProcId], word: u64) {
        let mut search = self.search.borrow_mut();
        *search = match std::mem::take(&mut *search) {
            before @ (Search::Nothing | Search::NotHere) if word == 0 => before,
            Search::Nothing | Search::NotHere => {
                Search::Found(NodeAgreement::at(engine, all, word, None))
            }
            Search::Offered(block) => {
                Search::Found(NodeAgreement::at(engine, all, word, Some(block)))
            }
            Search::Found(Some(found)) if word == 0 => {
                let _ = self.ready.set(found);
                Search::Over
            }
            Search::Found(_) | Search::Over => Search::Over,
        };
    }
}

/// A member's access to a communicator's slots.
pub(crate) struct NodeAgreement {
    slots: Rc<Slots>,
    members: NodeMembers,
    procs: Rc<[ProcId]>,
    block: Cell<Option<ShmBlock>>,
    deaths: Rc<Deaths>,
    retired: Rc<RetiredBlocks>,
}

impl Drop for NodeAgreement {
    fn drop(&mut self) {
        self.slots.leave();
        if let Some(block) = self.block.take() {
            let (slots, procs) = (self.slots.clone(), self.procs.clone());
            let deaths = self.deaths.clone();
            let is_dead = move |member: u32| deaths.is_dead(procs[member as usize]);
            // A member that has neither left nor died may still read the slots.
            let all_left = move || (0..slots.members()).all(|m| slots.has_left(m) || is_dead(m));
            self.retired.push(block, all_left);
        }
    }
}

impl NodeAgreement {
    fn says(members: usize) -> usize {
        FIXED + 2 * members.div_ceil(BITS)
    }

    fn len(members: usize) -> usize {
        words(members as u32, Self::says(members)) * size_of::<AtomicU64>()
    }

    fn allocate(engine: &Engine, all: &[ProcId]) -> Option<ShmBlock> {
        let group = Group::from_procs(all.to_vec());
        let here = engine.place().members_here(&group).count() == all.len();
        here.then(|| engine.node().alloc(Self::len(all.len()), LINE))?
    }

    fn at(
        engine: &Engine,
        all: &[ProcId],
        place: u64,
        block: Option<ShmBlock>,
    ) -> Option<NodeAgreement> {
        let me = all.iter().position(|proc| *proc == engine.me())? as u32;
        let members = NodeMembers::of(engine, &Group::from_procs(all.to_vec()), me).ok()?;
        let (count, says) = (members.count(), Self::says(all.len()));
        let memory = engine
            .node()
            .hold_all(ShmOffset(place), words(count, says))?;
        let faults = engine.faults()?;
        Some(NodeAgreement {
            slots: Rc::new(ShmAgreement::new(memory, me, count, says)?),
            members,
            procs: all.into(),
            block: Cell::new(block),
            deaths: faults.deaths().clone(),
            retired: faults.retired().clone(),
        })
    }

    /// Writes this process's contribution.
    #[inline]
    pub(crate) fn begin(&self, number: u64, value: &Value) {
        if value.dead.is_empty() {
            self.slots
                .write(number, &[u64::from(value.flag), value.number]);
        } else {
            let mut says = vec![u64::from(value.flag) | HAS_BITS, value.number];
            for bits in [&value.dead, &value.acknowledged] {
                let word = |bits: &[bool]| {
                    let set = (0..).zip(bits).filter(|(_, set)| **set);
                    set.fold(0, |word, (at, _)| word | 1_u64 << at)
                };
                says.extend(bits.chunks(BITS).map(word));
            }
            self.slots.write(number, &says);
        }
        self.members.order();
    }

    /// Returns the first living member, from `from` on, that has not contributed; the number of members if there is none.
    ///
    /// If `wrong` is false, none of the members is known to be dead.
    #[inline]
    pub(crate) fn settled(&self, number: u64, from: u32, wrong: bool) -> u32 {
        if self.slots.members() > FEW && self.slots.concluded(number).is_some() {
            return self.slots.members();
        }
        let is_dead = |member: u32| wrong && self.deaths.is_dead(self.procs[member as usize]);
        self.slots.settled(number, from, is_dead)
    }

    #[inline]
    pub(crate) fn is_over(&self, settled: u32) -> bool {
        settled == self.slots.members()
    }

    /// Merges all contributions after the round is settled; the bit sets are empty if no member reports a death.
    ///
    /// Contributions of members that earlier agreements have found dead are ignored.
    #[inline]
    pub(crate) fn outcome(&self, number: u64, left_out: &[ProcId]) -> Value {
        let mut value = Value {
            flag: u32::MAX,
            ..Value::default()
        };
        let many = self.slots.members() > FEW;
        if many && let Some(flag) = self.slots.concluded(number) {
            // The member that wrote the result also wakes the members that sleep.
            value.flag = flag as u32;
            return value;
        }
        let mut plain = true;
        for member in 0..self.slots.members() {
            if !self.takes_part(member, number, left_out) {
                plain = false;
                continue;
            }
            let word = self.slots.word(member, number, 0);
            plain &= word & HAS_BITS == 0;
            value.flag &= word as u32;
            value.number = value.number.max(self.slots.word(member, number, 1));
        }
        if !plain {
            self.add_bits(number, left_out, &mut value);
        } else if many && value.number == 0 {
            self.slots.conclude(number, value.flag.into());
        }
        // A sleeping member may be waiting for this member only.
        self.members.ring_each();
        value
    }

    #[inline]
    fn takes_part(&self, member: u32, number: u64, left_out: &[ProcId]) -> bool {
        let is_out = !left_out.is_empty() && left_out.contains(&self.procs[member as usize]);
        self.slots.has_written(member, number) && !is_out
    }

    #[cold]
    fn add_bits(&self, number: u64, left_out: &[ProcId], value: &mut Value) {
        let count = self.slots.members() as usize;
        let second = count.div_ceil(BITS);
        value.dead = vec![false; count];
        value.acknowledged = vec![true; count];
        for member in 0..self.slots.members() {
            if !self.takes_part(member, number, left_out) {
                value.dead[member as usize] = true;
                continue;
            }
            let bit = |from: usize, of: usize| {
                let word = self.slots.word(member, number, FIXED + from + of / BITS);
                word >> (of % BITS) & 1 == 1
            };
            for of in 0..count {
                value.dead[of] |= bit(0, of);
                value.acknowledged[of] &= bit(second, of);
            }
        }
    }
}
