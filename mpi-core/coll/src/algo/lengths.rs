//! The byte lengths of a subtree's blocks, one `i64` per block, in a message buffer.

use super::bytes;
use crate::Error;
use crate::datatype::{RecvBuf, Scratch};
use std::ops::Range;

const WORD: i64 = size_of::<i64>() as i64;

pub struct Lengths(Scratch);

impl Lengths {
    /// Allocates the lengths of `blocks` blocks and sets them to zero.
    pub fn of(blocks: u32) -> Result<Lengths, Error> {
        let words = bytes(i64::from(blocks) * WORD)?;
        let zeros = vec![0; blocks as usize * WORD as usize];
        words.all().unpack_at(0, &zeros);
        Ok(Lengths(words))
    }

    pub fn set(&self, block: u32, len: i64) {
        self.space(block..block + 1)
            .unpack_at(0, &len.to_ne_bytes());
    }

    /// Returns the lengths of consecutive blocks as a receive buffer.
    pub fn space(&self, blocks: Range<u32>) -> RecvBuf {
        let at = |block: u32| i64::from(block) * WORD;
        self.0.recv(at(blocks.start)..at(blocks.end))
    }

    /// Returns the offset in bytes of each block in a message with all blocks, followed by their total length.
    /// A negative (invalid) length from another rank counts as zero.
    pub fn starts(&self) -> Vec<i64> {
        let words = self.0.all().as_send().to_vec();
        let lens = words.as_chunks().0.iter().map(|w| i64::from_ne_bytes(*w));
        let ends = lens.scan(0i64, |end, len| {
            *end = end.saturating_add(len.max(0));
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }
}
