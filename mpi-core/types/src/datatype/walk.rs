//! Iteration over the data of many elements in packed order, between any two packed positions.
//!
//! The iterator returns *pieces*, each as large as possible.
//! The copy loops ([`super::copy`](mod@super::copy)) process a piece as a whole.
//! [`Runs`] splits pieces into runs for code that needs an iovec.

use std::ops::Range;

use super::layout::{Body, Place, Run, Shape};

/// A part of the data that one copy loop moves. Offsets are relative to the start of the buffer.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// A grid of `rows` rows, each with `count` blocks of `len` bytes.
    Grid {
        offset: i64,
        len: i64,
        count: i64,
        stride: i64,
        rows: i64,
        row_stride: i64,
    },
    /// All runs of `body`, shifted by `base` bytes, repeated `count` times, `stride` bytes apart.
    Bodies {
        base: i64,
        body: Body<'a>,
        stride: i64,
        count: i64,
    },
}

/// Iterator over the pieces of a range of packed bytes.
pub struct Walk<'a> {
    shape: Shape<'a>,
    place: Place,
    left: i64,
}

impl<'a> Walk<'a> {
    /// Creates the iterator over the packed bytes `range`, which is clamped to the shape.
    pub fn new(shape: Shape<'a>, range: Range<i64>) -> Walk<'a> {
        let start = range.start.max(0);
        let left = range.end.min(shape.total) - start;
        Walk {
            // Most iterations begin at position 0, which needs no division.
            place: match start {
                1.. if left > 0 => shape.locate(start),
                _ => Place::default(),
            },
            shape,
            left: left.max(0),
        }
    }

    /// Advances the loop `level` by `by` repetitions, and carries into the outer loops.
    #[inline]
    fn step(&mut self, level: usize, by: i64) {
        let mut by = by;
        let loops = self.shape.loops[level..].iter();
        for (index, l) in self.place.index[level..].iter_mut().zip(loops) {
            *index += by;
            // Wrapping arithmetic, because the sum after the last repetition may overflow.
            self.place.base = self.place.base.wrapping_add(by.wrapping_mul(l.stride));
            if *index < l.count {
                return;
            }
            self.place.base = self.place.base.wrapping_sub(l.count.wrapping_mul(l.stride));
            *index = 0;
            by = 1;
        }
    }

    /// Returns the number of remaining repetitions of the loop `level` that the range contains.
    /// A repetition has `bytes` packed bytes.
    #[inline]
    fn repetitions(&self, level: usize, bytes: i64) -> i64 {
        let to_go = self.shape.loops[level].count - self.place.index[level];
        match to_go.checked_mul(bytes) {
            Some(all) if all <= self.left => to_go,
            _ => self.left / bytes,
        }
    }

    fn leave_runs(&mut self, n: usize) {
        self.place.run += n;
        if self.place.run == self.shape.body.offsets.len() {
            self.place.run = 0;
            self.step(0, 1);
        }
    }

    /// Returns a piece of one run, up to the end of the run or of the range, whichever is first.
    fn part_of_run(&mut self, run: Run) -> Piece<'a> {
        let len = (run.len - self.place.skip).min(self.left);
        let offset = self.place.base + run.offset + self.place.skip;
        self.left -= len;
        self.place.skip += len;
        if self.place.skip == run.len {
            self.place.skip = 0;
            self.leave_runs(1);
        }
        Piece::Grid {
            offset,
            len,
            count: 1,
            stride: 0,
            rows: 1,
            row_stride: 0,
        }
    }

    /// For a body of one run, returns a piece of complete passes through the innermost loop
    /// if the position is at the start of a pass that the range contains completely;
    /// otherwise a piece of some repetitions of the innermost loop.
    #[inline]
    fn grid(&mut self, run: Run) -> Piece<'a> {
        let [inner, outer, ..] = self.shape.loops;
        let offset = self.place.base + run.offset;
        let row = inner.count.saturating_mul(run.len);
        let (count, rows) = if self.place.index[0] == 0 && row <= self.left {
            let rows = self.repetitions(1, row);
            self.step(1, rows);
            (inner.count, rows)
        } else {
            let count = self.repetitions(0, run.len);
            self.step(0, count);
            (count, 1)
        };
        self.left -= count * rows * run.len;
        Piece::Grid {
            offset,
            len: run.len,
            count,
            stride: inner.stride,
            rows,
            row_stride: outer.stride,
        }
    }

    /// For a body of several runs, returns a piece of complete repetitions of the innermost loop.
    fn bodies(&mut self) -> Piece<'a> {
        let body = self.shape.body;
        let count = self.repetitions(0, body.bytes);
        let base = self.place.base;
        self.left -= count * body.bytes;
        self.step(0, count);
        Piece::Bodies {
            base,
            body,
            stride: self.shape.loops[0].stride,
            count,
        }
    }

    /// Returns a piece of the complete runs of a body that are left in the range.
    fn part_of_body(&mut self) -> Piece<'a> {
        let first = self.place.run;
        let n = self.shape.body.whole_runs(first, self.left);
        let body = self.shape.body.part(first, n);
        let base = self.place.base;
        self.left -= body.bytes;
        self.leave_runs(n);
        Piece::Bodies {
            base,
            body,
            stride: 0,
            count: 1,
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        if self.left == 0 {
            return None;
        }
        let body = &self.shape.body;
        let run = body.run(self.place.run);
        Some(if self.place.skip > 0 || self.left < run.len {
            self.part_of_run(run)
        } else if body.offsets.len() == 1 {
            self.grid(run)
        } else if self.place.run == 0 && self.left >= body.bytes {
            self.bodies()
        } else {
            self.part_of_body()
        })
    }
}

/// Iterator over the runs of a range of packed bytes, in packed order.
pub struct Runs<'a> {
    walk: Walk<'a>,
    /// The piece that is being split into runs.
    piece: Option<Piece<'a>>,
    done: Within,
}

/// The position in a piece: the index of the run or block, and of the repetition or row.
#[derive(Default)]
struct Within {
    inner: i64,
    outer: i64,
}

impl<'a> Runs<'a> {
    /// Returns the runs of the packed bytes `range` of a buffer of this shape.
    /// Their offsets are relative to the start of the buffer.
    pub fn new(shape: Shape<'a>, range: Range<i64>) -> Runs<'a> {
        Runs {
            walk: Walk::new(shape, range),
            piece: None,
            done: Within::default(),
        }
    }

    /// Returns the run at the current position of `piece`,
    /// and the limits of the inner and outer index.
    #[inline]
    fn here(&self, piece: &Piece<'a>) -> (Run, i64, i64) {
        let Within { inner, outer } = self.done;
        match *piece {
            Piece::Grid {
                offset,
                len,
                count,
                stride,
                rows,
                row_stride,
            } => {
                let at = offset + inner * stride + outer * row_stride;
                (Run::new(at, len), count, rows)
            }
            Piece::Bodies {
                base,
                body,
                stride,
                count,
            } => {
                let run = body.run(inner as usize);
                let at = base + outer * stride + run.offset;
                (Run::new(at, run.len), body.offsets.len() as i64, count)
            }
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let piece = match self.piece.take() {
            Some(piece) => piece,
            None => self.walk.next()?,
        };
        let (run, inner, outer) = self.here(&piece);
        self.done.inner += 1;
        if self.done.inner == inner {
            self.done.inner = 0;
            self.done.outer += 1;
        }
        if self.done.outer == outer {
            self.done.outer = 0;
        } else {
            self.piece = Some(piece);
        }
        Some(run)
    }
}
