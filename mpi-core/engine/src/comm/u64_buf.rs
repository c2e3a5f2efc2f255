//! A small array of `u64` to send and receive.

use crate::datatype::{RecvBuf, Scratch, SendBuf};
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;

/// An array of words in memory from which messages can be sent and into which they can be received.
pub struct U64Buf {
    bytes: Scratch,
}

const WORD: i64 = size_of::<u64>() as i64;

impl U64Buf {
    /// Creates `len` words, all of them zero.
    pub fn new(len: usize) -> U64Buf {
        U64Buf {
            // The array has a few words per member;
            // if memory is exhausted, the process ends, as for a `Vec`.
            bytes: Scratch::bytes(len as i64 * WORD)
                .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u64>())),
        }
    }

    /// Creates a copy of these words.
    pub fn of(words: &[u64]) -> U64Buf {
        let all = U64Buf::new(words.len());
        for (i, w) in words.iter().enumerate() {
            all.set(i, *w);
        }
        all
    }

    /// Sets a word; no message with this word may be in progress.
    pub fn set(&self, i: usize, word: u64) {
        self.recv(i..i + 1).unpack_at(0, &word.to_le_bytes());
    }

    /// Returns a word that was set or received.
    pub fn get(&self, i: usize) -> u64 {
        let mut word = [0; WORD as usize];
        self.send(i..i + 1).pack_at(0, &mut word);
        u64::from_le_bytes(word)
    }

    /// Returns a send buffer of consecutive words in native byte order.
    pub fn send(&self, words: Range<usize>) -> SendBuf {
        self.bytes.send(Self::range(words))
    }

    /// Returns a receive buffer of consecutive words.
    pub fn recv(&self, words: Range<usize>) -> RecvBuf {
        self.bytes.recv(Self::range(words))
    }

    fn range(words: Range<usize>) -> Range<i64> {
        words.start as i64 * WORD..words.end as i64 * WORD
    }
}
