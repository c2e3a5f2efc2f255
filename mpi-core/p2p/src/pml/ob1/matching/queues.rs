//! A hash table of queues, one per key.

use super::key::Key;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Hasher of a 64-bit integer: multiplies and combines both halves of the product.
/// The hash does not resist deliberate collisions. This is acceptable, because the keys are ranks and tags of one program.
#[derive(Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    #[inline]
    fn write_u64(&mut self, word: u64) {
        // Fibonacci hashing: the high half of the product depends on all bits of the input.
        let product =
            u128::from(self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A hash map whose keys are hashed as one 64-bit integer.
pub type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// One queue per key; up to [`SPARE`] emptied queues are stored, so their memory is reused for other keys.
pub(super) struct Queues<T> {
    by_key: WordMap<Key, VecDeque<T>>,
    spare: Vec<VecDeque<T>>,
}

/// The maximum number of emptied queues that are stored.
const SPARE: usize = 16;

impl<T> Default for Queues<T> {
    fn default() -> Self {
        Queues {
            by_key: WordMap::default(),
            spare: Vec::new(),
        }
    }
}

impl<T> Queues<T> {
    pub(super) fn push(&mut self, key: Key, item: T) {
        let spare = &mut self.spare;
        self.by_key
            .entry(key)
            .or_insert_with(|| spare.pop().unwrap_or_default())
            .push_back(item);
    }

    pub(super) fn front(&self, key: Key) -> Option<&T> {
        self.by_key.get(&key)?.front()
    }

    pub(super) fn find(&self, key: Key, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.by_key.get(&key)?.iter().find(|item| is(item))
    }

    pub(super) fn pop(&mut self, key: Key) -> Option<T> {
        let queue = self.by_key.get_mut(&key)?;
        let item = queue.pop_front();
        self.retire_if_empty(key);
        item
    }

    /// Removes and returns the first item of a key's queue that satisfies `is`.
    pub(super) fn remove(&mut self, key: Key, is: impl Fn(&T) -> bool) -> Option<T> {
        let queue = self.by_key.get_mut(&key)?;
        let at = queue.iter().position(is)?;
        let item = queue.remove(at);
        self.retire_if_empty(key);
        item
    }

    fn retire_if_empty(&mut self, key: Key) {
        if self.by_key.get(&key).is_some_and(VecDeque::is_empty)
            && let Some(queue) = self.by_key.remove(&key)
            && self.spare.len() < SPARE
        {
            self.spare.push(queue);
        }
    }
}
