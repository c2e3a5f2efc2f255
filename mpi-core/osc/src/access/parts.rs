//! Accesses to attached regions that are reached by different methods,
//! for example memory of `MPI_Alloc_mem`, which is mapped, and memory of `malloc`, which the kernel copies.
//!
//! Each region is reached by the method that an access to this region alone would use.
//! So accumulates of all origins exclude each other, and accesses of one origin stay in order.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::accumulate::Accumulates;
use crate::access::location::Accesses;
use crate::datatype::{RecvBuf, Run, SendBuf};
use crate::direct::apply::{Combine, Memory};
use crate::direct::pieces::Buffers;
use crate::error::{OscClass, OscError};
use crate::op::Predefined;
use crate::request::Req;
use crate::runs;
use crate::state::target::Target;
use crate::target_args::TargetArgs;
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

    fn up_to(&self, bytes: i64) -> Range<i64> {
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

impl Accesses<'_> {
    /// `MPI_Put` to the parts.
    pub(super) fn put_parts(
        self,
        target: &Target,
        parts: &Parts<'_>,
        origin: &SendBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<(), Error> {
        // The origin buffer may overlap the target's memory, which may be this process's.
        let data = origin.to_vec();
        let bytes = data.len() as i64;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                let at = (parts.address, range);
                self.win().messages().put(target, at, origin, target_args)?;
                continue;
            };
            let mut rest = &data[range.start as usize..];
            for run in runs::of_range(target_args.datatype, target_args.count, range) {
                let (now, later) = rest.split_at(run.len as usize);
                rest = later;
                // SAFETY: the run belongs to the packed bytes of this part, whose memory holds them.
                let done = unsafe { memory.write(run.offset, now) };
                done.map_err(|why| self.unreachable(target, "write to", bytes, why))?;
            }
        }
        Ok(())
    }

    /// `MPI_Get` from the parts. Returns a request if data have not arrived yet.
    pub(super) fn get_parts(
        self,
        target: &Target,
        parts: &Parts<'_>,
        origin: &mut RecvBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let bytes = target_args.datatype.bytes(target_args.count);
        let mut last = None;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                // The target replies in the order of the requests, so the last request suffices.
                self.win().accumulates().give_up(last.take());
                let at = (parts.address, range);
                last = self.win().messages().get(target, at, origin, target_args)?;
                continue;
            };
            let mut data = vec![0; (range.end - range.start) as usize];
            let mut rest = &mut data[..];
            for run in runs::of_range(target_args.datatype, target_args.count, range.clone()) {
                let (now, later) = rest.split_at_mut(run.len as usize);
                rest = later;
                // SAFETY: the run belongs to the packed bytes of this part, whose memory holds them.
                let done = unsafe { memory.read(run.offset, now) };
                done.map_err(|why| self.unreachable(target, "read from", bytes, why))?;
            }
            origin.unpack_at(range.start, &data);
        }
        Ok(last)
    }
}

impl Accumulates<'_> {
    /// Updates the first `bytes` packed bytes of the target's elements, in all parts.
    /// Returns a request if old elements have not arrived yet.
    pub(super) fn update_parts(
        self,
        (target, parts): (&Target, &Parts<'_>),
        combine: &Combine,
        target_args: &TargetArgs<'_>,
        buffers: Buffers<'_>,
        bytes: i64,
    ) -> Result<Option<Req>, Error> {
        check_elements(self.win(), &parts.parts, target.rank, combine.size())?;
        let Buffers { origin, mut result } = buffers;
        let reads_nothing = combine.op() == Predefined::NoOp;
        let input = match reads_nothing {
            true => Vec::new(),
            false => origin.to_vec(),
        };
        let mut last = None;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                // The target replies in the order of the requests, so the last request suffices.
                self.give_up(last.take());
                let at = (parts.address, range);
                let result = result.as_deref();
                let messages = self.win().messages();
                last = messages.accumulate(target, at, combine, &input, target_args, result)?;
                continue;
            };
            let given = match reads_nothing {
                true => &[],
                false => &input[range.start as usize..range.end as usize],
            };
            let wanted = result.as_ref().map(|_| (range.end - range.start) as usize);
            let mut old = vec![0; wanted.unwrap_or(0)];
            let runs = runs::of_range(target_args.datatype, target_args.count, range.clone());
            // SAFETY: the runs are the packed bytes of this part, whose memory holds them.
            let done = unsafe {
                let old = wanted.map(|_| &mut old[..]);
                combine.run(memory, runs, given, old)
            };
            done.map_err(|why| {
                self.win()
                    .accesses()
                    .unreachable(target, "update", bytes, why)
            })?;
            if let Some(result) = &mut result {
                result.unpack_at(range.start, &old);
            }
        }
        Ok(last)
    }
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
