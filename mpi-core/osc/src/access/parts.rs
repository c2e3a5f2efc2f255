//! The parts of an access to attached regions that are reached by different methods,
//! for example memory of `MPI_Alloc_mem`, which is mapped, and memory of `malloc`, which the kernel copies.

use crate::datatype::Run;
use crate::direct::apply::Memory;
use crate::error::{OscClass, OscError};
use crate::win::Win;
use std::ops::Range;

/// The parts of an access, in packed order.
pub(crate) struct Parts<'a> {
    /// The address of the target's displacement, to which the offsets of all runs are relative.
    pub address: u64,
    pub parts: Vec<Part<'a>>,
}

/// Packed bytes of an access that are reached by one method.
pub(crate) struct Part<'a> {
    pub packed: Range<i64>,
    /// The memory, for the runs of these packed bytes only; `None` for access by messages.
    pub memory: Option<Memory<'a>>,
}

impl Part<'_> {
    /// Returns true if `other` is the same memory, reached by the same method.
    /// Both belong to one target and one displacement.
    pub fn is_reached_as(&self, other: Option<&Memory<'_>>) -> bool {
        let method = |memory: &Memory<'_>| (memory.reach, memory.locked);
        self.memory.as_ref().map(method) == other.map(method)
    }

    /// Returns the packed bytes of the part, up to byte `bytes` of the access.
    pub fn up_to(&self, bytes: i64) -> Range<i64> {
        self.packed.start.min(bytes)..self.packed.end.min(bytes)
    }
}

/// Fails if a basic element of `size` packed bytes belongs to two parts.
/// Such an element could not be updated at once.
pub(crate) fn check_elements(
    win: &Win,
    parts: &[Part<'_>],
    rank: u32,
    size: usize,
) -> Result<(), OscError> {
    let is_whole = |part: &Part<'_>| part.packed.end % size as i64 == 0;
    if parts.iter().all(is_whole) {
        return Ok(());
    }
    let sentence = format!(
        "an element of an accumulate to rank {rank} through {} is in two attached regions, which are not reached by the same method",
        win.label()
    );
    Err(OscError::new(OscClass::Range, sentence))
}

/// Returns the bytes `range` of the packed bytes of `runs`, as runs.
pub(crate) fn cut(runs: impl Iterator<Item = Run>, range: Range<i64>) -> impl Iterator<Item = Run> {
    let mut end = 0;
    runs.filter_map(move |run| {
        let start = end;
        end += run.len;
        let (from, to) = (range.start.max(start), range.end.min(end));
        (from < to).then(|| Run::new(run.offset + (from - start), to - from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_has_exactly_the_bytes_of_its_range() {
        let runs = [Run::new(100, 4), Run::new(-8, 6), Run::new(50, 2)];
        let bytes = |range: Range<i64>| -> Vec<i64> {
            let cut = cut(runs.iter().copied(), range);
            cut.flat_map(|run| run.offset..run.offset + run.len)
                .collect()
        };
        let all = bytes(0..12);
        assert_eq!(all, [100, 101, 102, 103, -8, -7, -6, -5, -4, -3, 50, 51]);
        for start in 0..12 {
            for end in start..=12 {
                assert_eq!(bytes(start..end), all[start as usize..end as usize]);
            }
        }
    }
}
