//! Collective accesses of several nodes with several members each: what a node has is merged in its memory, and one rank of each node,
//! the leader, sends it on (two-level aggregation; Q. Kang, S. Lee, K. Hou, R. Ross, A. Agrawal, A. Choudhary, W. Liao,
//! "Improving MPI collective I/O for high volume non-contiguous requests with intra-node aggregation", TPDS 2020).
//!
//! The leader's memory has the buffers of all aggregators ([`super::staged`]), in which the members of the node copy and mark their pieces.
//! When these have met, the leader sends each aggregator the stretches that are marked in its buffer: neighbouring pieces of a node have
//! become one. Aggregators are leaders; each puts what comes into its own buffer and writes what is marked there.
//! Reading, the marks say what is wanted, and what comes back goes into the buffers, from which the members copy.
//!
//! Messages are those of [`super::two_phase`], with leaders in place of ranks.

use super::disk::Disk;
use super::error::IoError;
use super::plan::Plan;
use super::stage::Stage;
use super::staged::Stages;
use super::two_phase::{Piece, asked, exchange, heads, parsed};
use crate::Error;
use crate::comm::Comm;
use crate::group::Group;

/// The two communicators below a file's.
pub(super) struct Across {
    local: Comm,
    /// At leaders: those of all nodes, in the order of their ranks.
    leaders: Option<Comm>,
}

impl Across {
    /// Makes them; every member calls, with the node of each.
    pub fn new(comm: &Comm, nodes: &[u64]) -> Result<Option<Across>, Error> {
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
        let block_on = |group| comm.engine().block_on(comm.create_for_steps(group));
        let local = block_on(&neighbours);
        // Also where the first has failed: the leaders of other nodes wait for this one.
        let leaders = block_on(&leading);
        Ok(match (local?, leaders?) {
            (Some(local), leaders) => Some(Across { local, leaders }),
            // A rank is among its own neighbours.
            (None, _) => None,
        })
    }

    /// The members of this node, the leader first.
    pub fn local(&self) -> &Comm {
        &self.local
    }

    /// Sends each aggregator what this node has for it in a round, and writes what has come. The inner error is this rank's own.
    pub fn write_out(
        &self,
        (plan, stages): (&Plan, &Stages),
        disk: &Disk,
        round: i64,
    ) -> Result<Result<(), IoError>, Error> {
        let Some(leaders) = &self.leaders else {
            return Ok(Ok(()));
        };
        let me = i64::from(leaders.rank());
        let aggregators = i64::from(plan.aggregators());
        let buffer = |aggregator: i64| stages.stage(aggregator as usize, round);
        let message = |aggregator| match aggregator == me {
            true => Vec::new(),
            false => merged(&buffer(aggregator), plan.part(round, aggregator)),
        };
        let come = exchange(leaders, plan, (0..aggregators).map(message).collect())?;
        let mut outcome = Ok(());
        if me < aggregators {
            let base = plan.part(round, me);
            for message in &come {
                take_in(&buffer(me), (base, plan.part_bytes()), message);
            }
            outcome = buffer(me).write_out(disk, base);
        }
        (0..aggregators).for_each(|aggregator| buffer(aggregator).clear());
        Ok(outcome)
    }

    /// Has the aggregators read what is marked in a round, and puts it where it is marked. The inner error is this rank's own.
    pub fn fetch(
        &self,
        (plan, stages): (&Plan, &Stages),
        disk: &Disk,
        round: i64,
    ) -> Result<Result<(), IoError>, Error> {
        let Some(leaders) = &self.leaders else {
            return Ok(Ok(()));
        };
        let aggregators = 0..i64::from(plan.aggregators());
        let buffer = |aggregator: i64| stages.stage(aggregator as usize, round);
        let wanted: Vec<_> = aggregators
            .map(|aggregator| marked(&buffer(aggregator), plan.part(round, aggregator)))
            .collect();
        let (there, outcome) = asked(leaders, plan, disk, round, &wanted, &mut Vec::new())?;
        for (aggregator, (pieces, data)) in (0..).zip(wanted.iter().zip(&there)) {
            put_back(
                &buffer(aggregator),
                plan.part(round, aggregator),
                pieces,
                data,
            );
            buffer(aggregator).clear();
        }
        Ok(outcome)
    }
}

/// The stretches that are marked in a buffer, whose first byte is `base` of the file.
fn marked(stage: &Stage<'_>, base: i64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Nothing fails here.
    let _ = stage.marked(|range| {
        pieces.push(Piece {
            offset: base + range.start as i64,
            len: range.len() as i64,
            at: 0,
        });
        Ok(())
    });
    pieces
}

/// The message about what is marked, with its bytes; empty if nothing is.
fn merged(stage: &Stage<'_>, base: i64) -> Vec<u8> {
    let pieces = marked(stage, base);
    if pieces.is_empty() {
        return Vec::new();
    }
    let mut message = heads(&pieces);
    for piece in &pieces {
        let at = (piece.offset - base) as usize;
        message.extend_from_slice(stage.bytes(at..at + piece.len as usize));
    }
    message
}

/// Puts what a message brings into the buffer of its part, and marks it.
fn take_in(stage: &Stage<'_>, part: (i64, i64), message: &[u8]) {
    let (named, mut data) = parsed(message, part);
    for (offset, len) in named {
        let Some((bytes, rest)) = data.split_at_checked(len as usize) else {
            return;
        };
        let at = (offset - part.0) as usize;
        stage.put(at, bytes);
        stage.mark(at..at + bytes.len());
        data = rest;
    }
}

/// Puts bytes of the file where they are wanted, and says where they end.
fn put_back(stage: &Stage<'_>, base: i64, pieces: &[Piece], mut data: &[u8]) {
    for piece in pieces {
        let there = data.len().min(piece.len as usize);
        let (bytes, rest) = data.split_at(there);
        stage.put((piece.offset - base) as usize, bytes);
        data = rest;
        if (there as i64) < piece.len {
            return stage.ends_at(piece.offset + there as i64);
        }
    }
    stage.ends_at(i64::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::stage::len_of;

    const PART: usize = 256;
    const BASE: i64 = 1000;

    fn with_stage(test: impl FnOnce(Stage<'_>)) {
        let mut memory = vec![0u64; len_of(PART) / 8 + 1];
        // SAFETY: the memory is the test's, and long enough.
        test(unsafe { Stage::new(memory.as_mut_ptr().cast(), PART) });
    }

    #[test]
    fn neighbouring_pieces_of_a_node_are_one_stretch_of_the_message_and_arrive_where_they_belong() {
        let mut message = Vec::new();
        with_stage(|stage| {
            for (at, bytes) in [(4, [1u8; 4]), (0, [2; 4]), (100, [3; 4])] {
                stage.put(at, &bytes);
                stage.mark(at..at + bytes.len());
            }
            message = merged(&stage, BASE);
        });
        let part = (BASE, PART as i64);
        assert_eq!(parsed(&message, part).0, [(1000, 8), (1100, 4)]);
        with_stage(|stage| {
            take_in(&stage, part, &message);
            assert_eq!(stage.bytes(0..8), [2, 2, 2, 2, 1, 1, 1, 1]);
            assert_eq!(stage.bytes(100..104), [3; 4]);
            let found: Vec<_> = marked(&stage, BASE)
                .iter()
                .map(|piece| (piece.offset, piece.len))
                .collect();
            assert_eq!(found, [(1000, 8), (1100, 4)]);
            stage.clear();
            assert!(merged(&stage, BASE).is_empty());
        });
    }

    #[test]
    fn an_answer_that_ends_early_says_where_the_file_ends() {
        let piece = |offset, len| Piece { offset, len, at: 0 };
        let pieces = [piece(1000, 4), piece(1010, 4), piece(1020, 4)];
        for (data, end) in [
            (&[7u8; 12][..], i64::MAX),
            (&[7; 6], 1012),
            (&[7; 4], 1010),
            (&[], 1000),
        ] {
            with_stage(|stage| {
                put_back(&stage, BASE, &pieces, data);
                assert_eq!(stage.end(), end, "{} bytes", data.len());
                let first = data.len().min(4);
                assert_eq!(stage.bytes(0..first), &data[..first]);
            });
        }
    }
}
