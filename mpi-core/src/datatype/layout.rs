//! The normal form of a datatype: a short list of runs inside at most three nested loops.
//!
//! `commit` turns any type map into this form, once.
//! *Contiguous* is one run and no loop, *strided* is one run in loops, *indexed and struct* are many runs;
//! a contiguous or vector type of an indexed one is runs in loops, so that its size does not multiply.
//! Runs stand in the order of the type map (that is the order of the packed bytes), and neighbours that touch are fused.
//! The repetition that a message's count adds is one more loop, which [`Shape::of`] puts outside.
//!
//! After OPAL's optimised description and yaksa's nested vectors; packed positions are found by prefix sums.

/// Bytes that lie together, relative to the start of the element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub offset: i64,
    pub len: i64,
}

impl Run {
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

/// Loops that a type may keep; deeper nests have their innermost loop written out as runs.
pub const MAX_LOOPS: usize = 3;

/// The most runs that commit writes out (24 bytes each).
pub const MAX_RUNS: usize = 1 << 28;

/// A commit that would need more than [`MAX_RUNS`] runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyRuns;

/// A normalised type, or a part of one while it is being built.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The body, in packed order; empty exactly when the type has no data.
    runs: Vec<Run>,
    /// The packed position of each run in the body, when the runs differ in length.
    starts: Vec<i64>,
    /// Innermost first.
    loops: Vec<Loop>,
    /// Packed bytes of the body.
    body: i64,
}

impl Layout {
    pub fn of_runs(runs: &[Run]) -> Layout {
        let mut layout = Layout::default();
        for &run in runs {
            push_fused(&mut layout.runs, run);
        }
        layout.body = layout.runs.iter().map(|r| r.len).sum();
        layout
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The only run, if there is nothing else.
    fn single(&self) -> Option<Run> {
        match (self.runs.as_slice(), self.loops.as_slice()) {
            ([run], []) => Some(*run),
            _ => None,
        }
    }

    /// `count` of these, `stride` apart.
    pub fn repeated(mut self, count: i64, stride: i64) -> Result<Layout, TooManyRuns> {
        if count == 0 || self.is_empty() {
            return Ok(Layout::default());
        }
        if count == 1 {
            return Ok(self);
        }
        if let Some(run) = self.single()
            && run.len == stride
        {
            return Ok(Layout::of_runs(&[Run::new(run.offset, run.len * count)]));
        }
        match self.loops.last_mut() {
            Some(outer) if outer.stride.checked_mul(outer.count) == Some(stride) => {
                outer.count *= count
            }
            _ => self.loops.push(Loop { count, stride }),
        }
        while self.loops.len() > MAX_LOOPS {
            self.write_out_innermost()?;
        }
        Ok(self)
    }

    fn write_out_innermost(&mut self) -> Result<(), TooManyRuns> {
        let inner = self.loops.remove(0);
        let mut runs = Vec::new();
        for k in 0..inner.count {
            for run in &self.runs {
                push_limited(&mut runs, Run::new(run.offset + k * inner.stride, run.len))?;
            }
        }
        self.runs = runs;
        self.body *= inner.count;
        Ok(())
    }

    /// Appends all runs, moved by `offset`, to `out`.
    fn write_out(&self, offset: i64, out: &mut Vec<Run>) -> Result<(), TooManyRuns> {
        write_out_loops(&self.loops, &self.runs, offset, out)
    }

    fn moved(mut self, by: i64) -> Layout {
        for run in &mut self.runs {
            run.offset += by;
        }
        self
    }

    /// The finished form: regular lists become loops, irregular ones get their prefix sums.
    pub fn finished(mut self) -> Layout {
        if self.loops.len() < MAX_LOOPS
            && let Some((run, inner)) = as_regular(&self.runs)
        {
            self.runs = vec![run];
            self.body = run.len;
            self.loops.insert(0, inner);
            if let [a, b, ..] = self.loops[..]
                && a.stride.checked_mul(a.count) == Some(b.stride)
            {
                self.loops.remove(0);
                self.loops[0] = Loop {
                    count: a.count * b.count,
                    stride: a.stride,
                };
            }
        }
        let irregular = self.runs.windows(2).any(|w| w[0].len != w[1].len);
        if irregular {
            let mut at = 0;
            self.starts.clear();
            self.starts.reserve_exact(self.runs.len());
            for run in &self.runs {
                self.starts.push(at);
                at += run.len;
            }
        }
        self.runs.shrink_to_fit();
        self
    }

    /// The form in one word, for tests and explanations.
    pub fn form(&self) -> &'static str {
        match (self.runs.len(), self.loops.len()) {
            (0, _) => "empty",
            (1, 0) => "contiguous",
            (1, _) => "strided",
            (_, 0) => "runs",
            _ => "runs in loops",
        }
    }

    /// The memory of `count` elements, if it is one run.
    #[inline]
    pub fn contiguous(&self, extent: i64, count: i64) -> Option<Run> {
        if self.is_empty() || count == 0 {
            return Some(Run::new(0, 0));
        }
        let run = self.single()?;
        (count == 1 || run.len == extent)
            .then_some(Run::new(run.offset, run.len.saturating_mul(count)))
    }

    pub fn run_count(&self) -> usize {
        self.runs.len()
    }
}

/// Equal runs at equal distances are one run in a loop.
fn as_regular(runs: &[Run]) -> Option<(Run, Loop)> {
    let [first, second, ..] = runs else {
        return None;
    };
    let stride = second.offset - first.offset;
    runs.windows(2)
        .all(|w| w[1].len == w[0].len && w[1].offset - w[0].offset == stride)
        .then_some((
            *first,
            Loop {
                count: runs.len() as i64,
                stride,
            },
        ))
}

fn write_out_loops(
    loops: &[Loop],
    runs: &[Run],
    offset: i64,
    out: &mut Vec<Run>,
) -> Result<(), TooManyRuns> {
    match loops.split_last() {
        None => runs
            .iter()
            .try_for_each(|run| push_limited(out, Run::new(run.offset + offset, run.len))),
        Some((outer, inner)) => (0..outer.count)
            .try_for_each(|k| write_out_loops(inner, runs, offset + k * outer.stride, out)),
    }
}

fn push_fused(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.offset + last.len == run.offset => last.len += run.len,
        _ => runs.push(run),
    }
}

fn push_limited(runs: &mut Vec<Run>, run: Run) -> Result<(), TooManyRuns> {
    push_fused(runs, run);
    (runs.len() <= MAX_RUNS).then_some(()).ok_or(TooManyRuns)
}

/// Parts one after another in packed order.
///
/// One part stays as it is; from the second part on everything is written out as runs.
#[derive(Default)]
pub struct Sequence {
    only: Option<Layout>,
    runs: Vec<Run>,
}

impl Sequence {
    /// Appends `part` moved by `offset`.
    pub fn push(&mut self, part: Layout, offset: i64) -> Result<(), TooManyRuns> {
        if part.is_empty() {
            return Ok(());
        }
        if self.only.is_none() && self.runs.is_empty() {
            self.only = Some(part.moved(offset));
            return Ok(());
        }
        self.settle()?;
        part.write_out(offset, &mut self.runs)
    }

    /// Appends one run, without building a part for it.
    pub fn push_run(&mut self, run: Run) -> Result<(), TooManyRuns> {
        if run.len == 0 {
            return Ok(());
        }
        self.settle()?;
        push_limited(&mut self.runs, run)
    }

    fn settle(&mut self) -> Result<(), TooManyRuns> {
        match self.only.take() {
            Some(first) => first.write_out(0, &mut self.runs),
            None => Ok(()),
        }
    }

    pub fn finish(self) -> Layout {
        match self.only {
            Some(layout) => layout,
            None => {
                let body = self.runs.iter().map(|r| r.len).sum();
                Layout {
                    runs: self.runs,
                    body,
                    ..Layout::default()
                }
            }
        }
    }
}

/// `count` elements of a normalised type, ready to walk: the type's loops with the count's outside.
///
/// It is cheap to make, so each call of the packing engine makes its own.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub runs: &'a [Run],
    starts: &'a [i64],
    /// Innermost first; the unused ones have count 1.
    pub loops: [Loop; MAX_LOOPS + 1],
    /// Packed bytes of the body.
    pub body: i64,
    /// Packed bytes of everything.
    pub total: i64,
}

const ONCE: Loop = Loop {
    count: 1,
    stride: 0,
};

impl<'a> Shape<'a> {
    /// `count` elements of `layout`, `extent` apart.
    pub fn of(layout: &'a Layout, extent: i64, count: i64) -> Shape<'a> {
        Shape::new(
            &layout.runs,
            &layout.starts,
            &layout.loops,
            layout.body,
            extent,
            count,
        )
    }

    /// `count` elements that are a few runs each: a predefined type.
    pub fn of_runs(runs: &'a [Run], starts: &'a [i64], extent: i64, count: i64) -> Shape<'a> {
        let body = runs.iter().map(|r| r.len).sum();
        Shape::new(runs, starts, &[], body, extent, count)
    }

    fn new(
        runs: &'a [Run],
        starts: &'a [i64],
        inner: &[Loop],
        body: i64,
        extent: i64,
        count: i64,
    ) -> Shape<'a> {
        let mut loops = [ONCE; MAX_LOOPS + 1];
        loops[..inner.len()].copy_from_slice(inner);
        let mut total = body;
        for l in inner {
            total = total.saturating_mul(l.count);
        }
        total = total.saturating_mul(count.max(0));
        // The count continues the outermost loop where one element ends as the next begins.
        match inner.last() {
            Some(l) if l.stride.checked_mul(l.count) == Some(extent) => {
                loops[inner.len() - 1].count = l.count.saturating_mul(count.max(0));
            }
            _ => {
                loops[inner.len()] = Loop {
                    count,
                    stride: extent,
                };
            }
        }
        Shape {
            runs,
            starts,
            loops,
            body,
            total,
        }
    }

    /// Where packed byte `at` (less than `total`) lies.
    pub fn locate(&self, at: i64) -> Place {
        debug_assert!((0..self.total).contains(&at));
        let mut rest = at / self.body;
        let in_body = at % self.body;
        let mut place = Place::default();
        for (index, l) in place.index.iter_mut().zip(&self.loops) {
            *index = rest % l.count;
            rest /= l.count;
            place.base += *index * l.stride;
        }
        (place.run, place.skip) = self.locate_in_body(in_body);
        place
    }

    /// Whether all runs have one length.
    pub fn is_uniform(&self) -> bool {
        self.starts.is_empty()
    }

    /// How many whole runs from `first` on fit into `room` bytes, and their bytes.
    pub fn whole_runs(&self, first: usize, room: i64) -> (usize, i64) {
        let rest = self.runs.len() - first;
        if self.starts.is_empty() {
            let len = self.runs[first].len;
            let n = (room / len).min(rest as i64);
            return (n as usize, n * len);
        }
        let from = self.starts[first];
        if self.body - from <= room {
            return (rest, self.body - from);
        }
        // A run fits if the next one starts within the room.
        let next = self.starts[first..].partition_point(|&start| start - from <= room);
        let n = next - 1;
        (n, self.starts[first + n] - from)
    }

    fn locate_in_body(&self, at: i64) -> (usize, i64) {
        if self.runs.len() == 1 {
            return (0, at);
        }
        if self.starts.is_empty() {
            let len = self.runs[0].len;
            return ((at / len) as usize, at % len);
        }
        let run = self.starts.partition_point(|&start| start <= at) - 1;
        (run, at - self.starts[run])
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
