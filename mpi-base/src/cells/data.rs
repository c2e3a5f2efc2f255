//! The bytes of a cell, copied and shown as plain memory.
//!
//! Between a member's [`super::Cells::has_room`] and its `publish` no other member looks at a cell, and from there until all have finished no member writes it.
//! So its data need no atomics, which compilers move word by word, and a reader may work on them where they lie.
//! The model checker knows only atomics, so under it words are words.
//!
//! Data that go beyond a cell are cut: the caller that numbers the operations sees to it that there are none.
#![allow(unsafe_code)]

use super::FIRST;
use crate::atomic::AtomicU64;
use crate::copy::copy;

#[cfg(not(loom))]
pub use plain::{change, show};
#[cfg(loom)]
pub use words::{change, show};

/// Copies `data` to a cell, of which `room` is the beginning: last what travels with the number.
#[inline(always)]
pub fn lay(data: &[u8], room: &mut [u8]) {
    let len = data.len().min(room.len());
    let (data, room) = (&data[..len], &mut room[..len]);
    if let (Some((room, behind)), Some((data, rest))) = (
        room.split_first_chunk_mut::<FIRST>(),
        data.split_first_chunk::<FIRST>(),
    ) && !rest.is_empty()
    {
        copy(rest, behind);
        *room = *data;
    } else {
        copy(data, room);
    }
}

/// Copies `data` to byte `at` of a cell's words.
#[inline]
pub fn write(words: &[AtomicU64], at: usize, data: &[u8]) {
    change(words, at, data.len(), |room| {
        lay(&data[..room.len()], room);
    });
}

/// Copies from byte `at` of a cell's words to `out`.
#[inline]
pub fn read(words: &[AtomicU64], at: usize, out: &mut [u8]) {
    show(words, at, out.len(), |data| {
        copy(data, &mut out[..data.len()]);
    });
}

#[cfg(not(loom))]
mod plain {
    use super::AtomicU64;

    /// The part of `len` bytes at `at` that there is.
    #[inline]
    fn part(words: &[AtomicU64], at: usize, len: usize) -> (*mut u8, usize) {
        let all = size_of_val(words);
        let at = at.min(all);
        let start = words.as_ptr().cast::<u8>().cast_mut();
        (start.wrapping_add(at), len.min(all - at))
    }

    /// Calls `with` with `len` bytes from byte `at` on, where they lie.
    #[inline]
    pub fn show<T>(words: &[AtomicU64], at: usize, len: usize, with: impl FnOnce(&[u8]) -> T) -> T {
        let (start, len) = part(words, at, len);
        // SAFETY: inside of `words`; they have been seen and are not yet finished with, so by the protocol of cells no member writes them.
        with(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Calls `with` with room for `len` bytes from byte `at` on.
    #[inline]
    pub fn change<T>(
        words: &[AtomicU64],
        at: usize,
        len: usize,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let (start, len) = part(words, at, len);
        // SAFETY: inside of `words`, which may be written since they are atomics;
        // there was room and nothing has been published, so by the protocol of cells no other member looks at them.
        with(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }
}

#[cfg(loom)]
mod words {
    use super::AtomicU64;
    use crate::atomic::Ordering::Relaxed;

    const WORD: usize = size_of::<u64>();

    fn load(words: &[AtomicU64]) -> Vec<u8> {
        let word = |word: &AtomicU64| word.load(Relaxed).to_ne_bytes();
        words.iter().flat_map(word).collect()
    }

    fn part(words: &[AtomicU64], at: usize, len: usize) -> &[AtomicU64] {
        &words[at / WORD..(at + len).div_ceil(WORD).min(words.len())]
    }

    pub fn show<T>(words: &[AtomicU64], at: usize, len: usize, with: impl FnOnce(&[u8]) -> T) -> T {
        with(&load(part(words, at, len))[at % WORD..][..len])
    }

    pub fn change<T>(
        words: &[AtomicU64],
        at: usize,
        len: usize,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let part = part(words, at, len);
        let mut bytes = load(part);
        let answer = with(&mut bytes[at % WORD..][..len]);
        for (word, bytes) in part.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        answer
    }
}
