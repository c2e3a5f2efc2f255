//! Conversion from placements to the normal form in `commit`:
//! repeats, joins and expands parts of a type.
//!
//! Runs are in the order of the type map, which is the order of the packed bytes.
//! Adjacent runs are merged.
//! If a type has only one part, the part keeps its loops. Several parts are expanded into runs.

use super::layout::{Layout, Loop, MAX_LOOPS, Run};

/// Maximum number of runs of a part whose loops `commit` expands.
pub const MAX_RUNS: usize = 1 << 28;

/// Error of `commit`: the normal form would have more than [`MAX_RUNS`] runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyRuns;

/// A part of a type under construction: a list of runs inside loops.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    runs: Vec<Run>,
    /// The loops around the runs, innermost first.
    loops: Vec<Loop>,
}

impl Part {
    pub fn of_runs(runs: impl Iterator<Item = Run>) -> Part {
        let mut part = Part::default();
        for run in runs {
            push_fused(&mut part.runs, run);
        }
        part
    }

    /// Converts the normal form of a finished type to a part of a new type.
    pub fn of_layout(layout: &Layout) -> Part {
        Part {
            runs: layout.body().runs().collect(),
            loops: layout.loops().to_vec(),
        }
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the run of a part that is one run without loops.
    fn single(&self) -> Option<Run> {
        match (self.runs.as_slice(), self.loops.as_slice()) {
            ([run], []) => Some(*run),
            _ => None,
        }
    }

    /// Returns the memory of `count` repetitions as one run, if it is contiguous.
    /// Repetitions are `extent` bytes apart.
    pub fn contiguous(&self, extent: i64, count: i64) -> Option<Run> {
        if self.is_empty() || count == 0 {
            return Some(Run::new(0, 0));
        }
        let run = self.single()?;
        (count == 1 || run.len == extent).then_some(Run::new(run.offset, run.len * count))
    }

    /// Repeats the part `count` times, `stride` bytes apart.
    pub fn repeated(mut self, count: i64, stride: i64) -> Result<Part, TooManyRuns> {
        if count == 0 || self.is_empty() {
            return Ok(Part::default());
        }
        if count == 1 {
            return Ok(self);
        }
        if let Some(run) = self.contiguous(stride, count) {
            return Ok(Part::of_runs([run].into_iter()));
        }
        match self.loops.last_mut() {
            Some(outer) if outer.ends_at(stride) => outer.count *= count,
            _ => self.loops.push(Loop { count, stride }),
        }
        while self.loops.len() > MAX_LOOPS {
            self.write_out_innermost()?;
        }
        Ok(self)
    }

    fn write_out_innermost(&mut self) -> Result<(), TooManyRuns> {
        let inner = [self.loops.remove(0)];
        let mut runs = Vec::new();
        write_out(&inner, &self.runs, 0, &mut runs)?;
        self.runs = runs;
        Ok(())
    }

    /// Returns the normal form, in which a list of equal runs at a constant stride is a loop.
    pub fn finish(mut self) -> Layout {
        if self.loops.len() < MAX_LOOPS
            && let Some((run, inner)) = as_regular(&self.runs)
        {
            self.runs = vec![run];
            match self.loops.first_mut() {
                Some(outer) if inner.ends_at(outer.stride) => {
                    *outer = Loop {
                        count: inner.count * outer.count,
                        stride: inner.stride,
                    };
                }
                _ => self.loops.insert(0, inner),
            }
        }
        Layout::new(&self.runs, self.loops)
    }
}

/// Consecutive parts of a type, in packed order.
#[derive(Default)]
pub struct Sequence {
    only: Option<Part>,
    runs: Vec<Run>,
}

impl Sequence {
    /// Appends `part`, shifted by `offset` bytes.
    pub fn push(&mut self, mut part: Part, offset: i64) -> Result<(), TooManyRuns> {
        if part.is_empty() {
            return Ok(());
        }
        if self.only.is_none() && self.runs.is_empty() {
            for run in &mut part.runs {
                run.offset += offset;
            }
            self.only = Some(part);
            return Ok(());
        }
        self.settle()?;
        write_out(&part.loops, &part.runs, offset, &mut self.runs)
    }

    /// Appends one run without building a part of one run.
    pub fn push_run(&mut self, run: Run) -> Result<(), TooManyRuns> {
        if run.len == 0 {
            return Ok(());
        }
        self.settle()?;
        push_limited(&mut self.runs, run)
    }

    fn settle(&mut self) -> Result<(), TooManyRuns> {
        match self.only.take() {
            Some(first) => write_out(&first.loops, &first.runs, 0, &mut self.runs),
            None => Ok(()),
        }
    }

    pub fn finish(self) -> Part {
        self.only.unwrap_or(Part {
            runs: self.runs,
            loops: Vec::new(),
        })
    }
}

/// Returns one run and a loop if the runs have the same length and a constant stride.
fn as_regular(runs: &[Run]) -> Option<(Run, Loop)> {
    let [first, second, ..] = runs else {
        return None;
    };
    let stride = second.offset - first.offset;
    let count = runs.len() as i64;
    runs.windows(2)
        .all(|w| w[1].len == w[0].len && w[1].offset - w[0].offset == stride)
        .then_some((*first, Loop { count, stride }))
}

/// Appends the runs of all repetitions of the loops, shifted by `offset` bytes.
fn write_out(
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
            .try_for_each(|k| write_out(inner, runs, offset + k * outer.stride, out)),
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
