//! Walking over the data of many elements in packed order, from any byte to any byte.
//!
//! The walk hands out *pieces*, each as large as it can be: a row of equal blocks, or a list of runs.
//! The copy loops ([`super::copy`]) take a piece at a time; [`Runs`] takes them apart for whoever needs an iovec.

use std::ops::Range;

use super::layout::{Place, Run, Shape};

/// Work for one copy loop; offsets count from the start of the buffer.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// `count` blocks of `len` bytes, `stride` apart.
    Row {
        offset: i64,
        len: i64,
        stride: i64,
        count: i64,
    },
    /// Runs, each moved by `base`.
    List { base: i64, runs: &'a [Run] },
}

/// The pieces of a range of packed bytes.
pub struct Walk<'a> {
    shape: Shape<'a>,
    place: Place,
    left: i64,
}

impl<'a> Walk<'a> {
    /// The range is cut to what the shape has.
    pub fn new(shape: Shape<'a>, range: Range<i64>) -> Walk<'a> {
        let end = range.end.min(shape.total);
        let start = range.start.max(0);
        if start >= end {
            return Walk {
                shape,
                place: Place::default(),
                left: 0,
            };
        }
        Walk {
            // Most walks start at the start, which needs no divisions.
            place: match start {
                0 => Place::default(),
                _ => shape.locate(start),
            },
            shape,
            left: end - start,
        }
    }

    /// Goes to the next repetition of the innermost loop, `by` steps at once, carrying outwards.
    fn step(&mut self, by: i64) {
        let mut by = by;
        for (index, l) in self.place.index.iter_mut().zip(&self.shape.loops) {
            *index += by;
            self.place.base += by * l.stride;
            if *index < l.count {
                return;
            }
            self.place.base -= l.count * l.stride;
            *index = 0;
            by = 1;
        }
    }

    fn part_of_run(&mut self, run: Run) -> Piece<'a> {
        let len = (run.len - self.place.skip).min(self.left);
        let offset = self.place.base + run.offset + self.place.skip;
        self.left -= len;
        self.place.skip += len;
        if self.place.skip == run.len {
            self.place.skip = 0;
            self.leave_runs(1);
        }
        Piece::Row {
            offset,
            len,
            stride: 0,
            count: 1,
        }
    }

    fn leave_runs(&mut self, n: usize) {
        self.place.run += n;
        if self.place.run == self.shape.runs.len() {
            self.place.run = 0;
            self.step(1);
        }
    }

    fn row(&mut self, run: Run) -> Piece<'a> {
        let inner = self.shape.loops[0];
        let count = (inner.count - self.place.index[0]).min(self.left / run.len);
        let offset = self.place.base + run.offset;
        self.left -= count * run.len;
        self.step(count);
        Piece::Row {
            offset,
            len: run.len,
            stride: inner.stride,
            count,
        }
    }

    fn list(&mut self) -> Piece<'a> {
        let base = self.place.base;
        let first = self.place.run;
        let (n, bytes) = self.shape.whole_runs(first, self.left);
        let runs = &self.shape.runs[first..first + n];
        self.left -= bytes;
        self.leave_runs(n);
        Piece::List { base, runs }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        if self.left == 0 {
            return None;
        }
        let run = self.shape.runs[self.place.run];
        Some(if self.place.skip > 0 || self.left < run.len {
            self.part_of_run(run)
        } else if self.shape.runs.len() == 1 {
            self.row(run)
        } else {
            self.list()
        })
    }
}

/// The single runs of a range of packed bytes, in packed order.
pub struct Runs<'a> {
    walk: Walk<'a>,
    piece: Piece<'a>,
}

impl<'a> Runs<'a> {
    pub fn new(shape: Shape<'a>, range: Range<i64>) -> Runs<'a> {
        Runs {
            walk: Walk::new(shape, range),
            piece: Piece::List { base: 0, runs: &[] },
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        loop {
            match self.piece {
                Piece::Row {
                    offset,
                    len,
                    stride,
                    count,
                } if count > 0 => {
                    self.piece = Piece::Row {
                        offset: offset + stride,
                        len,
                        stride,
                        count: count - 1,
                    };
                    return Some(Run::new(offset, len));
                }
                Piece::List {
                    base,
                    runs: [first, rest @ ..],
                } => {
                    self.piece = Piece::List { base, runs: rest };
                    return Some(Run::new(base + first.offset, first.len));
                }
                _ => self.piece = self.walk.next()?,
            }
        }
    }
}
