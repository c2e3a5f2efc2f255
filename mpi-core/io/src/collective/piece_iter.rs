//! Iteration over a rank's pieces in one round of a collective access,
//! and copying of their bytes from and to the program's buffer.
//!
//! Runs of a view are computed one by one, never listed. Noncontiguous memory is packed in blocks of
//! [`PACKED`] bytes. So the memory use does not depend on the number of pieces.

use super::plan::Plan;
use crate::datatype::{RecvBuf, SendBuf};
use crate::view::View;

/// The maximum number of bytes of noncontiguous memory that are packed at a time.
const PACKED: usize = 64 << 10;

/// A piece of a rank's access: aggregator, offset in its part of the file, and length in bytes.
pub(crate) struct Piece {
    pub aggregator: usize,
    pub at: usize,
    pub len: usize,
}

/// Iterates over the rank's runs in a round, from byte `done` on; adds their lengths to `done`.
/// Calls `short` with each piece and the piece's position in the access.
/// Calls `long` with each run of at least `min_long` bytes: file offset, length, position.
pub(crate) fn for_each_piece(
    plan: &Plan,
    (view, from, len): (&View, i64, i64),
    round: i64,
    (done, min_long): (&mut i64, i64),
    mut short: impl FnMut(Piece, i64),
    mut long: impl FnMut(i64, i64, i64),
) {
    let (begin, end, part) = (
        plan.part(round, 0),
        plan.part(round + 1, 0),
        plan.part_bytes(),
    );
    let fresh = *done;
    view.runs(from + fresh, len - fresh, |run| {
        let (mut offset, mut left) = (run.offset, run.len);
        // A round boundary splits only short runs, so the rest of a split run counts as short too.
        if left >= min_long && offset < end {
            long(offset, left, *done);
            *done += left;
            return true;
        }
        while left > 0 && offset < end {
            let which = (offset - begin) / part;
            let at = offset - begin - which * part;
            let piece = left.min(part - at);
            let found = Piece {
                aggregator: which as usize,
                at: at as usize,
                len: piece as usize,
            };
            short(found, *done);
            *done += piece;
            offset += piece;
            left -= piece;
        }
        left == 0
    });
}

/// The bytes of a send buffer in stream order. Noncontiguous buffers are packed in blocks.
pub(crate) struct Source<'a> {
    buf: &'a SendBuf,
    packed: Vec<u8>,
    begin: i64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(buf: &'a SendBuf) -> Source<'a> {
        Source {
            buf,
            packed: Vec::new(),
            begin: 0,
        }
    }

    /// Passes the `len` bytes that start at byte `at` to `each`, in one or more blocks.
    pub(crate) fn bytes(&mut self, mut at: i64, mut len: usize, mut each: impl FnMut(&[u8])) {
        if let Some(all) = self.buf.contiguous() {
            each(all.get(at as usize..at as usize + len).unwrap_or(&[]));
            return;
        }
        while len > 0 {
            let inside = at - self.begin;
            if inside < 0 || inside >= self.packed.len() as i64 {
                let len = (self.buf.bytes() - at).clamp(0, PACKED as i64);
                self.packed.resize(len as usize, 0);
                self.buf.pack_at(at, &mut self.packed);
                self.begin = at;
                if len == 0 {
                    return;
                }
            }
            let inside = (at - self.begin) as usize;
            let part = len.min(self.packed.len() - inside);
            each(&self.packed[inside..inside + part]);
            at += part as i64;
            len -= part;
        }
    }
}

/// A receive buffer, filled in stream order, in blocks if it is noncontiguous.
pub(crate) struct Sink<'a> {
    buf: &'a mut RecvBuf,
    packed: Vec<u8>,
    begin: i64,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(buf: &'a mut RecvBuf) -> Sink<'a> {
        Sink {
            buf,
            packed: Vec::new(),
            begin: 0,
        }
    }

    /// Returns the program's memory if it is contiguous, else `None`.
    pub(crate) fn contiguous(&mut self) -> Option<&mut [u8]> {
        self.buf.contiguous()
    }

    pub(crate) fn put(&mut self, at: i64, data: &[u8]) {
        if let Some(buffer) = self.buf.contiguous() {
            if let Some(buffer) = buffer.get_mut(at as usize..at as usize + data.len()) {
                buffer.copy_from_slice(data);
            }
            return;
        }
        let behind = self.begin + self.packed.len() as i64;
        if behind != at || self.packed.len() + data.len() > PACKED {
            self.flush();
            self.begin = at;
        }
        self.packed.extend_from_slice(data);
    }

    pub(crate) fn flush(&mut self) {
        if !self.packed.is_empty() {
            self.buf.unpack_at(self.begin, &self.packed);
            self.packed.clear();
        }
    }
}
