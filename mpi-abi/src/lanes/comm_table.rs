//! The lanes of communicators, by handle: a table that is read without a lock.
//!
//! The table has two levels, so that its memory grows with the highest handle.
//! A word holds a handle and its lane; a reader compares the handle.
//!
//! Protocol: only a thread that holds lock 0 writes.
//! It stores a new chunk of words, and then publishes the chunk's address (Release).
//! A word is stored before the program gets the handle, and cleared when the handle is freed.
//! A thread that uses the handle has got it from the thread that created it,
//! so it sees the word at least as it was then. No chunk is freed.

use super::Address;
use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Release},
};

const CHUNKS: usize = 1 << 10;
const WORDS: usize = 1 << 10;

/// The bits of a word: 31 bits of handle, 3 bits of lane, and the slot.
const LANE_SHIFT: u32 = 32;
const SLOT_SHIFT: u32 = 36;

type Chunk = [AtomicU64; WORDS];

/// The lanes of communicators, by handle.
pub(super) struct CommTable {
    chunks: [AtomicPtr<Chunk>; CHUNKS],
}

impl CommTable {
    pub const fn new() -> CommTable {
        CommTable {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
        }
    }

    /// Returns the word of a handle, if its chunk exists.
    #[inline]
    fn word(&self, handle: usize) -> Option<&AtomicU64> {
        let chunk = self.chunks[handle / WORDS % CHUNKS].load(Acquire);
        // SAFETY: the pointer is null or that of a leaked chunk, whose words were stored before.
        let chunk = unsafe { chunk.as_ref() }?;
        Some(&chunk[handle % WORDS])
    }

    /// Returns the lane of a communicator, or `None` if it has none.
    #[inline]
    pub fn find(&self, handle: usize) -> Option<Address> {
        // SYNC POINT lanes.comm
        let word = self.word(handle)?.load(Acquire);
        (word as u32 as usize == handle && handle != 0).then_some(Address {
            lane: (word >> LANE_SHIFT & 7) as usize,
            slot: (word >> SLOT_SHIFT) as usize,
        })
    }

    /// Stores the lane of a new communicator. The caller holds lock 0.
    pub fn set(&self, handle: usize, address: Address) {
        let place = &self.chunks[handle / WORDS % CHUNKS];
        if place.load(Acquire).is_null() {
            let chunk: Box<Chunk> = Box::new([const { AtomicU64::new(0) }; WORDS]);
            place.store(Box::leak(chunk), Release);
        }
        if let Some(word) = self.word(handle) {
            let (lane, slot) = (address.lane as u64, address.slot as u64);
            // SYNC POINT lanes.comm
            word.store(
                handle as u64 | lane << LANE_SHIFT | slot << SLOT_SHIFT,
                Release,
            );
        }
    }

    /// Removes a communicator. The caller holds lock 0.
    pub fn remove(&self, handle: usize) {
        if let Some(word) = self.word(handle) {
            word.store(0, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{Kind, make};

    #[test]
    fn a_handle_finds_its_lane_until_it_is_removed_and_no_other_handle_does() {
        static TABLE: CommTable = CommTable::new();
        let handle = |generation, index| make(Kind::Comm, generation, index);
        let address = Address {
            lane: 7,
            slot: 123_456,
        };
        assert_eq!(TABLE.find(handle(1, 5)), None);
        TABLE.set(handle(1, 5), address);
        TABLE.set(handle(0, (1 << 20) - 1), Address { lane: 1, slot: 0 });
        assert_eq!(TABLE.find(handle(1, 5)), Some(address));
        for other in [handle(2, 5), handle(1, 6), 5, 0, usize::MAX] {
            assert_eq!(TABLE.find(other), None, "{other:#x}");
        }
        TABLE.remove(handle(1, 5));
        assert_eq!(TABLE.find(handle(1, 5)), None);
    }
}
