//! The contiguous runs of an access, with adjacent runs merged.

use crate::datatype::{Datatype, RecvBuf, Run, SendBuf};
use std::ops::Range;

/// Returns the runs that hold the first `bytes` packed bytes of `count` elements, in packed order.
pub(super) fn of(datatype: &Datatype, count: i64, bytes: i64) -> impl Iterator<Item = Run> + '_ {
    of_range(datatype, count, 0..bytes)
}

/// Returns the runs that hold the packed bytes `range` of `count` elements, in packed order.
pub(super) fn of_range(
    datatype: &Datatype,
    count: i64,
    range: Range<i64>,
) -> impl Iterator<Item = Run> + '_ {
    let whole = datatype.contiguous_bytes(count).map(|(offset, len)| {
        let len = range.end.min(len) - range.start;
        Run::new(offset + range.start, len)
    });
    let scattered = match whole {
        Some(_) => None,
        None => Some(Joined {
            runs: datatype.runs(count, range),
            last: None,
        }),
    };
    let whole = whole.filter(|run| run.len > 0);
    whole.into_iter().chain(scattered.into_iter().flatten())
}

/// Returns the runs of the first `bytes` bytes of a send buffer.
pub(super) fn of_send(buf: &SendBuf, bytes: i64) -> impl Iterator<Item = Run> + '_ {
    of(buf.datatype(), buf.count(), bytes)
}

/// Returns the runs of the first `bytes` bytes of a receive buffer.
pub(super) fn of_recv(buf: &RecvBuf, bytes: i64) -> impl Iterator<Item = Run> + '_ {
    of(buf.datatype(), buf.count(), bytes)
}

/// Iterator adapter that merges adjacent runs.
struct Joined<I> {
    runs: I,
    last: Option<Run>,
}

impl<I: Iterator<Item = Run>> Iterator for Joined<I> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = self.last.take().or_else(|| self.runs.next())?;
        for next in self.runs.by_ref() {
            if run.offset + run.len != next.offset {
                self.last = Some(next);
                break;
            }
            run.len += next.len;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Named;

    #[test]
    fn adjacent_runs_are_one_run() {
        let int = Datatype::from(Named::INT);
        let runs: Vec<Run> = of(&int, 1000, 3998).collect();
        assert_eq!(runs, [Run::new(0, 3998)]);
        // Pairs of ints with a stride of 3 ints. The second pair of element 0 is adjacent to
        // the first pair of element 1.
        let pairs = Datatype::vector(2, 2, 3, &int).expect("a type");
        pairs.commit().expect("committed");
        let runs: Vec<Run> = of(&pairs, 2, 32).collect();
        assert_eq!(runs, [Run::new(0, 8), Run::new(12, 16), Run::new(32, 8)]);
        let runs: Vec<Run> = of_range(&int, 1000, 40..48).collect();
        assert_eq!(runs, [Run::new(40, 8)]);
        let runs: Vec<Run> = of_range(&pairs, 2, 4..12).collect();
        assert_eq!(runs, [Run::new(4, 4), Run::new(12, 4)]);
        assert_eq!(of(&int, 0, 0).count(), 0);
    }
}
