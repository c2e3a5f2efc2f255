//! The normal form of a datatype:
//! a short list of runs (contiguous segments) inside at most three nested loops.
//!
//! *Contiguous* is one run without a loop, *strided* is one run
//! in loops, *indexed and struct* are several runs.
//! A contiguous or vector type of an indexed type is several runs in loops,
//! so the list of runs does not grow with the count.
//! A long list of runs that have one to three numbers each is split into units of one length.
//! The count of a message is one more loop, which [`Shape`] adds as the outermost one.
//!
//! The normal form is modelled on OPAL's optimised description and yaksa's nested vectors.
//! A packed position is converted to a memory position by divisions, and within runs of different
//! lengths by a binary search of their start positions.

use std::ops::Range;

/// Contiguous bytes. The offset is relative to the start of the element or of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub offset: i64,
    pub len: i64,
}

impl Run {
    /// Creates a run of `len` bytes. `offset` may be negative.
    pub const fn new(offset: i64, len: i64) -> Run {
        Run { offset, len }
    }
}

/// `count` repetitions. Each starts `stride` bytes after the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    pub count: i64,
    pub stride: i64,
}

impl Loop {
    /// Returns true if one more repetition would start `stride` bytes after the first repetition.
    pub fn ends_at(&self, stride: i64) -> bool {
        self.stride.checked_mul(self.count) == Some(stride)
    }

    /// Merges this loop with an outer loop of `times` elements, `extent` apart,
    /// if each element ends where the next begins.
    #[inline]
    fn goes_on(self, extent: i64, times: i64) -> Option<Loop> {
        self.ends_at(extent).then_some(Loop {
            count: self.count.saturating_mul(times),
            ..self
        })
    }
}

/// Maximum number of loops of a type. If a type has more, the innermost loop is expanded into runs.
pub const MAX_LOOPS: usize = 3;

/// The normal form of a datatype.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The offset of each run of the body, in packed order.
    /// Empty if and only if the type has no data.
    offsets: Vec<i64>,
    /// The packed position of each run, followed by the packed length of the body.
    /// Empty if all runs have the same length.
    starts: Vec<i64>,
    /// The length of each run in bytes, if all have the same length.
    len: i64,
    /// The loops around the body, innermost first.
    loops: Vec<Loop>,
    /// The number of packed bytes of the body.
    bytes: i64,
    /// The number of runs, counted with all repetitions of the loops.
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

    /// Returns the loops around the body, innermost first.
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// Returns the number of runs of one element. Adjacent runs may count as two.
    #[inline]
    pub fn runs(&self) -> i64 {
        self.runs
    }

    /// Returns the memory of `count` elements as one run, if it is contiguous.
    /// Elements are `extent` bytes apart.
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

    /// Returns true if all runs begin and end at multiples of `unit` bytes.
    /// Elements are `extent` bytes apart.
    pub fn is_in_units_of(&self, unit: i64, extent: i64) -> bool {
        let whole = |bytes: i64| bytes % unit == 0;
        whole(extent)
            && whole(self.len)
            && self.loops.iter().all(|l| whole(l.stride))
            && self.starts.iter().copied().all(whole)
            && self.offsets.iter().copied().all(whole)
    }

    /// Returns the name of the normal form, for tests and explanations.
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

/// Minimum number of runs of a list that is split. Shorter lists in loops are copied run by run.
const LONG_LIST: usize = 32;

/// Maximum mean number of units per run of a list that is split.
const FEW: i64 = 3;

/// Splits a long list of short runs of different lengths into units.
/// The length of a unit is the greatest common divisor of the lengths.
///
/// Copying runs of one known length needs no length lookup and causes no mispredicted branch.
/// Measured: a list of runs of one to three numbers takes half the time.
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

/// The list of runs inside all loops of a normal form.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The offset of each run in bytes.
    pub offsets: &'a [i64],
    /// The packed position of each run, followed by the packed length.
    /// Empty if all runs have the same length.
    pub starts: &'a [i64],
    /// The length of each run in bytes; valid only if `starts` is empty.
    len: i64,
    /// The number of packed bytes of all runs.
    pub bytes: i64,
}

impl<'a> Body<'a> {
    /// Returns a body of two runs of different lengths; `starts` has the form of [`Body::starts`].
    pub const fn two_of(offsets: &'a [i64; 2], starts: &'a [i64; 3]) -> Body<'a> {
        Body {
            offsets,
            starts,
            len: 0,
            bytes: starts[2],
        }
    }

    /// Returns a body of runs at `offsets`, each `len` bytes long.
    pub const fn uniform_of(offsets: &'a [i64], len: i64) -> Body<'a> {
        Body {
            offsets,
            starts: &[],
            len,
            bytes: offsets.len() as i64 * len,
        }
    }

    /// Returns the length of the runs, if all have the same length.
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

    /// Returns the body of `n` runs, from index `first` on.
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

    /// Returns the index of the run that contains packed byte `at`,
    /// and the offset of the byte in it.
    fn locate(&self, at: i64) -> (usize, i64) {
        match self.uniform() {
            Some(len) => ((at / len) as usize, at % len),
            None => {
                let run = self.starts.partition_point(|&start| start <= at) - 1;
                (run, at - self.starts[run])
            }
        }
    }

    /// Returns the number of complete runs, from index `first` on,
    /// whose total length is at most `space` bytes.
    pub fn whole_runs(&self, first: usize, space: i64) -> usize {
        match self.uniform() {
            Some(len) => ((space / len) as usize).min(self.offsets.len() - first),
            None => {
                let ends = &self.starts[first + 1..];
                ends.partition_point(|&end| end - self.starts[first] <= space)
            }
        }
    }
}

/// `count` elements of a type in normal form: the type's loops inside the loop of the count.
///
/// A shape is cheap to create, so each call of the packing engine creates one.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub body: Body<'a>,
    /// The loops, innermost first. Unused loops have the count 1.
    pub loops: [Loop; MAX_LOOPS + 1],
    /// The number of packed bytes of all elements.
    pub total: i64,
}

const ONCE: Loop = Loop {
    count: 1,
    stride: 0,
};

impl<'a> Shape<'a> {
    /// Returns the shape of `count` elements that are `extent` bytes apart.
    /// Each element is `body` inside the loops `inner`.
    #[inline(always)]
    pub fn new(body: Body<'a>, inner: &[Loop], extent: i64, count: i64) -> Shape<'a> {
        let count = count.max(0);
        let all = Loop {
            count,
            stride: extent,
        };
        // Array literals instead of a copy of `inner`: memory that is stored in words and then
        // loaded in wider units fails store forwarding, which stalls the processor.
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

    /// Returns the offset of the packed bytes `range` (inside `total`) if they are in one run.
    /// Most fragments of types with long runs are in one run.
    #[inline]
    pub fn in_one_run(&self, range: &Range<i64>) -> Option<i64> {
        let len = range.end - range.start;
        let body = &self.body;
        // A range longer than the mean run is rarely in one run, so it is not looked up.
        if len == 0 || len > body.bytes / body.offsets.len() as i64 {
            return None;
        }
        let place = self.locate(range.start);
        let run = body.run(place.run);
        (len <= run.len - place.skip).then_some(place.base + run.offset + place.skip)
    }

    /// Returns the position of packed byte `at`, which is less than `total`.
    pub fn locate(&self, at: i64) -> Place {
        let mut rest = at / self.body.bytes;
        let mut place = Place::default();
        for (index, l) in place.index.iter_mut().zip(&self.loops) {
            // Skips divisions by 1, which take as long as other divisions.
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
    /// The current repetition of each loop.
    pub index: [i64; MAX_LOOPS + 1],
    /// The sum of the byte offsets of the current repetitions.
    pub base: i64,
    /// The index of the run in the body,
    /// and the number of bytes of this run before the position.
    pub run: usize,
    pub skip: i64,
}
