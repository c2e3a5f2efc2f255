//! The normal form of a datatype: a short list of runs inside at most three nested loops.
//!
//! *Contiguous* is one run and no loop, *strided* is one run in loops, *indexed and struct* are many runs;
//! a contiguous or vector type of an indexed one is runs in loops, so that its size does not multiply.
//! A long list of runs that are a number or two long is kept in units of one length.
//! The repetition that a message's count adds is one more loop, which [`Shape`] puts outside.
//!
//! After OPAL's optimised description and yaksa's nested vectors.
//! Packed positions are found by division, and within irregular runs by their prefix sums.

use std::ops::Range;

/// Bytes that lie together, relative to the start of the element or of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub offset: i64,
    pub len: i64,
}

impl Run {
    /// `len` bytes from `offset` on, which may be negative.
    pub const fn new(offset: i64, len: i64) -> Run {
        Run { offset, len }
    }
}

/// `count` repetitions, each `stride` bytes after the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    pub count: i64,
    pub stride: i64,
}

impl Loop {
    /// Whether the repetition after the last would be `stride` bytes after the first.
    pub fn ends_at(&self, stride: i64) -> bool {
        self.stride.checked_mul(self.count) == Some(stride)
    }

    /// The loop over `times` elements, `extent` apart, if each of them ends as the next begins.
    #[inline]
    fn goes_on(self, extent: i64, times: i64) -> Option<Loop> {
        self.ends_at(extent).then_some(Loop {
            count: self.count.saturating_mul(times),
            ..self
        })
    }
}

/// Loops that a type may keep; deeper nests have their innermost loop written out as runs.
pub const MAX_LOOPS: usize = 3;

/// A normalised type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// Where each run of the body begins, in packed order; empty exactly when the type has no data.
    offsets: Vec<i64>,
    /// The packed position of each run and the end, when the runs differ in length; empty when they do not.
    starts: Vec<i64>,
    /// The length of all runs, when it is one.
    len: i64,
    /// Innermost first.
    loops: Vec<Loop>,
    /// Packed bytes of the body.
    bytes: i64,
    /// How many runs there are in all loops.
    runs: i64,
}

impl Layout {
    pub fn new(runs: &[Run], loops: Vec<Loop>) -> Layout {
        if let Some(units) = in_units(runs) {
            return Layout::of_runs(&units, loops);
        }
        Layout::of_runs(runs, loops)
    }

    fn of_runs(runs: &[Run], loops: Vec<Loop>) -> Layout {
        let irregular = runs.windows(2).any(|w| w[0].len != w[1].len);
        let mut starts = Vec::new();
        let mut bytes = 0;
        if irregular {
            starts.reserve_exact(runs.len() + 1);
            starts.push(0);
        }
        for run in runs {
            bytes += run.len;
            if irregular {
                starts.push(bytes);
            }
        }
        let all_runs = (loops.iter()).fold(runs.len() as i64, |n, l| n.saturating_mul(l.count));
        Layout {
            offsets: runs.iter().map(|run| run.offset).collect(),
            starts,
            len: runs.first().map_or(0, |run| run.len),
            loops,
            bytes,
            runs: all_runs,
        }
    }

    pub fn body(&self) -> Body<'_> {
        Body {
            offsets: &self.offsets,
            starts: &self.starts,
            len: self.len,
            bytes: self.bytes,
        }
    }

    /// Innermost first.
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// How many runs one element is; neighbours that touch may count as two.
    #[inline]
    pub fn runs(&self) -> i64 {
        self.runs
    }

    /// The memory of `count` elements, `extent` apart, if it is one run.
    #[inline]
    pub fn contiguous(&self, extent: i64, count: i64) -> Option<Run> {
        match (self.offsets.as_slice(), self.loops.as_slice()) {
            ([], _) => Some(Run::new(0, 0)),
            (&[offset], []) if count <= 1 || self.bytes == extent => {
                Some(Run::new(offset, self.bytes.saturating_mul(count)))
            }
            _ => None,
        }
    }

    /// The form in words, for tests and explanations.
    pub fn form(&self) -> &'static str {
        match (self.offsets.len(), self.loops.len()) {
            (0, _) => "empty",
            (1, 0) => "contiguous",
            (1, _) => "strided",
            (_, 0) => "runs",
            _ => "runs in loops",
        }
    }
}

/// Lists shorter than this stay as they are: the loops around them do them run by run.
const LONG_LIST: usize = 32;

/// How many units a run may have on average for its list to be written out in units.
const FEW: i64 = 3;

/// A long list of short runs of different lengths, in units of their common measure.
///
/// Runs that all have one known length are copied without looking a length up and without a guess at the next one;
/// measured, a list of one to three numbers each takes half the time.
fn in_units(runs: &[Run]) -> Option<Vec<Run>> {
    let unit = runs.iter().fold(0, |unit, run| gcd(unit, run.len));
    let irregular = runs.iter().any(|run| run.len != unit);
    let bytes: i64 = runs.iter().map(|run| run.len).sum();
    let few = || bytes / unit <= FEW * runs.len() as i64;
    let worth = runs.len() >= LONG_LIST && irregular && matches!(unit, 4 | 8 | 16) && few();
    worth.then(|| {
        let units = |run: &Run| {
            let Run { offset, len } = *run;
            (0..len / unit).map(move |i| Run::new(offset + i * unit, unit))
        };
        runs.iter().flat_map(units).collect()
    })
}

fn gcd(a: i64, b: i64) -> i64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// The runs inside all loops.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Where each run begins.
    pub offsets: &'a [i64],
    /// The packed position of each run and the end; empty when all runs have one length.
    pub starts: &'a [i64],
    /// That length; only then it means something.
    len: i64,
    /// Packed bytes.
    pub bytes: i64,
}

impl<'a> Body<'a> {
    /// Two runs of different lengths; `starts` as above.
    pub const fn two_of(offsets: &'a [i64; 2], starts: &'a [i64; 3]) -> Body<'a> {
        Body {
            offsets,
            starts,
            len: 0,
            bytes: starts[2],
        }
    }

    /// The runs of `offsets`, all of them `len` bytes long.
    pub const fn uniform_of(offsets: &'a [i64], len: i64) -> Body<'a> {
        Body {
            offsets,
            starts: &[],
            len,
            bytes: offsets.len() as i64 * len,
        }
    }

    /// The length of all runs, if it is one.
    #[inline]
    pub fn uniform(&self) -> Option<i64> {
        self.starts.is_empty().then_some(self.len)
    }

    #[inline]
    pub fn run(&self, i: usize) -> Run {
        let len = match self.starts {
            [] => self.len,
            starts => starts[i + 1] - starts[i],
        };
        Run::new(self.offsets[i], len)
    }

    pub fn runs(self) -> impl Iterator<Item = Run> + 'a {
        (0..self.offsets.len()).map(move |i| self.run(i))
    }

    /// `n` of the runs, from `first` on.
    pub fn part(&self, first: usize, n: usize) -> Body<'a> {
        let offsets = &self.offsets[first..first + n];
        if self.starts.is_empty() {
            return Body::uniform_of(offsets, self.len);
        }
        let starts = &self.starts[first..=first + n];
        Body {
            offsets,
            starts,
            len: 0,
            bytes: starts[n] - starts[0],
        }
    }

    /// The run that packed byte `at` is in, and its place in the run.
    fn locate(&self, at: i64) -> (usize, i64) {
        match self.uniform() {
            Some(len) => ((at / len) as usize, at % len),
            None => {
                let run = self.starts.partition_point(|&start| start <= at) - 1;
                (run, at - self.starts[run])
            }
        }
    }

    /// The whole runs from `first` on that fit into `room` bytes.
    pub fn whole_runs(&self, first: usize, room: i64) -> usize {
        match self.uniform() {
            Some(len) => ((room / len) as usize).min(self.offsets.len() - first),
            None => {
                let ends = &self.starts[first + 1..];
                ends.partition_point(|&end| end - self.starts[first] <= room)
            }
        }
    }
}

/// `count` elements of a normalised type, ready to walk: the type's loops with the count's outside.
///
/// It is cheap to make, so each call of the packing engine makes its own.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub body: Body<'a>,
    /// Innermost first; the unused ones have count 1.
    pub loops: [Loop; MAX_LOOPS + 1],
    /// Packed bytes of everything.
    pub total: i64,
}

const ONCE: Loop = Loop {
    count: 1,
    stride: 0,
};

impl<'a> Shape<'a> {
    /// `count` elements, `extent` apart, each of them `body` inside the loops `inner`.
    #[inline(always)]
    pub fn new(body: Body<'a>, inner: &[Loop], extent: i64, count: i64) -> Shape<'a> {
        let count = count.max(0);
        let all = Loop {
            count,
            stride: extent,
        };
        // Field by field: what is put together in memory word by word and then read in wider pieces stalls the processor.
        let loops = match *inner {
            [] => [all, ONCE, ONCE, ONCE],
            [a] => match a.goes_on(extent, count) {
                Some(a) => [a, ONCE, ONCE, ONCE],
                None => [a, all, ONCE, ONCE],
            },
            [a, b] => match b.goes_on(extent, count) {
                Some(b) => [a, b, ONCE, ONCE],
                None => [a, b, all, ONCE],
            },
            [a, b, c, ..] => match c.goes_on(extent, count) {
                Some(c) => [a, b, c, ONCE],
                None => [a, b, c, all],
            },
        };
        let total = (loops.iter()).fold(body.bytes, |total, l| total.saturating_mul(l.count));
        Shape { body, loops, total }
    }

    /// Where packed bytes `range` (of what there is) begin, if they lie in one run, as most fragments of long runs do.
    #[inline]
    pub fn in_one_run(&self, range: &Range<i64>) -> Option<i64> {
        let len = range.end - range.start;
        let body = &self.body;
        // Runs that are shorter on average are not looked at.
        if len == 0 || len > body.bytes / body.offsets.len() as i64 {
            return None;
        }
        let place = self.locate(range.start);
        let run = body.run(place.run);
        (len <= run.len - place.skip).then_some(place.base + run.offset + place.skip)
    }

    /// Where packed byte `at` (less than `total`) lies.
    pub fn locate(&self, at: i64) -> Place {
        let mut rest = at / self.body.bytes;
        let mut place = Place::default();
        for (index, l) in place.index.iter_mut().zip(&self.loops) {
            // Dividing by one takes as long as any other division.
            if l.count > 1 {
                *index = rest % l.count;
                rest /= l.count;
                place.base += *index * l.stride;
            }
        }
        (place.run, place.skip) = self.body.locate(at % self.body.bytes);
        place
    }
}

/// A position in a [`Shape`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Place {
    /// How far each loop is.
    pub index: [i64; MAX_LOOPS + 1],
    /// The sum of the loops' displacements.
    pub base: i64,
    /// The run of the body, and the bytes of it that are done.
    pub run: usize,
    pub skip: i64,
}
