//! Matching: which receive takes which message (MPI 5.0, section 3.5).
//!
//! Promise: a message goes to the earliest posted receive that accepts it, and a receive takes the earliest arrived message it accepts;
//! both cost the same whether one or ten thousand wait.
//!
//! Every receive has a key made of its source and tag, wildcards included, so posted receives of one key are a queue in one hash table.
//! A message can only match four keys: (s, t), (s, any), (any, t), (any, any);
//! the smallest posting number among the heads of those queues wins.
//! Unexpected messages are indexed by (s, t); the three wildcard indexes are built when the first wildcard asks and dropped when they grow stale.
//! When all posted receives have one key, as in a ping-pong or a stream, no table is touched at all.

mod posted;
#[cfg(test)]
mod tests;
mod unexpected;

pub use posted::Posted;
pub use unexpected::Unexpected;

use crate::request::{ANY_SOURCE, ANY_TAG};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A source and a tag, each possibly a wildcard, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// Of a message with the sender's rank, of a receive also with `ANY_SOURCE` and `ANY_TAG`.
    #[inline]
    pub fn new(source: i32, tag: i32) -> Key {
        Key(u64::from(source as u32) << 32 | u64::from(tag as u32))
    }

    /// A rank in the communicator, or `ANY_SOURCE`.
    pub fn source(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// What the program named it, or `ANY_TAG`.
    pub fn tag(self) -> i32 {
        self.0 as i32
    }

    /// Which of the four forms this key has: bit 0 for any source, bit 1 for any tag.
    #[inline]
    fn form(self) -> usize {
        usize::from(self.source() == ANY_SOURCE) | usize::from(self.tag() == ANY_TAG) << 1
    }

    /// Whether it names one source and one tag.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.form() == 0
    }

    /// This message's key in one of the four forms.
    #[inline]
    fn widened(self, form: usize) -> Key {
        let source = if form & 1 != 0 {
            ANY_SOURCE
        } else {
            self.source()
        };
        let tag = if form & 2 != 0 { ANY_TAG } else { self.tag() };
        Key::new(source, tag)
    }

    /// Whether a receive with this key takes a message with that one.
    #[inline]
    pub fn accepts(self, message: Key) -> bool {
        self == message
            || (self.source() == message.source() || self.source() == ANY_SOURCE)
                && (self.tag() == message.tag() || self.tag() == ANY_TAG)
    }
}

const FORMS: usize = 4;

/// Hashes one word by a multiplication and a fold; keys come from this program's ranks and tags, not from strangers.
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
        // Fibonacci hashing; the high half of the product is the well-mixed one.
        let product =
            u128::from(self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A hash map from one word.
pub type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Queues by key; an emptied queue's memory is kept for the next key.
struct Queues<T> {
    by_key: WordMap<Key, VecDeque<T>>,
    spare: Vec<VecDeque<T>>,
}

/// How many emptied queues are kept.
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
    fn push(&mut self, key: Key, item: T) {
        let spare = &mut self.spare;
        self.by_key
            .entry(key)
            .or_insert_with(|| spare.pop().unwrap_or_default())
            .push_back(item);
    }

    fn front(&self, key: Key) -> Option<&T> {
        self.by_key.get(&key)?.front()
    }

    fn find(&self, key: Key, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.by_key.get(&key)?.iter().find(|item| is(item))
    }

    fn pop(&mut self, key: Key) -> Option<T> {
        let queue = self.by_key.get_mut(&key)?;
        let item = queue.pop_front();
        self.retire_if_empty(key);
        item
    }

    /// Removes the first item that `is` names.
    fn remove(&mut self, key: Key, is: impl Fn(&T) -> bool) -> Option<T> {
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
