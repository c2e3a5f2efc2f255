//! Cursors in a buffer: positions for packing or unpacking it piece by piece.

use super::{RecvBuf, SendBuf};

/// A position in a [`SendBuf`].
#[derive(Clone)]
pub struct Packer {
    buf: SendBuf,
    at: i64,
}

impl Packer {
    /// Copies the next packed bytes to `out`. Returns their number, which is less than the length
    /// of `out` only at the end of the buffer.
    #[inline]
    pub fn pack(&mut self, out: &mut [u8]) -> usize {
        let n = self.buf.pack_at(self.at, out);
        self.at += n as i64;
        n
    }
}

/// A position in a [`RecvBuf`].
#[derive(Clone)]
pub struct Unpacker {
    buf: RecvBuf,
    at: i64,
}

impl Unpacker {
    /// Copies `input` to the next packed bytes. Returns the number of bytes that fit.
    #[inline]
    pub fn unpack(&mut self, input: &[u8]) -> usize {
        let n = self.buf.unpack_at(self.at, input);
        self.at += n as i64;
        n
    }
}

macro_rules! positions {
    ($cursor:ident, $buf:ty) => {
        impl $cursor {
            /// Creates a cursor at the first packed byte.
            pub(super) fn at_start(buf: $buf) -> $cursor {
                $cursor { buf, at: 0 }
            }

            /// Returns the position of the next packed byte.
            pub fn position(&self) -> i64 {
                self.at
            }

            /// Moves to packed byte `at`, or to the end.
            pub fn seek(&mut self, at: i64) {
                self.at = at.clamp(0, self.buf.bytes());
            }

            /// Returns the number of packed bytes from the position to the end.
            pub fn remaining(&self) -> i64 {
                (self.buf.bytes() - self.at).max(0)
            }

            /// Returns the buffer without the position.
            pub fn buf(&self) -> &$buf {
                &self.buf
            }
        }
    };
}

positions!(Packer, SendBuf);
positions!(Unpacker, RecvBuf);
