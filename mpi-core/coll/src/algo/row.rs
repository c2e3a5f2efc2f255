//! A row: the blocks of all ranks in one buffer, so that the blocks of consecutive ranks can be sent in one message.
//!
//! Equal blocks are already contiguous and are used in place;
//! other blocks are packed into temporary memory and copied to their buffers at the end.

use super::{Blocks, Buffer, bytes, copy};
use crate::Error;
use crate::datatype::RecvBuf;
use std::ops::Range;

pub struct Row<'a> {
    all: RecvBuf,
    /// The start of each rank's block in `all`, followed by the end of the last block.
    starts: Vec<i64>,
    home: Option<&'a Blocks<RecvBuf>>,
}

impl<'a> Row<'a> {
    /// Creates the row of `blocks`. At this time only the block of rank `own` contains its data.
    pub fn with(blocks: &'a Blocks<RecvBuf>, own: u32) -> Result<Row<'a>, Error> {
        let size = blocks.size();
        if let Blocks::Equal { first, .. } = blocks {
            let each = first.count();
            return Ok(Row {
                all: Buffer::with_count(first, each * i64::from(size)),
                starts: (0..=i64::from(size)).map(|rank| rank * each).collect(),
                home: None,
            });
        }
        let ends = (0..size).scan(0, |end, rank| {
            *end += blocks.of(rank).bytes();
            Some(*end)
        });
        let starts: Vec<i64> = std::iter::once(0).chain(ends).collect();
        let row = Row {
            all: bytes(blocks.bytes())?.all(),
            starts,
            home: Some(blocks),
        };
        copy(&blocks.of(own).as_send(), &row.of(own..own + 1));
        Ok(row)
    }

    /// Returns the blocks of consecutive ranks.
    pub fn of(&self, ranks: Range<u32>) -> RecvBuf {
        let at = |rank: u32| self.starts[rank as usize];
        self.all.slice(at(ranks.start)..at(ranks.end))
    }

    /// Copies all blocks to their buffers, except the block of rank `own`, which is already in its buffer.
    pub fn deliver(&self, own: u32) {
        if let Some(home) = self.home {
            for rank in (0..home.size()).filter(|rank| *rank != own) {
                copy(&self.of(rank..rank + 1).as_send(), &home.of(rank));
            }
        }
    }
}
