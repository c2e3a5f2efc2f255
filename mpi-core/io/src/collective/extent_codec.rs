//! Encoding of the marked ranges of an aggregator's part in a message, as a list or as a bitmap.
//!
//! A message begins with either the word [`MAP`] and the bitmap of the part,
//! or the number of ranges and the list of ranges: offset in the part and length, 4 bytes each.
//! The encoder uses the shorter encoding: at most one word plus an eighth of the part's bytes.
//! The decoder ignores ranges outside of the part or beyond the end of the message.
#![allow(unsafe_code)]

use super::bitmap::{BITS, Summary, stretches};
use super::shm_buffer::ShmBuffer;
use std::ops::Range;

/// The first word of a message with a bitmap, instead of a number of ranges.
const MAP: u64 = u64::MAX;

const WORD: usize = 8;

/// Encodes the marked ranges of a buffer. Returns an empty message if no range is marked.
pub(crate) fn encode(buffer: &ShmBuffer<'_>, summary: &Summary) -> Vec<u8> {
    if summary.count == 0 {
        return Vec::new();
    }
    let (list, map) = (summary.count * WORD, buffer.words().len() * WORD);
    let mut message = Vec::with_capacity(WORD + list.min(map) + summary.bytes);
    if map < list {
        message.extend_from_slice(&MAP.to_le_bytes());
        let words = buffer.words().map(u64::to_le_bytes);
        words.for_each(|word| message.extend_from_slice(&word));
        return message;
    }
    message.extend_from_slice(&(summary.count as u64).to_le_bytes());
    buffer.each_marked(|range| {
        let pair = [range.start as u32, range.len() as u32];
        pair.iter()
            .for_each(|number| message.extend_from_slice(&number.to_le_bytes()));
    });
    message
}

/// The ranges of a received message, which are decoded during iteration.
pub(crate) struct Extents<'m> {
    extents: &'m [u8],
    is_map: bool,
    part: usize,
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl<'m> Extents<'m> {
    /// Decodes the ranges of a message for a part of `part` bytes.
    /// Returns the ranges and the rest of the message, which is the data.
    pub fn read(message: &'m [u8], part: usize) -> (Extents<'m>, &'m [u8]) {
        let (first, rest) = message.split_at_checked(WORD).unwrap_or((&[], &[]));
        let is_map = !first.is_empty() && word(first) == MAP;
        let words = match is_map {
            true => part / BITS,
            false => usize::try_from(word(first)).unwrap_or(0),
        };
        let len = words.saturating_mul(WORD).min(rest.len() / WORD * WORD);
        let (extents, data) = rest.split_at(len);
        let extents = Extents {
            extents,
            is_map,
            part,
        };
        (extents, data)
    }

    /// Calls `each` with the ranges, in order. Stops when `each` returns false.
    pub fn each(&self, mut each: impl FnMut(Range<usize>) -> bool) {
        let mut words = self.extents.chunks_exact(WORD).map(word);
        let mut go_on = |range: Range<usize>| match each(range) {
            true => Ok(()),
            false => Err(()),
        };
        // The result is not used: an error of the closure only ends the iteration.
        let _ = match self.is_map {
            true => stretches(words, go_on),
            false => words.try_for_each(|pair| {
                let (begin, len) = ((pair as u32) as usize, (pair >> 32) as usize);
                match begin + len <= self.part && len > 0 {
                    true => go_on(begin..begin + len),
                    false => Ok(()),
                }
            }),
        };
    }

    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.each(|range| {
            summary.add(&range);
            true
        });
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::shm_buffer::len_of;

    const PART: usize = 1024;

    fn named(message: &[u8]) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        Extents::read(message, PART).0.each(|range| {
            all.push(range);
            true
        });
        all
    }

    /// Encodes these ranges as a message.
    fn about(ranges: &[Range<usize>]) -> Vec<u8> {
        let mut memory = vec![0u64; len_of(PART) / 8 + 1];
        // SAFETY: the memory is the test's and has `len_of(PART)` bytes.
        let buffer = unsafe { ShmBuffer::new(memory.as_mut_ptr().cast(), PART) };
        ranges.iter().for_each(|range| buffer.mark(range.clone()));
        encode(&buffer, &buffer.summary())
    }

    #[test]
    fn few_stretches_are_listed_and_many_are_a_map_and_both_say_the_same() {
        let few = [0..7, 100..164, 1000..1024];
        assert_eq!(about(&few).len(), 8 + 3 * 8);
        assert_eq!(named(&about(&few)), few);
        let many: Vec<_> = (0..PART / 4).map(|i| i * 4..i * 4 + 1).collect();
        assert_eq!(about(&many).len(), 8 + PART / 8);
        assert_eq!(named(&about(&many)), many);
        assert!(about(&[]).is_empty() && named(&[]).is_empty());
    }

    #[test]
    fn a_message_names_nothing_outside_of_its_part_or_itself() {
        let mut message = about(&[8..16, 1000..1024]);
        message[8 + 8..8 + 12].copy_from_slice(&1001u32.to_le_bytes());
        assert_eq!(named(&message).first(), Some(&(8..16)));
        assert_eq!(named(&message).len(), 1);
        assert_eq!(named(&message[..12]), []);
        assert_eq!(named(&[0xff; 7]), []);
        let whole = named(&[0xff; 64]);
        assert!(whole.iter().all(|range| range.end <= PART), "{whole:?}");
    }

    #[test]
    fn a_summary_knows_the_only_stretch() {
        let one = about(std::slice::from_ref(&(5..9)));
        let one = Extents::read(&one, PART).0.summary();
        assert_eq!((one.only(), one.bytes), (Some(5..9), 4));
        let two = about(&[5..9, 20..21]);
        let two = Extents::read(&two, PART).0.summary();
        assert_eq!((two.only(), two.bytes, two.span), (None, 5, 5..21));
    }
}
