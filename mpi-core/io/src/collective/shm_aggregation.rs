//! Two-phase collective I/O through a node's shared memory, without messages and lists of pieces.
//!
//! Each aggregator has two buffers ([`ShmBuffer`]) in a window of shared memory.
//! A buffer holds one part of the file: [`Plan::part_bytes`] contiguous bytes.
//! In round r of a write, every rank copies its pieces to buffers r mod 2, and marks the bytes.
//! After a barrier, the aggregators write the marked bytes and clear the marks.
//! At the same time, the other ranks copy the pieces of the next round into the other buffers.
//! In a read, the aggregators read round r + 1 into one buffer,
//! while all ranks copy their pieces of round r from the other buffer.
//!
//! One barrier per round is enough: the buffers r mod 2 are used again after barrier r + 1,
//! and an aggregator enters barrier r + 1 only after it has written round r.
//!
//! With members on several nodes, the leader of each node holds the buffers of all aggregators.
//! The leaders exchange data between two barriers of each node ([`TwoLevel`]).
//! In a read, each rank then marks its requested bytes one round ahead.
//!
//! Runs of at least [`LONG`](super::plan::LONG) bytes do not use the buffers,
//! because copying them twice costs more than a system call.
//! A write does not mark these runs, so the aggregators do not write them.
//!
//! Every rank enters every barrier, even after an error, so that no rank waits indefinitely.
#![allow(unsafe_code)]

use super::node_map::NodeMap;
use super::piece_iter::{Piece, Sink, Source, for_each_piece};
use super::plan::{LONG, Plan};
use super::shm_buffer::{ShmBuffer, len_of, rounded};
use super::two_level::TwoLevel;
use crate::Error;
use crate::access::{read_all, write_all};
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::disk::Disk;
use crate::error::IoError;
use crate::osc::{Flavor, Hints, Spec, Win, is_direct_allowed};
use crate::view::View;
use mpi_base::node::Contents;

/// The buffers of all aggregators, in memory that all members of a node share.
pub(crate) struct ShmBuffers {
    win: Win,
    /// The address of the two buffers of each aggregator.
    bases: Vec<*mut u8>,
    part: usize,
    two_level: Option<TwoLevel>,
}

impl ShmBuffers {
    /// Creates the buffers; collective. Returns `None` if windows must not be accessed directly,
    /// if the node's memory is exhausted, or if each of several nodes has only one member.
    pub fn new(comm: &Comm, node_map: &NodeMap, plan: &Plan) -> Result<Option<ShmBuffers>, Error> {
        match node_map.has_levels() {
            true => ShmBuffers::of_leaders(comm, plan),
            false => ShmBuffers::of_aggregators(comm, plan),
        }
    }

    fn window(comm: &Comm, size: usize) -> Result<Win, Error> {
        let spec = Spec {
            flavor: Flavor::Shared,
            base: std::ptr::null_mut(),
            size: size as u64,
            unit: 1,
            hints: Hints {
                no_locks: true,
                noncontiguous: true,
                contents: Contents::Any,
                ..Hints::default()
            },
        };
        Win::new(comm, &spec)
    }

    /// Creates the buffers if all members are on one node: each aggregator allocates its own.
    fn of_aggregators(comm: &Comm, plan: &Plan) -> Result<Option<ShmBuffers>, Error> {
        let engine = comm.engine();
        // If this process finds all members on its node, every other member finds the same.
        let all_here = engine.place().members_here(comm.group()).count() == comm.size() as usize;
        if !all_here || !is_direct_allowed(engine.params()) {
            return Ok(None);
        }
        let part = rounded(plan.part_bytes());
        let aggregates = comm.rank() < plan.aggregators();
        let size = if aggregates { 2 * len_of(part) } else { 0 };
        // All members succeed or none does. After a failure the members use messages.
        let Ok(win) = ShmBuffers::window(comm, size) else {
            return Ok(None);
        };
        let base = |rank| {
            win.memory()
                .shared_segment(rank)
                .map(|segment| segment.base)
        };
        let bases = (0..plan.aggregators() as i32).map(base);
        let bases = match bases.collect::<Result<_, _>>() {
            Ok(bases) => bases,
            Err(error) => {
                win.abandon();
                return Err(error);
            }
        };
        let buffers = ShmBuffers {
            bases,
            win,
            part,
            two_level: None,
        };
        if aggregates {
            buffers.clear(comm.rank() as usize);
        }
        let outcome = comm.internal().fence_now();
        buffers.unless_failed(outcome).map(Some)
    }

    /// Returns the buffers after a success. Otherwise abandons the window without freeing it:
    /// other members may have succeeded and use it.
    fn unless_failed(self, outcome: Result<(), Error>) -> Result<ShmBuffers, Error> {
        match outcome {
            Ok(()) => Ok(self),
            Err(error) => {
                self.win.abandon();
                Err(error)
            }
        }
    }

    /// Creates the buffers on several nodes: each leader allocates buffers for all aggregators.
    fn of_leaders(comm: &Comm, plan: &Plan) -> Result<Option<ShmBuffers>, Error> {
        let engine = comm.engine();
        let nodes = comm.internal().share_now(&[engine.place().node_id()])?;
        let two_level = TwoLevel::new(comm, &nodes)?;
        let part = rounded(plan.part_bytes());
        let aggregators = plan.aggregators() as usize;
        let made = two_level.and_then(|two_level| {
            let leads = two_level.local().rank() == 0;
            let size = if leads {
                2 * aggregators * len_of(part)
            } else {
                0
            };
            let win = ShmBuffers::window(two_level.local(), size).ok()?;
            let base = win.memory().shared_segment(0).ok()?.base;
            let each = |aggregator| base.wrapping_add(2 * aggregator * len_of(part));
            Some(ShmBuffers {
                win,
                bases: (0..aggregators).map(each).collect(),
                part,
                two_level: Some(two_level),
            })
        });
        // If the memory of one node is exhausted, all nodes use messages.
        let all = comm.internal().share_now(&[made.is_some().into()]);
        let Some(buffers) = made else {
            return all.map(|_| None);
        };
        let have = match all {
            Ok(all) => !all.contains(&0),
            Err(error) => return buffers.unless_failed(Err(error)).map(Some),
        };
        if !have {
            buffers.free_after_agreement()?;
            return Ok(None);
        }
        if buffers.meets(comm).rank() == 0 {
            (0..aggregators).for_each(|aggregator| buffers.clear(aggregator));
        }
        let outcome = buffers.meets(comm).internal().fence_now();
        buffers.unless_failed(outcome).map(Some)
    }

    /// Initialises an aggregator's new buffers: no byte is marked, and they contain no part of a file.
    fn clear(&self, aggregator: usize) {
        for round in 0..2 {
            let buffer = self.buffer(aggregator, round);
            buffer.clear();
            buffer.ends_at(0);
        }
    }

    /// Returns true if the buffers have the size and the number that a plan requires.
    pub fn suit(&self, plan: &Plan) -> bool {
        self.bases.len() == plan.aggregators() as usize && self.part == rounded(plan.part_bytes())
    }

    /// Frees the buffers during an access whose plan needs another number or size; collective.
    /// In a fault-tolerant job each member abandons the buffers without communication,
    /// because a member that failed in an earlier step after a death does not participate.
    pub fn give_back(&self) -> Result<(), Error> {
        match self.win.engine().is_fault_tolerant() {
            true => {
                self.win.clone().abandon();
                Ok(())
            }
            false => self.free(),
        }
    }

    /// Frees the buffers; collective.
    pub fn free(&self) -> Result<(), Error> {
        self.win.free()
    }

    /// As [`ShmBuffers::free`], for members that have agreed after their last accesses.
    pub fn free_after_agreement(&self) -> Result<(), Error> {
        self.win.free_after_agreement()
    }

    /// Returns the communicator of the ranks that share the buffers: the node's or the file's.
    fn meets<'a>(&'a self, comm: &'a Comm) -> &'a Comm {
        self.two_level.as_ref().map_or(comm, TwoLevel::local)
    }

    fn meet(&self, comm: &Comm) -> Result<(), Error> {
        self.meets(comm).internal().fence_now()
    }

    pub(crate) fn buffer(&self, aggregator: usize, round: i64) -> ShmBuffer<'_> {
        let offset = (round % 2) as usize * len_of(self.part);
        let base = self.bases[aggregator].wrapping_add(offset);
        // SAFETY: each aggregator has two buffers of `len_of(part)` bytes in the window, aligned to 64 bytes.
        // The window lives as long as `self`. Only `ShmBuffer`s access it.
        unsafe { ShmBuffer::new(base, self.part) }
    }
}

/// Writes a rank's data; collective. The inner result is that of this rank's own file accesses.
pub(crate) fn write(
    comm: &Comm,
    (plan, buffers): (&Plan, &ShmBuffers),
    disk: &Disk,
    (view, from): (&View, i64),
    buf: &SendBuf,
) -> Result<Result<i64, IoError>, Error> {
    let (mut done, mut outcome) = (0, Ok(buf.bytes()));
    let mut source = Source::new(buf);
    let mut beside = Source::new(buf);
    let me = comm.rank();
    for round in 0..plan.rounds() {
        let about = (view, from, buf.bytes());
        let mut wrote = Ok(());
        for_each_piece(
            plan,
            about,
            round,
            (&mut done, LONG),
            |piece, at| {
                let buffer = buffers.buffer(piece.aggregator, round);
                let mut to = piece.at;
                source.bytes(at, piece.len, |data| {
                    buffer.put(to, data);
                    to += data.len();
                });
                buffer.mark(piece.at..piece.at + piece.len);
            },
            |offset, len, at| {
                let mut to = offset;
                beside.bytes(at, len as usize, |data| {
                    if wrote.is_ok() {
                        wrote = write_all(disk, data, to);
                    }
                    to += data.len() as i64;
                });
            },
        );
        buffers.meet(comm)?;
        let written = match &buffers.two_level {
            Some(two_level) => {
                two_level.write_out((plan, &|at, round| buffers.buffer(at, round)), disk, round)?
            }
            None if me < plan.aggregators() => {
                let buffer = buffers.buffer(me as usize, round);
                buffer.write_out(disk, plan.part(round, me.into()))
            }
            None => Ok(()),
        };
        outcome = outcome.and(wrote.and(written).map(|()| buf.bytes()));
    }
    Ok(outcome)
}

/// As an aggregator, reads the data of a round into this rank's buffer.
/// The inner result is that of this rank's own file access.
/// On one node, a rank reads nothing more after an error (`has_failed`).
fn fetch(
    comm: &Comm,
    (plan, buffers): (&Plan, &ShmBuffers),
    disk: &Disk,
    round: i64,
    has_failed: bool,
) -> Result<Result<(), IoError>, Error> {
    if let Some(two_level) = &buffers.two_level {
        return two_level.fetch((plan, &|at, round| buffers.buffer(at, round)), disk, round);
    }
    let me = comm.rank();
    if me >= plan.aggregators() || has_failed {
        return Ok(Ok(()));
    }
    let base = plan.part(round, me.into());
    let wanted = (plan.high() - base).clamp(0, plan.part_bytes()) as usize;
    let mut buffer = buffers.buffer(me as usize, round);
    let read = read_all(disk, buffer.up_to(wanted), base);
    buffer.ends_at(base + *read.as_ref().unwrap_or(&0) as i64);
    Ok(read.map(drop))
}

/// Reads a rank's data; collective. The inner result is that of this rank's own file accesses.
pub(crate) fn read(
    comm: &Comm,
    (plan, buffers): (&Plan, &ShmBuffers),
    disk: &Disk,
    (view, from): (&View, i64),
    buf: &mut RecvBuf,
) -> Result<Result<i64, IoError>, Error> {
    let (len, mut done, mut filled) = (buf.bytes(), 0, 0);
    let mut outcome = Ok(());
    let mut sink = Sink::new(buf);
    let about = (view, from, len);
    // With several nodes, ranks mark what they request. On one node, aggregators read whole parts.
    let mut asked = 0;
    let mut want = |round: i64| {
        let mark = |piece: Piece, _: i64| {
            let buffer = buffers.buffer(piece.aggregator, round);
            buffer.mark(piece.at..piece.at + piece.len);
        };
        for_each_piece(plan, about, round, (&mut asked, LONG), mark, |_, _, _| {});
    };
    let rounds = plan.rounds();
    if rounds > 0 {
        if buffers.two_level.is_some() {
            want(0);
            buffers.meet(comm)?;
        }
        outcome = fetch(comm, (plan, buffers), disk, 0, false)?;
    }
    for round in 0..rounds {
        let next = (round + 1 < rounds).then_some(round + 1);
        if let (Some(next), Some(_)) = (next, &buffers.two_level) {
            want(next);
        }
        buffers.meet(comm)?;
        if let Some(next) = next {
            let read = fetch(comm, (plan, buffers), disk, next, outcome.is_err())?;
            outcome = outcome.and(read);
        }
        let mut direct: Vec<(i64, i64, i64)> = Vec::new();
        for_each_piece(
            plan,
            about,
            round,
            (&mut done, LONG),
            |piece, at| {
                let buffer = buffers.buffer(piece.aggregator, round);
                let base = plan.part(round, piece.aggregator as i64);
                let end = buffer.end() - base - piece.at as i64;
                let there = end.clamp(0, piece.len as i64) as usize;
                sink.put(at, buffer.bytes(piece.at..piece.at + there));
                filled += there as i64;
            },
            |offset, len, at| direct.push((offset, len, at)),
        );
        for (mut offset, mut left, mut at) in direct {
            if let Some(dest) = sink.contiguous() {
                match read_all(disk, &mut dest[at as usize..(at + left) as usize], offset) {
                    Ok(read) => filled += read as i64,
                    Err(error) => outcome = outcome.and(Err(error)),
                }
                continue;
            }
            let mut dest = vec![0; left.min(LONG) as usize];
            while left > 0 && outcome.is_ok() {
                let part = left.min(LONG) as usize;
                match read_all(disk, &mut dest[..part], offset) {
                    Ok(read) => {
                        sink.put(at, &dest[..read]);
                        filled += read as i64;
                        if read < part {
                            break;
                        }
                    }
                    Err(error) => outcome = Err(error),
                }
                offset += part as i64;
                at += part as i64;
                left -= part as i64;
            }
        }
    }
    sink.flush();
    Ok(outcome.map(|()| filled))
}
