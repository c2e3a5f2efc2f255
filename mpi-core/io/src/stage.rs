//! One aggregator's buffer of a collective access: a part of the file, and marks of the bytes that were touched, in shared memory.
//!
//! Ranks copy their pieces to where they belong and mark them; the aggregator, when all have met, goes through what is marked.
//! Nothing in it is trusted more than its bounds: a place outside of the part is never written, and one that is not there is never read.
#![allow(unsafe_code)]

use super::access::write_all;
use super::bits::{BITS, Summary, stretches};
use super::disk::Disk;
use super::error::IoError;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// What stands before each buffer: where the bytes end that were read.
const HEAD: usize = 64;

/// One buffer of one aggregator, in memory that lives as long as `'a`.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    base: *mut u8,
    part: usize,
    memory: PhantomData<&'a [u8]>,
}

/// The bytes of memory that a stage of so many bytes of the file takes.
pub(super) fn len_of(part: usize) -> usize {
    HEAD + part + part / 8
}

/// Marks are whole words, so a stage's bytes are a multiple of theirs.
pub(super) fn rounded(part: i64) -> usize {
    (part as usize).next_multiple_of(BITS)
}

impl<'a> Stage<'a> {
    /// The stage in so much memory from `base` on.
    ///
    /// # Safety
    /// [`len_of`] bytes from there on are memory as long as `'a`, aligned to eight bytes, and reached by stages only.
    pub(super) unsafe fn new(base: *mut u8, part: usize) -> Stage<'a> {
        Stage {
            base,
            part,
            memory: PhantomData,
        }
    }

    fn end_word(&self) -> &AtomicI64 {
        // SAFETY: the stage begins with its head, which is aligned as its memory is, and is only reached atomically.
        unsafe { &*self.base.cast::<AtomicI64>() }
    }

    /// Where the bytes end that were read, as an offset in the file.
    pub(super) fn end(&self) -> i64 {
        self.end_word().load(Relaxed)
    }

    pub(super) fn ends_at(&self, offset: i64) {
        self.end_word().store(offset, Relaxed);
    }

    fn marks(&self) -> &[AtomicU64] {
        let at = self.base.wrapping_add(HEAD + self.part);
        // SAFETY: behind the bytes of the part lie its marks, aligned since part and head are multiples of 64; they are only reached atomically.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), self.part / BITS) }
    }

    /// Copies bytes to a place of the part.
    pub(super) fn put(&self, at: usize, data: &[u8]) {
        if at > self.part || data.len() > self.part - at {
            return;
        }
        // SAFETY: the range lies in the part. Other ranks may copy to the same bytes, where a program has them write overlapping
        // pieces; each byte is then that of one of them, as the standard says.
        unsafe {
            let to = self.base.add(HEAD + at);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
    }

    /// The bytes of the part, for its aggregator alone or for all while no member writes them.
    pub(super) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        let end = range.end.min(self.part);
        let begin = range.start.min(end);
        // SAFETY: the range lies in the part, and between two meetings no member writes what is read here.
        unsafe { std::slice::from_raw_parts(self.base.add(HEAD + begin), end - begin) }
    }

    /// The first bytes of the part, for the aggregator that fills them from the file.
    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: the range lies in the part, and between two meetings its aggregator alone has access to it.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(HEAD), len.min(self.part)) }
    }

    pub(super) fn mark(&self, range: Range<usize>) {
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
        // Whole words are no other member's, or are all ones for the others too.
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

    /// The marks, word by word.
    pub(super) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.marks().iter().map(|word| word.load(Relaxed))
    }

    /// Calls `each` with the stretches that are marked, each as long as can be, until it fails.
    pub(super) fn marked<E>(
        &self,
        each: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        stretches(self.words(), each)
    }

    /// The same with what cannot fail.
    pub(super) fn each_marked(&self, mut each: impl FnMut(Range<usize>)) {
        let never = self.marked(|range| -> Result<(), Infallible> {
            each(range);
            Ok(())
        });
        match never {
            Ok(()) => {}
        }
    }

    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.each_marked(|range| summary.add(&range));
        summary
    }

    /// How many bytes of the file there are places for.
    pub(super) fn part(&self) -> usize {
        self.part
    }

    /// Writes what is marked to the file, whose byte `base` is the stage's first, and clears the marks.
    pub(super) fn write_out(&self, disk: &Disk, base: i64) -> Result<(), IoError> {
        let written = self.marked(|range| {
            let at = base + range.start as i64;
            write_all(disk, self.bytes(range), at)
        });
        self.clear();
        written
    }

    pub(super) fn clear(&self) {
        self.marks().iter().for_each(|word| word.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage in memory of the test.
    fn stage(memory: &mut [u64], part: usize) -> Stage<'_> {
        assert!(memory.len() * 8 >= len_of(part));
        // SAFETY: the memory is the test's, and long enough.
        unsafe { Stage::new(memory.as_mut_ptr().cast(), part) }
    }

    fn marked(stage: &Stage<'_>) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        stage.each_marked(|range| all.push((range.start, range.end)));
        all
    }

    #[test]
    fn what_is_marked_is_found_again_in_stretches_as_long_as_can_be() {
        let part = 4 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        assert_eq!(marked(&stage), []);
        for range in [3..5, 5..64, 64..70, 100..101, 126..130, 192..256] {
            stage.mark(range);
        }
        assert_eq!(
            marked(&stage),
            [(3, 70), (100, 101), (126, 130), (192, 256)]
        );
        stage.mark(0..256);
        assert_eq!(marked(&stage), [(0, 256)]);
        stage.clear();
        assert_eq!(marked(&stage), []);
    }

    #[test]
    fn every_range_is_found_as_it_was_marked() {
        let part = 3 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        for begin in 0..part {
            for end in begin + 1..=part {
                stage.clear();
                stage.mark(begin..end);
                assert_eq!(marked(&stage), [(begin, end)]);
            }
        }
    }

    #[test]
    fn bytes_beyond_the_part_are_not_written() {
        let part = BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        stage.put(part - 1, &[1, 2]);
        stage.put(usize::MAX, &[1]);
        stage.put(part - 1, &[7]);
        assert_eq!(stage.bytes(part - 2..part + 5), [0, 7]);
        assert_eq!(marked(&stage), []);
    }
}
