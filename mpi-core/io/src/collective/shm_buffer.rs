//! The shared-memory buffer of an aggregator: one part of the file, and a bitmap of its used bytes.
//!
//! Ranks copy their pieces to the matching offsets and mark the copied bytes in the bitmap.
//! After a barrier the aggregator writes the marked ranges, or sends them.
//! All accesses are bounds-checked: no method reads or writes outside of the part.
#![allow(unsafe_code)]

use super::bitmap::{BITS, Summary, stretches};
use crate::access::write_all;
use crate::disk::Disk;
use crate::error::IoError;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The size in bytes of the header before each buffer.
/// The header contains the file offset at which the data read from the file end.
const HEAD: usize = 64;

/// One buffer of one aggregator, in memory that lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct ShmBuffer<'a> {
    base: *mut u8,
    part: usize,
    memory: PhantomData<&'a [u8]>,
}

/// Returns the size in memory, in bytes, of a buffer for `part` bytes of the file.
pub(crate) fn len_of(part: usize) -> usize {
    HEAD + part + part / 8
}

/// Rounds `part` up to a multiple of the bits in a word of the bitmap.
pub(crate) fn rounded(part: i64) -> usize {
    (part as usize).next_multiple_of(BITS)
}

impl<'a> ShmBuffer<'a> {
    /// Creates a handle of the buffer in the memory from `base` on.
    ///
    /// # Safety
    /// The [`len_of`] bytes from `base` on are valid memory during `'a`, aligned to 8 bytes.
    /// These bytes are only accessed through values of this type.
    pub(crate) unsafe fn new(base: *mut u8, part: usize) -> ShmBuffer<'a> {
        ShmBuffer {
            base,
            part,
            memory: PhantomData,
        }
    }

    fn end_word(&self) -> &AtomicI64 {
        // SAFETY: the buffer begins with its header, aligned to eight bytes by the contract of `new`, and this word is only accessed atomically.
        unsafe { &*self.base.cast::<AtomicI64>() }
    }

    /// Returns the file offset at which the data read from the file end.
    pub(crate) fn end(&self) -> i64 {
        self.end_word().load(Relaxed)
    }

    pub(crate) fn ends_at(&self, offset: i64) {
        self.end_word().store(offset, Relaxed);
    }

    fn marks(&self) -> &[AtomicU64] {
        let at = self.base.wrapping_add(HEAD + self.part);
        // SAFETY: the bitmap follows the bytes of the part, inside `len_of` bytes by the contract of `new`, and is aligned, since header and part are multiples of 64; it is only accessed atomically.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), self.part / BITS) }
    }

    /// Copies `data` to offset `at` of the part.
    pub(crate) fn put(&self, at: usize, data: &[u8]) {
        if at > self.part || data.len() > self.part - at {
            return;
        }
        // SAFETY: the range was checked to be inside the part. Other ranks may copy to the same
        // bytes if the program writes overlapping pieces.
        // Each byte then has one of the written values, as the MPI standard allows.
        unsafe {
            let to = self.base.add(HEAD + at);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
    }

    /// Returns the bytes `range` of this aggregator's part of the file, truncated to the part.
    /// Only the aggregator may call this, and only when no other member writes to the buffer.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        let end = range.end.min(self.part);
        let begin = range.start.min(end);
        // SAFETY: the range is clamped to the part, and the barriers of a round ([`super::shm_aggregation`]) separate these reads from all writes.
        unsafe { std::slice::from_raw_parts(self.base.add(HEAD + begin), end - begin) }
    }

    /// Returns the first `len` bytes of the part, which the aggregator fills from the file.
    pub(crate) fn up_to(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: the range is clamped to the part; between two barriers only the aggregator
        // accesses the buffer.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(HEAD), len.min(self.part)) }
    }

    pub(crate) fn mark(&self, range: Range<usize>) {
        let marks = self.marks();
        let (first, last) = (range.start / BITS, range.end / BITS);
        let head = !0u64 << (range.start % BITS);
        let tail = match range.end % BITS {
            0 => 0,
            bits => !0u64 >> (BITS - bits),
        };
        if first == last {
            marks[first].fetch_or(head & tail, Relaxed);
            return;
        }
        // Words inside the range become all ones, the only value that other members store in them.
        match range.start % BITS {
            0 => marks[first].store(!0, Relaxed),
            _ => drop(marks[first].fetch_or(head, Relaxed)),
        }
        marks[first + 1..last]
            .iter()
            .for_each(|word| word.store(!0, Relaxed));
        if tail != 0 {
            marks[last].fetch_or(tail, Relaxed);
        }
    }

    /// Returns the words of the bitmap.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.marks().iter().map(|word| word.load(Relaxed))
    }

    /// Calls `each` with the maximal marked ranges. Stops at the first error of `each`.
    pub(crate) fn marked<E>(
        &self,
        each: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        stretches(self.words(), each)
    }

    /// Calls `each` with the maximal marked ranges.
    pub(crate) fn each_marked(&self, mut each: impl FnMut(Range<usize>)) {
        let never = self.marked(|range| -> Result<(), Infallible> {
            each(range);
            Ok(())
        });
        match never {
            Ok(()) => {}
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.each_marked(|range| summary.add(&range));
        summary
    }

    /// Returns the number of bytes of the file for which the buffer has space.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// Writes the marked ranges to the file and clears the marks.
    /// `base` is the file offset of the buffer's first byte.
    pub(crate) fn write_out(&self, disk: &Disk, base: i64) -> Result<(), IoError> {
        let written = self.marked(|range| {
            let at = base + range.start as i64;
            write_all(disk, self.bytes(range), at)
        });
        self.clear();
        written
    }

    pub(crate) fn clear(&self) {
        self.marks().iter().for_each(|word| word.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a buffer in `memory`, which belongs to the test.
    fn buffer(memory: &mut [u64], part: usize) -> ShmBuffer<'_> {
        assert!(memory.len() * 8 >= len_of(part));
        // SAFETY: the test owns the memory, and the assertion checks its length.
        unsafe { ShmBuffer::new(memory.as_mut_ptr().cast(), part) }
    }

    fn marked(buffer: &ShmBuffer<'_>) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        buffer.each_marked(|range| all.push((range.start, range.end)));
        all
    }

    #[test]
    fn marked_ranges_are_found_as_maximal_stretches() {
        let part = 4 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let buffer = buffer(&mut memory, part);
        assert_eq!(marked(&buffer), []);
        for range in [3..5, 5..64, 64..70, 100..101, 126..130, 192..256] {
            buffer.mark(range);
        }
        assert_eq!(
            marked(&buffer),
            [(3, 70), (100, 101), (126, 130), (192, 256)]
        );
        buffer.mark(0..256);
        assert_eq!(marked(&buffer), [(0, 256)]);
        buffer.clear();
        assert_eq!(marked(&buffer), []);
    }

    #[test]
    fn each_marked_range_is_found() {
        let part = 3 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let buffer = buffer(&mut memory, part);
        for begin in 0..part {
            for end in begin + 1..=part {
                buffer.clear();
                buffer.mark(begin..end);
                assert_eq!(marked(&buffer), [(begin, end)]);
            }
        }
    }

    #[test]
    fn bytes_beyond_the_part_are_not_written() {
        let part = BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let buffer = buffer(&mut memory, part);
        buffer.put(part - 1, &[1, 2]);
        buffer.put(usize::MAX, &[1]);
        buffer.put(part - 1, &[7]);
        assert_eq!(buffer.bytes(part - 2..part + 5), [0, 7]);
        assert_eq!(marked(&buffer), []);
    }
}
