//! Copying and borrowing the bytes of a cell as plain memory.
//!
//! Between a member's [`super::Cells::has_room`] and its `publish`, no other member reads the cell.
//! From then until all members have finished, no member writes the cell.
//! So the data need no atomics, which compilers copy word by word,
//! and a reader can use the data in place.
//! The model checker tracks only atomics, so under loom the data are accessed as atomic words.
//!
//! An access past the end of a cell is truncated to the cell.
//! The caller that assigns the numbers (in `mpi-core/coll`) chooses cells that are long enough.
//! So no access is truncated.
#![allow(unsafe_code)]

use super::FIRST;
use crate::atomic::AtomicU64;
use crate::copy::copy;

#[cfg(not(loom))]
pub use plain::{change, show};
#[cfg(loom)]
pub use words::{change, show};

/// Copies `data` to `buffer`, the data bytes of a cell.
/// The bytes in the cache line of the operation number are written last.
#[inline(always)]
pub fn lay(data: &[u8], buffer: &mut [u8]) {
    let len = data.len().min(buffer.len());
    let (data, buffer) = (&data[..len], &mut buffer[..len]);
    if let (Some((buffer, behind)), Some((data, rest))) = (
        buffer.split_first_chunk_mut::<FIRST>(),
        data.split_first_chunk::<FIRST>(),
    ) && !rest.is_empty()
    {
        copy(rest, behind);
        *buffer = *data;
    } else {
        copy(data, buffer);
    }
}

/// Copies `data` to a cell's words, from byte `at` on.
#[inline]
pub fn write(words: &[AtomicU64], at: usize, data: &[u8]) {
    change(words, at, data.len(), |buffer| {
        lay(&data[..buffer.len()], buffer);
    });
}

/// Copies a cell's bytes from byte `at` on to `out`, which determines the length.
#[inline]
pub fn read(words: &[AtomicU64], at: usize, out: &mut [u8]) {
    show(words, at, out.len(), |data| {
        copy(data, &mut out[..data.len()]);
    });
}

#[cfg(not(loom))]
mod plain {
    use super::AtomicU64;

    /// Returns the address of byte `at` and the length `len`, truncated to the words' length.
    #[inline]
    fn part(words: &[AtomicU64], at: usize, len: usize) -> (*mut u8, usize) {
        let all = size_of_val(words);
        let at = at.min(all);
        let start = words.as_ptr().cast::<u8>().cast_mut();
        (start.wrapping_add(at), len.min(all - at))
    }

    /// Calls `with` on `len` bytes of a cell from byte `at` on, without a copy.
    #[inline]
    pub fn show<T>(words: &[AtomicU64], at: usize, len: usize, with: impl FnOnce(&[u8]) -> T) -> T {
        let (start, len) = part(words, at, len);
        // SAFETY: `part` stays within `words`. By the contract of `Cells::inspect` and
        // `Cells::read` the caller has seen the data and has not finished the operation,
        // so no member writes them.
        with(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Calls `with` on `len` bytes of a cell from byte `at` on, for writing.
    #[inline]
    pub fn change<T>(
        words: &[AtomicU64],
        at: usize,
        len: usize,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let (start, len) = part(words, at, len);
        // SAFETY: `part` stays within `words`, which may be written since they are atomics.
        // By the contract of `Cells::fill` and `Cells::compose` the cell has space and is not
        // published, so no other member accesses it.
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
