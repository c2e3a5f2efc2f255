//! Walking over the data of many elements in packed order, from any byte to any byte.
//!
//! The walk hands out *pieces*, each as large as it can be.
//! The copy loops ([`super::copy`]) take a piece at a time; [`Runs`] takes them apart for whoever needs an iovec.

use std::ops::Range;

use super::layout::{Body, Place, Run, Shape};

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
    /// All runs of `body`, moved by `base`; that `count` times, `stride` apart.
    Bodies {
        base: i64,
        body: Body<'a>,
        stride: i64,
        count: i64,
    },
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
        let start = range.start.max(0);
        let left = range.end.min(shape.total) - start;
        Walk {
            // Most walks start at the start, which needs no divisions.
            place: match start {
                1.. if left > 0 => shape.locate(start),
                _ => Place::default(),
            },
            shape,
            left: left.max(0),
        }
    }

    /// Goes on by `by` repetitions of the innermost loop, carrying outwards.
    #[inline]
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

    /// How many repetitions of the innermost loop, of `bytes` each, may be done at once.
    #[inline]
    fn repetitions(&self, bytes: i64) -> i64 {
        let to_go = self.shape.loops[0].count - self.place.index[0];
        match to_go.checked_mul(bytes) {
            Some(all) if all <= self.left => to_go,
            _ => self.left / bytes,
        }
    }

    fn leave_runs(&mut self, n: usize) {
        self.place.run += n;
        if self.place.run == self.shape.body.offsets.len() {
            self.place.run = 0;
            self.step(1);
        }
    }

    /// Less than a run: what is left of it, or what is left to do.
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

    /// Whole repetitions of a body that is one run.
    fn row(&mut self, run: Run) -> Piece<'a> {
        let count = self.repetitions(run.len);
        let offset = self.place.base + run.offset;
        self.left -= count * run.len;
        self.step(count);
        Piece::Row {
            offset,
            len: run.len,
            stride: self.shape.loops[0].stride,
            count,
        }
    }

    /// Whole repetitions of a body of several runs.
    fn bodies(&mut self) -> Piece<'a> {
        let body = self.shape.body;
        let count = self.repetitions(body.bytes);
        let base = self.place.base;
        self.left -= count * body.bytes;
        self.step(count);
        Piece::Bodies {
            base,
            body,
            stride: self.shape.loops[0].stride,
            count,
        }
    }

    /// Some whole runs of a body.
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
            self.row(run)
        } else if self.place.run == 0 && self.left >= body.bytes {
            self.bodies()
        } else {
            self.part_of_body()
        })
    }
}

/// The single runs of a range of packed bytes, in packed order.
pub struct Runs<'a> {
    walk: Walk<'a>,
    piece: Piece<'a>,
    /// The next run of the body, when the piece is bodies.
    next: usize,
}

impl<'a> Runs<'a> {
    pub fn new(shape: Shape<'a>, range: Range<i64>) -> Runs<'a> {
        Runs {
            walk: Walk::new(shape, range),
            piece: Piece::Row {
                offset: 0,
                len: 0,
                stride: 0,
                count: 0,
            },
            next: 0,
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        loop {
            match &mut self.piece {
                Piece::Row {
                    offset,
                    len,
                    stride,
                    count,
                } if *count > 0 => {
                    let run = Run::new(*offset, *len);
                    *count -= 1;
                    // Wrapping, because behind the last repetition there may be no address.
                    *offset = offset.wrapping_add(*stride);
                    return Some(run);
                }
                Piece::Bodies {
                    base,
                    body,
                    stride,
                    count,
                } if *count > 0 => {
                    let run = body.run(self.next);
                    let run = Run::new(*base + run.offset, run.len);
                    self.next += 1;
                    if self.next == body.offsets.len() {
                        self.next = 0;
                        *count -= 1;
                        *base = base.wrapping_add(*stride);
                    }
                    return Some(run);
                }
                _ => self.piece = self.walk.next()?,
            }
        }
    }
}
