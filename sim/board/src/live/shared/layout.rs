//! The memory layout of a live board, and the atomic accesses to the memory.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use fpga_model::MAX_NODES;
use std::ptr::NonNull;

/// Number of handles of one node: the wire to the barrier, the wire from the barrier,
/// the recorder of the program's entries and exits (`NodeMarks`), and the recorder of the node's wire to the eureka line.
pub(in crate::live) const HANDS: usize = 4;
/// Maximum number of handles whose slots the head word can index.
pub(in crate::live) const MOST_HANDS: usize = (1 << (SLOT_BITS - 1)) - 1;

/// The required alignment of the memory; every page is aligned to it.
pub(super) const ALIGN: usize = align_of::<Header>();

/// A slot, aligned to two cache lines, because the prefetcher fetches lines in pairs.
#[repr(C, align(128))]
struct Slot<const WORDS: usize>([AtomicU64; WORDS]);

#[repr(C, align(128))]
struct Head(AtomicU64);

/// One event of the record: its time, and its encoding (zero if the entry was not written).
#[repr(C)]
struct Entry {
    at_ns: AtomicU64,
    what: AtomicU64,
}

#[repr(C, align(128))]
pub(super) struct Header {
    magic: AtomicU64,
    nodes: AtomicU64,
    capacity: AtomicU64,
    origin_ns: AtomicU64,
    writers: AtomicU64,
    /// The board's position in a tree; see [`Geometry::tree`].
    tree: [AtomicU64; 2],
    /// Version in the upper 48 bits, index of the current slot in the lower 16.
    head: Head,
    /// The process that owns the wires of each node, or zero.
    claims: [AtomicU32; MAX_NODES],
}

const SLOT_BITS: u32 = 16;

/// The head word: the index of the current slot, and the version, which counts the commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::live) struct HeadWord(u64);

impl HeadWord {
    pub(in crate::live) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    fn successor(self, slot: usize) -> Self {
        Self(((self.0 >> SLOT_BITS) + 1) << SLOT_BITS | slot as u64)
    }
}

/// The parameters of a board; constant while it exists.
#[derive(Clone, Copy)]
pub(in crate::live) struct Geometry {
    pub nodes: usize,
    /// Number of handles that may commit: [`HANDS`] per node.
    /// A tree's board that is not a leaf has one handle for each node of the tree.
    pub writers: usize,
    pub capacity: usize,
    pub origin_ns: u64,
    /// Word 0 is the tree's number of nodes; word 1 is the number of leaf boards,
    /// in the first board.
    /// Both are 0 for a board that is not in a tree; word 1 is 0 for all boards except the first.
    pub tree: [usize; 2],
}

impl Geometry {
    /// Returns the number of slots: slot 0 for the state after power-on, and two for each handle.
    const fn slots(writers: usize) -> usize {
        1 + writers * 2
    }

    /// Returns the size of a board of this geometry in bytes; `None` if it exceeds the address space.
    pub(in crate::live) fn size<const WORDS: usize>(
        writers: usize,
        capacity: usize,
    ) -> Option<usize> {
        if writers > MOST_HANDS {
            return None;
        }
        let slots = Self::slots(writers) * size_of::<Slot<WORDS>>();
        capacity
            .checked_mul(size_of::<Entry>())?
            .checked_add(size_of::<Header>() + slots)
    }
}

/// References to the parts of a board's memory; a state has `WORDS` words.
#[derive(Clone, Copy)]
pub(in crate::live) struct Shared<'m, const WORDS: usize> {
    header: &'m Header,
    slots: &'m [Slot<WORDS>],
    entries: &'m [Entry],
}

impl<'m, const WORDS: usize> Shared<'m, WORDS> {
    /// Initialises a board with this magic number, in memory that contains no board in use.
    ///
    /// # Safety
    /// `base` is aligned to [`ALIGN`] and valid for reads and writes of `Geometry::size` bytes for `'m`,
    /// and during `'m` the memory is accessed by this module only.
    pub(in crate::live) unsafe fn init(
        base: NonNull<u8>,
        magic: u64,
        geometry: Geometry,
        power_on: &[u64; WORDS],
    ) -> Self {
        // SAFETY: the caller's contract includes that of `views`:
        // alignment, size, access only by this module.
        let shared: Self = unsafe { Self::views(base, geometry.writers, geometry.capacity) };
        let header = shared.header;
        header.magic.store(0, Ordering::Relaxed);
        header.nodes.store(geometry.nodes as u64, Ordering::Relaxed);
        header
            .writers
            .store(geometry.writers as u64, Ordering::Relaxed);
        header
            .capacity
            .store(geometry.capacity as u64, Ordering::Relaxed);
        header
            .origin_ns
            .store(geometry.origin_ns, Ordering::Relaxed);
        for (place, count) in header.tree.iter().zip(geometry.tree) {
            place.store(count as u64, Ordering::Relaxed);
        }
        header.head.0.store(0, Ordering::Relaxed);
        header
            .claims
            .iter()
            .for_each(|claim| claim.store(0, Ordering::Relaxed));
        shared
            .entries
            .iter()
            .for_each(|entry| entry.what.store(0, Ordering::Relaxed));
        shared.fill(0, power_on);
        // Pairs with the Acquire in `attach`:
        // a process that reads the magic number finds the board initialised.
        header.magic.store(magic, Ordering::Release);
        shared
    }

    /// Attaches to a board that another process has initialised in these `len` bytes.
    /// Returns `None` if there is no board yet.
    ///
    /// # Safety
    /// The contract of [`init`](Self::init), with `len` bytes.
    pub(in crate::live) unsafe fn attach(
        base: NonNull<u8>,
        len: usize,
        magic: u64,
    ) -> Option<(Self, Geometry)> {
        if len < size_of::<Header>() {
            return None;
        }
        // SAFETY: `base` is valid for `len` bytes by this function's contract,
        // and `len` covers a header;
        // every bit pattern is a valid header.
        let header: &'m Header = unsafe { base.cast().as_ref() };
        // Pairs with the Release store of the magic number in `init`, so the header is complete.
        if header.magic.load(Ordering::Acquire) != magic {
            return None;
        }
        let nodes = header.nodes.load(Ordering::Relaxed) as usize;
        let writers = header.writers.load(Ordering::Relaxed) as usize;
        let capacity = header.capacity.load(Ordering::Relaxed) as usize;
        let origin_ns = header.origin_ns.load(Ordering::Relaxed);
        let tree = header
            .tree
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed) as usize);
        // The sizes are checked, because another process may have written invalid ones.
        if nodes == 0 || nodes > MAX_NODES || Geometry::size::<WORDS>(writers, capacity)? > len {
            return None;
        }
        // SAFETY: the condition above ensures that a board of this geometry fits in the `len`
        // bytes.
        let shared = unsafe { Self::views(base, writers, capacity) };
        Some((
            shared,
            Geometry {
                nodes,
                writers,
                capacity,
                origin_ns,
                tree,
            },
        ))
    }

    /// # Safety
    /// The contract of [`init`](Self::init).
    unsafe fn views(base: NonNull<u8>, writers: usize, capacity: usize) -> Self {
        let slots = Geometry::slots(writers);
        // SAFETY: header, slots and entries follow each other within the size that the caller
        // guarantees.
        // The header's size is a multiple of the slots' alignment,
        // and the slots' size is a multiple of the entries' alignment.
        // All fields are atomics, so they may change while this process holds
        // shared references to them, and every bit pattern is a valid value.
        unsafe {
            let first_slot = base.add(size_of::<Header>()).cast::<Slot<WORDS>>();
            let first_entry = first_slot.add(slots).cast::<Entry>();
            Self {
                header: base.cast().as_ref(),
                slots: NonNull::slice_from_raw_parts(first_slot, slots).as_ref(),
                entries: NonNull::slice_from_raw_parts(first_entry, capacity).as_ref(),
            }
        }
    }

    /// Returns the two slots of a handle.
    pub(in crate::live) fn slots_of(writer: usize) -> [usize; 2] {
        let first = 1 + writer * 2;
        [first, first + 1]
    }

    /// Returns a consistent copy of the first `FIRST` words of the current slot.
    #[inline]
    pub(in crate::live) fn read<const FIRST: usize>(&self) -> (HeadWord, [u64; FIRST]) {
        loop {
            // Pairs with the Release of `commit`, so the words of the current slot are visible.
            let head = HeadWord(self.header.head.0.load(Ordering::Acquire));
            // Only a process that violates the protocol can write a head with a nonexistent slot.
            let Slot(words) = self.slots.get(head.slot()).unwrap_or(&self.slots[0]);
            let copy = std::array::from_fn(|i| words[i].load(Ordering::Relaxed));
            // Pairs with the fence in `fill`. If a word came from a later use of the slot,
            // the second load sees the newer head, and the copy is discarded.
            fence(Ordering::Acquire);
            if self.header.head.0.load(Ordering::Relaxed) == head.0 {
                return (head, copy);
            }
        }
    }

    /// Writes a state into a slot that is not current.
    pub(in crate::live) fn fill(&self, slot: usize, words: &[u64; WORDS]) {
        // Pairs with the fence in `read`: a reader that loads one of these words then also sees
        // a head that names another slot, as this handle has read it.
        fence(Ordering::Release);
        for (place, word) in self.slots[slot].0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    /// Makes `slot` the current slot if the head is still `seen`; returns true on success.
    pub(in crate::live) fn commit(&self, seen: HeadWord, slot: usize) -> bool {
        let next = seen.successor(slot);
        let head = &self.header.head.0;
        // Release publishes the slot and the entries written before; Acquire orders the next `fill`
        // after this exchange.
        head.compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Stores an event in the record.
    /// An event beyond the record's end is not stored; the caller's state counts it.
    pub(in crate::live) fn write_entry(&self, place: u64, at_ns: u64, what: u64) {
        if let Some(entry) = usize::try_from(place)
            .ok()
            .and_then(|place| self.entries.get(place))
        {
            entry.at_ns.store(at_ns, Ordering::Relaxed);
            entry.what.store(what, Ordering::Relaxed);
        }
    }

    /// Returns the first `count` entries, which were written before the commit that the caller
    /// read.
    pub(in crate::live) fn entries(
        &self,
        count: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<'m, WORDS> {
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.entries.len());
        self.entries[..count].iter().map(|entry| {
            (
                entry.at_ns.load(Ordering::Relaxed),
                entry.what.load(Ordering::Relaxed),
            )
        })
    }

    /// Returns the claim word of an existing node.
    pub(in crate::live) fn claim(&self, node: usize) -> &'m AtomicU32 {
        &self.header.claims[node]
    }
}
