//! Two-level aggregation of collective accesses, for several nodes with several members each.
//! Each node merges its members' pieces in shared memory. One rank per node, the leader, exchanges them
//! with other nodes (Q. Kang, S. Lee, K. Hou, R. Ross, A. Agrawal, A. Choudhary, W. Liao,
//! "Improving MPI collective I/O for high volume non-contiguous requests
//! with intra-node aggregation", TPDS 2020).
//!
//! Each leader holds buffers for all aggregators ([`super::shm_aggregation`]).
//! The members of the node copy their pieces into these buffers and mark the copied bytes.
//! After a barrier of the node, the leader sends each aggregator the marked ranges of its buffer.
//! Adjacent pieces of the node's members are then one range. Only leaders are aggregators.
//! Each aggregator copies received ranges into its own buffer and writes the marked bytes.
//! In a read, the marks are the requested bytes. The leader stores the replies in the buffers,
//! and the members copy their pieces from these buffers.
//!
//! A single range is sent from buffer to buffer in place. Several ranges are encoded as a list or
//! a bitmap ([`super::extent_codec`]). So the memory use does not depend on the number of pieces.
#![allow(unsafe_code)]

use super::bitmap::Summary;
use super::exchange::Exchange;
use super::extent_codec::{Extents, encode};
use super::plan::Plan;
use super::shm_buffer::ShmBuffer;
use super::two_phase::exchange;
use crate::Error;
use crate::access::read_all;
use crate::comm::Comm;
use crate::disk::Disk;
use crate::error::IoError;
use crate::group::Group;
use std::ops::Range;

/// The two communicators derived from the communicator of a file.
pub(crate) struct TwoLevel {
    local: Comm,
    /// At leaders, the communicator of the leaders of all nodes in rank order; else `None`.
    leaders: Option<Comm>,
}

impl TwoLevel {
    /// Creates the communicators; collective. `nodes` contains the node of each member.
    pub fn new(comm: &Comm, nodes: &[u64]) -> Result<Option<TwoLevel>, Error> {
        let here = nodes.get(comm.rank() as usize).copied();
        let ranks = (0..).zip(nodes);
        let group = |ranks: Vec<u32>| {
            let procs = ranks.into_iter().filter_map(|rank| comm.group().proc(rank));
            Group::from_procs(procs.collect())
        };
        let neighbours = ranks.clone().filter(|(_, node)| Some(**node) == here);
        let neighbours = group(neighbours.map(|(rank, _)| rank).collect());
        let leads = |(rank, node): &(u32, &u64)| !nodes[..*rank as usize].contains(node);
        let leading = group(ranks.filter(leads).map(|(rank, _)| rank).collect());
        let block_on = |group| {
            comm.engine()
                .block_on(comm.constructors().create_for_steps(group))
        };
        let local = block_on(&neighbours);
        // Executed even if the first creation has failed, because leaders of other nodes wait for it.
        let leaders = block_on(&leading);
        Ok(match (local?, leaders?) {
            (Some(local), leaders) => Some(TwoLevel { local, leaders }),
            // Every rank is in the group of its own node, so this case is impossible.
            (None, _) => None,
        })
    }

    /// Returns the communicator of this node's members; its rank 0 is the leader.
    pub fn local(&self) -> &Comm {
        &self.local
    }

    /// Sends each aggregator this node's data of a round, and writes the data that it receives.
    /// The inner result is that of this rank's own file accesses, the outer that of the messages.
    pub fn write_out<'a>(
        &self,
        (plan, buffers): (&Plan, &dyn Fn(usize, i64) -> ShmBuffer<'a>),
        disk: &Disk,
        round: i64,
    ) -> Result<Result<(), IoError>, Error> {
        let Some(leaders) = &self.leaders else {
            return Ok(Ok(()));
        };
        let me = i64::from(leaders.rank());
        let aggregators = i64::from(plan.aggregators());
        let buffer = |aggregator: i64| buffers(aggregator as usize, round);
        let message = |aggregator| match aggregator == me {
            true => Vec::new(),
            false => merged(&buffer(aggregator)),
        };
        let come = exchange(leaders, plan, (0..aggregators).map(message).collect())?;
        let mut outcome = Ok(());
        if me < aggregators {
            let base = plan.part(round, me);
            for message in &come {
                take_in(&buffer(me), message);
            }
            outcome = buffer(me).write_out(disk, base);
        }
        (0..aggregators).for_each(|aggregator| buffer(aggregator).clear());
        Ok(outcome)
    }

    /// Reads, as an aggregator, the bytes marked in a round, and exchanges them between leaders.
    /// Replies of other aggregators are copied to the marked bytes of this leader's buffers.
    /// The inner result is that of this rank's own reads, the outer one that of the messages.
    pub fn fetch<'a>(
        &self,
        (plan, buffers): (&Plan, &dyn Fn(usize, i64) -> ShmBuffer<'a>),
        disk: &Disk,
        round: i64,
    ) -> Result<Result<(), IoError>, Error> {
        let Some(leaders) = &self.leaders else {
            return Ok(Ok(()));
        };
        let me = leaders.rank() as usize;
        let aggregators = 0..plan.aggregators() as usize;
        let buffer = |aggregator: usize| buffers(aggregator, round);
        let base = |aggregator: usize| plan.part(round, aggregator as i64);
        let wanted: Vec<Summary> = aggregators
            .clone()
            .map(|aggregator| buffer(aggregator).summary())
            .collect();
        let asks = |(aggregator, summary): (usize, &Summary)| match aggregator == me {
            true => Vec::new(),
            false => encode(&buffer(aggregator), summary),
        };
        let come = exchange(leaders, plan, wanted.iter().enumerate().map(asks).collect())?;
        let (mut outcome, mut answers) = (Ok(()), Vec::new());
        if aggregators.contains(&me) {
            let asked = come
                .iter()
                .map(|message| Extents::read(message, buffer(me).part()).0);
            let asked: Vec<Extents<'_>> = asked.collect();
            let spans = asked
                .iter()
                .map(Extents::summary)
                .chain([wanted[me].clone()]);
            let end = match read_in(disk, &mut buffer(me), base(me), spans) {
                Ok(end) => end,
                Err(error) => {
                    outcome = Err(error);
                    0
                }
            };
            buffer(me).ends_at(in_file(base(me), end));
            let answer = |extents: &Extents<'_>| Answer::of(&buffer(me), extents, end);
            answers = asked.iter().map(answer).collect();
        }
        // A single range is received directly into the buffer.
        let dest = |(from, summary): (usize, &Summary)| match summary.count {
            0 | 1 => Vec::new(),
            _ if from == me => Vec::new(),
            _ => vec![0; summary.bytes],
        };
        let mut dests: Vec<Vec<u8>> = wanted.iter().enumerate().map(dest).collect();
        let mut exchange = Exchange::new(leaders);
        for (from, (summary, dest)) in wanted.iter().zip(&mut dests).enumerate() {
            if from == me || summary.count == 0 {
                continue;
            }
            let mut buffer = buffer(from);
            let dest = match summary.only() {
                Some(range) => &mut buffer.up_to(range.end)[range.start..],
                None => &mut dest[..],
            };
            // SAFETY: no other code uses `dest` until `exchange.done` below (or its drop) returns.
            // `dest` is a separate `Vec`, or a part of the buffer; until the node's next barrier
            // only the leader uses the buffer.
            unsafe { exchange.expect(from, dest.as_mut_ptr(), dest.len())? };
        }
        for (to, answer) in answers.iter().enumerate() {
            if to != me && !come[to].is_empty() {
                // SAFETY: the answer and the buffer stay unchanged until `exchange.done` returns.
                unsafe { exchange.send(to, answer.bytes())? };
            }
        }
        for (from, bytes) in exchange.done()? {
            let buffer = buffer(from);
            let end = match wanted[from].only() {
                Some(range) if bytes == range.len() => usize::MAX,
                Some(range) => range.start + bytes,
                None => put_back(&buffer, &dests[from][..bytes]),
            };
            buffer.ends_at(in_file(base(from), end));
        }
        aggregators.for_each(|aggregator| buffer(aggregator).clear());
        Ok(outcome)
    }
}

/// Returns the file offset of offset `place` in a part that begins at `base`; saturates.
fn in_file(base: i64, place: usize) -> i64 {
    i64::try_from(place).map_or(i64::MAX, |place| base.saturating_add(place))
}

/// The reply of an aggregator to another leader.
enum Answer<'a> {
    Stretch(&'a [u8]),
    Gathered(Vec<u8>),
}

impl<'a> Answer<'a> {
    /// Collects the requested bytes from a buffer whose contents are valid up to offset `end`.
    fn of(buffer: &ShmBuffer<'a>, extents: &Extents<'_>, end: usize) -> Answer<'a> {
        let there = |range: &Range<usize>| buffer.bytes(range.start..range.end.min(end));
        let summary = extents.summary();
        if let Some(one) = summary.only() {
            return Answer::Stretch(there(&one));
        }
        let mut data = Vec::with_capacity(summary.bytes);
        extents.each(|range| {
            data.extend_from_slice(there(&range));
            range.end <= end
        });
        Answer::Gathered(data)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Answer::Stretch(bytes) => bytes,
            Answer::Gathered(bytes) => bytes,
        }
    }
}

/// Reads the span of the requested bytes of a part into `buffer` by [`read_all`].
/// Returns the offset in the part at which the file ends,
/// or `usize::MAX` if nothing is requested or the file does not end within the span.
fn read_in(
    disk: &Disk,
    buffer: &mut ShmBuffer<'_>,
    base: i64,
    wanted: impl Iterator<Item = Summary>,
) -> Result<usize, IoError> {
    let spans = wanted.filter(|one| one.count > 0).map(|one| one.span);
    let Some(span) = spans.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else {
        return Ok(usize::MAX);
    };
    let dest = &mut buffer.up_to(span.end)[span.start..];
    match span.start + read_all(disk, dest, base + span.start as i64)? {
        // The file may be longer, but no member requests bytes beyond the span.
        end if end == span.end => Ok(usize::MAX),
        end => Ok(end),
    }
}

/// Returns a message with the marked ranges and their bytes; empty if no range is marked.
fn merged(buffer: &ShmBuffer<'_>) -> Vec<u8> {
    let mut message = encode(buffer, &buffer.summary());
    buffer.each_marked(|range| message.extend_from_slice(buffer.bytes(range)));
    message
}

/// Copies the data of a message into the aggregator's buffer, and marks the copied bytes.
fn take_in(buffer: &ShmBuffer<'_>, message: &[u8]) {
    let (extents, mut data) = Extents::read(message, buffer.part());
    extents.each(|range| {
        let Some((bytes, rest)) = data.split_at_checked(range.len()) else {
            return false;
        };
        buffer.put(range.start, bytes);
        buffer.mark(range);
        data = rest;
        true
    });
}

/// Copies a reply's data to the marked ranges. Returns the offset in the part where the data end,
/// or `usize::MAX` if the data fill all marked ranges.
fn put_back(buffer: &ShmBuffer<'_>, mut data: &[u8]) -> usize {
    let ends = buffer.marked(|range| {
        let there = data.len().min(range.len());
        let (bytes, rest) = data.split_at(there);
        buffer.put(range.start, bytes);
        data = rest;
        match there == range.len() {
            true => Ok(()),
            false => Err(range.start + there),
        }
    });
    ends.err().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::shm_buffer::len_of;

    const PART: usize = 256;

    fn with_buffer(test: impl FnOnce(ShmBuffer<'_>)) {
        let mut memory = vec![0u64; len_of(PART) / 8 + 1];
        // SAFETY: the test owns the memory, which has `len_of(PART)` bytes.
        test(unsafe { ShmBuffer::new(memory.as_mut_ptr().cast(), PART) });
    }

    #[test]
    fn neighbouring_pieces_of_a_node_are_one_stretch_of_the_message_and_arrive_where_they_belong() {
        let mut message = Vec::new();
        with_buffer(|buffer| {
            for (at, bytes) in [(4, [1u8; 4]), (0, [2; 4]), (100, [3; 4])] {
                buffer.put(at, &bytes);
                buffer.mark(at..at + bytes.len());
            }
            assert_eq!(buffer.summary().count, 2);
            message = merged(&buffer);
        });
        with_buffer(|buffer| {
            take_in(&buffer, &message);
            assert_eq!(buffer.bytes(0..8), [2, 2, 2, 2, 1, 1, 1, 1]);
            assert_eq!(buffer.bytes(100..104), [3; 4]);
            let mut found = Vec::new();
            buffer.each_marked(|range| found.push(range));
            assert_eq!(found, [0..8, 100..104]);
            buffer.clear();
            assert!(merged(&buffer).is_empty());
        });
    }

    #[test]
    fn an_answer_that_ends_early_says_where_the_file_ends() {
        for (data, end) in [
            (&[7u8; 12][..], usize::MAX),
            (&[7; 6], 12),
            (&[7; 4], 10),
            (&[], 0),
        ] {
            with_buffer(|buffer| {
                for range in [0..4, 10..14, 20..24] {
                    buffer.mark(range);
                }
                assert_eq!(put_back(&buffer, data), end, "{} bytes", data.len());
                let first = data.len().min(4);
                assert_eq!(buffer.bytes(0..first), &data[..first]);
            });
        }
    }

    #[test]
    fn an_answer_has_what_is_named_as_far_as_the_file_goes() {
        let mut question = Vec::new();
        with_buffer(|buffer| {
            buffer.mark(0..4);
            buffer.mark(10..14);
            question = encode(&buffer, &buffer.summary());
        });
        with_buffer(|buffer| {
            buffer.put(0, &[1, 2, 3, 4]);
            buffer.put(10, &[5, 6, 7, 8]);
            let extents = Extents::read(&question, PART).0;
            let answer = |end| Answer::of(&buffer, &extents, end).bytes().to_vec();
            assert_eq!(answer(usize::MAX), [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(answer(12), [1, 2, 3, 4, 5, 6]);
            assert_eq!(answer(3), [1, 2, 3]);
        });
    }
}
