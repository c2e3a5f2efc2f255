//! The slots of a state in shared memory, by the protocol at the head of [`live`](super).
//! The boards of both versions and the eureka line use them.
//!
//! * [`Encoded`]: a state that can be encoded in words; [`Slots`]: reads and commits a state.
//! * [`BoardState`]: the state of a board, which an engine advances edge by edge to the present, and whose commits are recorded;
//!   [`Core`]: slots, engine and record of a board of either version.
//! * [`Writer`]: a node's handle for commits to a board.

use super::claim::{Claim, WiresError, is_alive};
use super::shared::{Geometry, HANDS, HeadWord, Shared};
use core::sync::atomic::{AtomicU32, Ordering, fence};
use fpga_model::BadNodeCount;
use mpi_base::clock::now_ns;
use std::fmt;
use std::sync::Arc;

/// A state that can be encoded in `WORDS` words.
pub(super) trait Encoded<const WORDS: usize>: Copy {
    /// The machine in its state after power-on, built for the board's number of nodes.
    type Blank: Copy;

    /// "hwbarr" and the version of the layout; memory with another number counts as no board.
    const MAGIC: u64;

    fn blank(nodes: usize) -> Result<Self::Blank, BadNodeCount>;

    fn power_on(blank: Self::Blank) -> Self;

    fn to_words(self) -> [u64; WORDS];

    /// Decodes a state; the inverse of [`to_words`](Self::to_words).
    /// A torn copy gives a meaningless state; the caller sees that the head has changed and
    /// discards the state.
    fn from_words(blank: Self::Blank, words: &[u64; WORDS]) -> Self;
}

/// The state of a board; an engine `E` computes its clock edges.
pub(super) trait BoardState<E, const WORDS: usize>: Encoded<WORDS> {
    /// Returns the state for the next commit, without the record entries of the last one.
    fn next(self) -> Self;

    /// Computes the clock edges up to the time `now_ns`.
    fn run_until(&mut self, engine: E, now_ns: u64);

    /// Returns a number that every release changes.
    fn releases(&self) -> u64;

    /// Returns the number of record entries of all earlier commits.
    fn older_entries(&self) -> u64;

    /// Returns the time and the encoding of each record entry of this commit.
    fn entries(&self) -> impl Iterator<Item = (u64, u64)>;
}

/// The slots of a state, and the head word, which selects the current one.
#[derive(Clone, Copy)]
pub(super) struct Slots<'m, S: Encoded<WORDS>, const WORDS: usize> {
    shared: Shared<'m, WORDS>,
    geometry: Geometry,
    blank: S::Blank,
}

impl<'m, S: Encoded<WORDS>, const WORDS: usize> Slots<'m, S, WORDS> {
    pub(super) fn new(shared: Shared<'m, WORDS>, geometry: Geometry, blank: S::Blank) -> Self {
        Self {
            shared,
            geometry,
            blank,
        }
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns a machine in its state after power-on.
    pub(super) fn blank(&self) -> S::Blank {
        self.blank
    }

    /// Returns the current state, and the head value that a commit has to replace.
    pub(super) fn copy(&self) -> (HeadWord, S) {
        let (head, words) = self.shared.read::<WORDS>();
        (head, S::from_words(self.blank, &words))
    }

    /// Returns a consistent copy of the first words of the current state.
    #[inline]
    pub(super) fn first_words<const FIRST: usize>(&self) -> [u64; FIRST] {
        self.shared.read().1
    }

    /// Replaces the state that was copied with `head` by `state`. Returns true on success.
    /// The new state goes into the slot of `slots` that is not current.
    pub(super) fn commit(&self, head: HeadWord, slots: [usize; 2], state: S) -> bool {
        let [first, second] = slots;
        let slot = if head.slot() == first { second } else { first };
        self.shared.fill(slot, &state.to_words());
        self.shared.commit(head, slot)
    }

    /// Returns the claim word of an existing node.
    pub(super) fn claim(&self, node: usize) -> &'m AtomicU32 {
        self.shared.claim(node)
    }
}

/// The slots, the engine and the record of a board of either version.
#[derive(Clone, Copy)]
pub(super) struct Core<'m, S: Encoded<WORDS>, E, const WORDS: usize> {
    slots: Slots<'m, S, WORDS>,
    engine: E,
}

impl<'m, S: BoardState<E, WORDS>, E: Copy, const WORDS: usize> Core<'m, S, E, WORDS> {
    pub(super) fn new(slots: Slots<'m, S, WORDS>, engine: E) -> Self {
        Self { slots, engine }
    }

    /// Replaces the engine; every process must use the same engine.
    pub(super) fn with_engine(self, engine: E) -> Self {
        Self { engine, ..self }
    }

    pub(super) fn engine(&self) -> E {
        self.engine
    }

    pub(super) fn slots(&self) -> &Slots<'m, S, WORDS> {
        &self.slots
    }

    pub(super) fn geometry(&self) -> &Geometry {
        self.slots.geometry()
    }

    /// Returns the number of nodes with wires.
    pub(super) fn nodes(&self) -> usize {
        self.geometry().nodes
    }

    /// Returns true if changes and marks are recorded.
    pub(super) fn is_recording(&self) -> bool {
        self.geometry().capacity > 0
    }

    /// Returns the nanoseconds since the board was created.
    pub(super) fn now_ns(&self) -> u64 {
        now_ns().saturating_sub(self.geometry().origin_ns)
    }

    /// Returns the current state.
    pub(super) fn current(&self) -> S {
        self.slots.copy().1
    }

    /// Returns the present time and state, for observers.
    /// The elapsed edges are computed on a copy, and the board stays unchanged.
    pub(super) fn now(&self) -> (u64, S) {
        let mut state = self.current().next();
        let at_ns = self.now_ns();
        state.run_until(self.engine, at_ns);
        (at_ns, state)
    }

    /// Copies the entries of a commit to the record.
    fn publish(&self, state: &S) {
        if self.is_recording() {
            for (place, (at, what)) in (state.older_entries()..).zip(state.entries()) {
                self.slots.shared.write_entry(place, at, what);
            }
        }
    }

    /// Returns the record's entries that `decode` accepts, oldest first, and the number of entries
    /// that did not fit.
    pub(super) fn record<T>(&self, decode: impl Fn(u64, u64) -> Option<T>) -> (Vec<T>, u64) {
        let state = self.current();
        self.publish(&state);
        let count = state.older_entries() + state.entries().count() as u64;
        let entries = self.slots.shared.entries(count);
        let known: Vec<T> = entries.filter_map(|(at, what)| decode(at, what)).collect();
        let dropped = match self.is_recording() {
            true => count - known.len() as u64,
            false => 0,
        };
        (known, dropped)
    }

    /// Returns the nodes whose wires a living process holds, bit `n` for node `n`.
    pub(super) fn claimed(&self) -> u64 {
        let has_owner = |node: &usize| match self.slots.claim(*node).load(Ordering::Relaxed) {
            0 => false,
            pid => is_alive(pid),
        };
        let owned = (0..self.nodes()).filter(has_owner);
        owned.fold(0, |mask, node| mask | 1 << node)
    }

    /// Claims a node's slots.
    pub(super) fn take(&self, node: usize) -> Result<Arc<Claim<'m>>, WiresError> {
        let nodes = self.nodes();
        if node >= nodes {
            return Err(WiresError::NoSuchNode { node, nodes });
        }
        Ok(Arc::new(Claim::take(self.slots.claim(node), node)?))
    }

    /// Returns the handle with index `hand` of a node.
    pub(super) fn writer(
        &self,
        node: usize,
        hand: usize,
        claim: Arc<Claim<'m>>,
    ) -> Writer<'m, S, E, WORDS> {
        Writer::of(*self, node, node * HANDS + hand, claim)
    }
}

/// A node's handle for commits to a board.
pub(super) struct Writer<'m, S: Encoded<WORDS>, E, const WORDS: usize> {
    core: Core<'m, S, E, WORDS>,
    node: usize,
    /// The two slots of this handle, which only this handle writes.
    /// Hence every committing method takes `&mut self`.
    slots: [usize; 2],
    claim: Arc<Claim<'m>>,
}

impl<'m, S: BoardState<E, WORDS>, E: Copy, const WORDS: usize> fmt::Debug
    for Writer<'m, S, E, WORDS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}", self.node, self.core.nodes())
    }
}

impl<'m, S: BoardState<E, WORDS>, E: Copy, const WORDS: usize> Writer<'m, S, E, WORDS> {
    /// Returns the handle with index `writer` of the board; it drives the pin of this node.
    pub(super) fn of(
        core: Core<'m, S, E, WORDS>,
        node: usize,
        writer: usize,
        claim: Arc<Claim<'m>>,
    ) -> Self {
        Self {
            core,
            node,
            slots: Shared::<WORDS>::slots_of(writer),
            claim,
        }
    }

    /// Returns a handle on the board above, for the pin that the lower board's output drives.
    /// Holds the same claim as this handle.
    pub(super) fn above(&self, core: Core<'m, S, E, WORDS>, pin: usize, writer: usize) -> Self {
        Self::of(core, pin, writer, self.claim.clone())
    }

    pub(super) fn core(&self) -> &Core<'m, S, E, WORDS> {
        &self.core
    }

    /// Returns the number of the pin that this handle drives.
    pub(super) fn node(&self) -> usize {
        self.node
    }

    /// Steps the board to the present and applies `change`.
    /// Calls `released` if the commit contains a release.
    pub(super) fn touch(&mut self, released: &impl Fn(), change: impl Fn(&mut S, u64)) -> S {
        let core = &self.core;
        let (has_released, state) = loop {
            let (head, before) = core.slots.copy();
            // The previous writer may have died before it copied its entries to the record.
            core.publish(&before);
            // The time is read after the copy, so times in the record increase with the commits.
            let now = core.now_ns();
            let mut state = before.next();
            state.run_until(core.engine, now);
            change(&mut state, now);
            if core.slots.commit(head, self.slots, state) {
                core.publish(&state);
                break (state.releases() != before.releases(), state);
            }
        };
        if has_released {
            // Pairs with the fence of a node that announces sleep and then reads its wire:
            // either that node sees the release, or this process sees the announced sleep.
            fence(Ordering::SeqCst);
            released();
        }
        state
    }
}
