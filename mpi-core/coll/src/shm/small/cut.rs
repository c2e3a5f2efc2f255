//! The same byte range of each of several blocks, as one operand to read or write.

use super::data::{CopyTo, Given, Target};
use crate::algo::Buffer;
use crate::datatype::{RecvBuf, SendBuf};
use std::ops::Range;

/// A piece (the same byte range) of each of several contiguous blocks; when packed, a row of these pieces.
#[derive(Clone)]
pub struct Cut<B> {
    buf: B,
    /// Offset of the first piece in the packed blocks, and the distance between pieces, in bytes.
    first: usize,
    step: usize,
    /// The length of a piece in bytes, and the number of pieces.
    len: usize,
    blocks: usize,
}

impl<B: Buffer> Cut<B> {
    /// Returns the byte range `piece` of a block, truncated to the block's length.
    pub fn of(block: &B, piece: &Range<usize>) -> Cut<B> {
        Cut::of_each(block, piece, 1)
    }

    /// Returns the byte range `piece` of each of `blocks` contiguous blocks, of which `first` is the first.
    pub fn of_each(first: &B, piece: &Range<usize>, blocks: u32) -> Cut<B> {
        let bytes = first.bytes() as usize;
        let (start, end) = (piece.start.min(bytes), piece.end.min(bytes));
        Cut {
            buf: first.with_count(first.count() * i64::from(blocks)),
            first: start,
            step: bytes,
            len: end - start,
            blocks: blocks as usize,
        }
    }

    /// Returns the length of a piece in bytes.
    pub fn each(&self) -> usize {
        self.len
    }

    fn starts(&self) -> impl Iterator<Item = i64> + use<B> {
        let (first, step) = (self.first, self.step);
        (0..self.blocks).map(move |block| (first + block * step) as i64)
    }

    /// Returns some whole pieces, or a part of one piece; `at` and `len` are in bytes of the packed pieces.
    fn cut(&self, at: usize, len: usize) -> Cut<B> {
        let piece = self.len.max(1);
        let (len, blocks) = match len <= self.len {
            true => (len, 1),
            false => (self.len, len / piece),
        };
        Cut {
            buf: self.buf.clone(),
            first: self.first + at / piece * self.step + at % piece,
            step: self.step,
            len,
            blocks,
        }
    }
}

impl Given for Cut<SendBuf> {
    fn bytes(&self) -> usize {
        self.len * self.blocks
    }

    fn pack(&self, buffer: &mut [u8]) {
        if self.len == self.step {
            self.buf.pack_at(self.first as i64, buffer);
            return;
        }
        for (at, buffer) in self.starts().zip(buffer.chunks_mut(self.len.max(1))) {
            self.buf.pack_at(at, buffer);
        }
    }

    fn run(&self) -> Option<&[u8]> {
        let all = self.buf.contiguous()?;
        all.get(self.first..self.first + self.len)
            .filter(|_| self.blocks == 1)
    }

    fn part(&self, at: usize, len: usize) -> Self {
        self.cut(at, len)
    }
}

impl Given for Cut<RecvBuf> {
    fn bytes(&self) -> usize {
        self.len * self.blocks
    }

    fn pack(&self, buffer: &mut [u8]) {
        let read = Cut {
            buf: self.buf.as_send(),
            first: self.first,
            step: self.step,
            len: self.len,
            blocks: self.blocks,
        };
        read.pack(buffer);
    }

    fn run(&self) -> Option<&[u8]> {
        None
    }

    fn part(&self, at: usize, len: usize) -> Self {
        self.cut(at, len)
    }
}

impl Target for Cut<RecvBuf> {
    fn take(&self, data: &[u8]) {
        let mut buf = self.buf.clone();
        for (at, data) in self.starts().zip(data.chunks(self.len.max(1))) {
            buf.unpack_at(at, data);
        }
    }
}

impl CopyTo<Cut<RecvBuf>> for Cut<SendBuf> {
    fn copy_to(&self, buffer: &Cut<RecvBuf>) {
        match self.run() {
            Some(data) => buffer.take(data),
            None => {
                let mut data = vec![0; self.bytes()];
                self.pack(&mut data);
                buffer.take(&data);
            }
        }
    }
}
