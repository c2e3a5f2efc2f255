//! A pool of buffers for unexpected messages.
//!
//! If a sender sends a series of messages before their receives are posted, the receiver buffers
//! all these messages. The C library returns this memory to the system when the last buffer is freed.
//! The next series then causes a page fault per page. These faults took half of the time of a
//! bidirectional stream of 16 KiB messages.

use std::cell::{Cell, RefCell};

/// The size of the smallest pooled buffer, in bytes; the C library caches smaller ones itself.
const SHORTEST: usize = 4 << 10;
/// The maximum size of the pool in bytes.
const MOST: usize = 4 << 20;
/// The maximum number of pooled buffers that are examined for one with sufficient capacity.
const LOOKS: usize = 8;

#[derive(Default)]
pub(super) struct BufferPool {
    free: RefCell<Vec<Vec<u8>>>,
    bytes: Cell<usize>,
}

impl BufferPool {
    /// Returns an empty buffer with capacity for `len` bytes.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        if len < SHORTEST {
            return Vec::with_capacity(len);
        }
        let mut free = self.free.borrow_mut();
        let fits = |memory: &Vec<u8>| memory.capacity() >= len;
        let Some(behind) = free.iter().rev().take(LOOKS).position(fits) else {
            return Vec::with_capacity(len.next_power_of_two());
        };
        let at = free.len() - 1 - behind;
        let memory = free.swap_remove(at);
        self.bytes.set(self.bytes.get() - memory.capacity());
        memory
    }

    /// Returns a buffer to the pool, or frees it if the pool is full.
    pub(super) fn give(&self, mut memory: Vec<u8>) {
        let bytes = self.bytes.get() + memory.capacity();
        if memory.capacity() >= SHORTEST && bytes <= MOST {
            memory.clear();
            self.bytes.set(bytes);
            self.free.borrow_mut().push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_empty_and_long_enough() {
        let buffer_pool = BufferPool::default();
        let mut first = buffer_pool.take(20_000);
        first.extend_from_slice(&[7; 20_000]);
        let place = first.as_ptr();
        buffer_pool.give(first);
        buffer_pool.give(buffer_pool.take(5_000));
        let long = buffer_pool.take(30_000);
        assert_eq!((long.as_ptr(), long.len()), (place, 0));
        assert!(buffer_pool.take(32_000).capacity() >= 32_000);
    }

    #[test]
    fn no_more_is_held_than_a_bound_and_nothing_short() {
        let buffer_pool = BufferPool::default();
        for len in [100_000; 100].into_iter().chain([100; 100]) {
            buffer_pool.give(Vec::with_capacity(len));
        }
        let held: usize = buffer_pool.free.borrow().iter().map(Vec::capacity).sum();
        assert_eq!(held, buffer_pool.bytes.get());
        assert!((MOST - 100_000..=MOST).contains(&held), "{held}");
        while buffer_pool.bytes.get() > 0 {
            assert!(buffer_pool.take(SHORTEST).capacity() >= 100_000);
        }
    }
}
