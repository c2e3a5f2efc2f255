//! Collective accesses of ranks on one node: through memory that they share, without messages and without lists of pieces.
//!
//! Each aggregator has two buffers, each for one [`Stages::part`] of the file, in a window of shared memory.
//! Round r of a write: every rank copies its own pieces straight from user memory to where they belong in the aggregators' buffers
//! r mod 2 and marks the bytes that it has touched; all meet; the aggregators write what is touched and clear the marks, while the
//! others already copy into the other buffers. A read mirrors it: the aggregators read ahead into one buffer while all copy
//! their pieces out of the other.
//!
//! Why a meeting for each round is enough: buffer r mod 2 is used again in round r + 2, whose copying begins after meeting r + 1,
//! and an aggregator comes to that when it has written round r.
//!
//! Pieces that are longer than [`LONG`] go between user memory and the file directly: copying them twice costs more than a system call.
//! In a write they are left unmarked, so the aggregators leave these bytes alone.
//!
//! Every rank comes to every meeting, whatever it has and whatever has failed, so no rank waits for another that has given up.
//! Memory does not depend on the number of pieces: the runs of a view are walked, never listed.

use super::access::{read_all, write_all};
use super::disk::Disk;
use super::error::IoError;
use super::two_phase::{LONG, Plan};
use super::view::View;
use crate::Error;
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::osc::{Flavor, Hints, Spec, Win, is_direct_allowed};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Bytes of scattered memory that are packed at a time.
const PACKED: usize = 64 << 10;

/// Bits in a word of marks.
const BITS: usize = 64;

/// What stands before each buffer: where the bytes end that were read.
const HEAD: usize = 64;

/// The buffers of all aggregators, in memory that all members share.
pub(super) struct Stages {
    win: Win,
    bases: Vec<*mut u8>,
    part: usize,
}

/// One buffer of one aggregator.
#[derive(Clone, Copy)]
struct Stage<'a> {
    base: *mut u8,
    part: usize,
    stages: std::marker::PhantomData<&'a Stages>,
}

fn len_of(part: usize) -> usize {
    HEAD + part + part / 8
}

impl Stages {
    /// Makes them; every member calls. Nothing where members are on several nodes, windows may not be
    /// reached directly, or the node's memory is used up.
    pub fn new(comm: &Comm, plan: &Plan) -> Result<Option<Stages>, Error> {
        let engine = comm.engine();
        // If one member has all members on its node, all have.
        let all_here = engine.members_here(comm.group()).count() == comm.size() as usize;
        if !all_here || !is_direct_allowed(engine.params()) {
            return Ok(None);
        }
        // Marks are whole words.
        let part = (plan.part_bytes() as usize).next_multiple_of(BITS);
        let aggregates = comm.rank() < plan.aggregators();
        let size = if aggregates { 2 * len_of(part) } else { 0 };
        let spec = Spec {
            flavor: Flavor::Shared,
            base: std::ptr::null_mut(),
            size: size as u64,
            unit: 1,
            hints: Hints {
                no_locks: true,
                noncontiguous: true,
                ..Hints::default()
            },
        };
        // All members succeed or none does, and then messages serve.
        let Ok(win) = Win::new(comm, &spec) else {
            return Ok(None);
        };
        let base = |rank| win.shared_segment(rank).map(|segment| segment.base);
        let bases = (0..plan.aggregators() as i32).map(base);
        let stages = Stages {
            bases: bases.collect::<Result<_, _>>()?,
            win,
            part,
        };
        if aggregates {
            for round in 0..2 {
                stages.stage(comm.rank() as usize, round).clear();
            }
        }
        comm.engine().block_on(comm.fence())?;
        Ok(Some(stages))
    }

    /// Whether they suit a plan.
    pub fn suit(&self, plan: &Plan) -> bool {
        self.bases.len() == plan.aggregators() as usize
            && self.part == (plan.part_bytes() as usize).next_multiple_of(BITS)
    }

    /// Ends them; every member calls.
    pub fn free(&self) -> Result<(), Error> {
        self.win.free()
    }

    fn stage(&self, aggregator: usize, round: i64) -> Stage<'_> {
        let offset = (round % 2) as usize * len_of(self.part);
        Stage {
            base: self.bases[aggregator].wrapping_add(offset),
            part: self.part,
            stages: std::marker::PhantomData,
        }
    }
}

impl Stage<'_> {
    fn end(&self) -> &AtomicI64 {
        // SAFETY: the stage begins with its head, which is aligned as windows are, lives as long as the window, and is only reached atomically.
        unsafe { &*self.base.cast::<AtomicI64>() }
    }

    fn marks(&self) -> &[AtomicU64] {
        let at = self.base.wrapping_add(HEAD + self.part);
        // SAFETY: behind the bytes of the part lie its marks, aligned since part and head are multiples of 64; they are only reached atomically.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), self.part / BITS) }
    }

    /// Copies bytes to a place of the part.
    fn put(&self, at: usize, data: &[u8]) {
        if at > self.part || data.len() > self.part - at {
            return;
        }
        // SAFETY: the range lies in the part. Other ranks may copy to the same bytes, where a program has them write overlapping
        // pieces; each byte is then that of one of them, as the standard says.
        unsafe {
            let to = self.base.add(HEAD + at);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
    }

    /// The bytes of the part, for its aggregator alone or for all while nobody writes them.
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        let end = range.end.min(self.part);
        let begin = range.start.min(end);
        // SAFETY: the range lies in the part, and between two meetings nobody writes what is read here.
        unsafe { std::slice::from_raw_parts(self.base.add(HEAD + begin), end - begin) }
    }

    /// The first bytes of the part, for the aggregator that fills them from the file.
    fn room(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: the range lies in the part, and between two meetings its aggregator alone has access to it.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(HEAD), len.min(self.part)) }
    }

    fn mark(&self, range: Range<usize>) {
        let marks = self.marks();
        let (first, last) = (range.start / BITS, range.end / BITS);
        let head = !0u64 << (range.start % BITS);
        let tail = match range.end % BITS {
            0 => 0,
            bits => !0u64 >> (BITS - bits),
        };
        if first == last {
            marks[first].fetch_or(head & tail, Relaxed);
            return;
        }
        // Whole words are nobody else's, or are all ones for the others too.
        match range.start % BITS {
            0 => marks[first].store(!0, Relaxed),
            _ => drop(marks[first].fetch_or(head, Relaxed)),
        }
        marks[first + 1..last]
            .iter()
            .for_each(|word| word.store(!0, Relaxed));
        if tail != 0 {
            marks[last].fetch_or(tail, Relaxed);
        }
    }

    /// The stretches that are marked, each as long as can be.
    fn marked(
        &self,
        mut each: impl FnMut(Range<usize>) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let mut open: Option<usize> = None;
        for (number, word) in self.marks().iter().enumerate() {
            let mut bits = word.load(Relaxed);
            let base = number * BITS;
            match (bits, open) {
                (0, None) => continue,
                (u64::MAX, Some(_)) => continue,
                (u64::MAX, None) => {
                    open = Some(base);
                    continue;
                }
                _ => {}
            }
            let mut at = 0;
            while at < BITS {
                let ones = open.is_some();
                let same = match ones {
                    true => bits.trailing_ones(),
                    false => bits.trailing_zeros(),
                };
                let same = (same as usize).min(BITS - at);
                at += same;
                if at < BITS {
                    match open.take() {
                        Some(begin) => each(begin..base + at)?,
                        None => open = Some(base + at),
                    }
                    bits >>= same;
                }
            }
        }
        match open {
            Some(begin) => each(begin..self.part),
            None => Ok(()),
        }
    }

    fn clear(&self) {
        self.marks().iter().for_each(|word| word.store(0, Relaxed));
    }
}

/// Where a piece lies: the aggregator, the offset in its part, and how long it is.
struct Piece {
    aggregator: usize,
    at: usize,
    len: usize,
}

/// Walks the rank's runs in a round from byte `done` of its part on; longer ones are handed to `long` whole, with where their bytes are.
fn walk(
    plan: &Plan,
    (view, from, len): (&View, i64, i64),
    round: i64,
    done: &mut i64,
    mut short: impl FnMut(Piece, i64),
    mut long: impl FnMut(i64, i64, i64),
) {
    let (begin, end, part) = (
        plan.part(round, 0),
        plan.part(round + 1, 0),
        plan.part_bytes(),
    );
    let fresh = *done;
    view.runs(from + fresh, len - fresh, |run| {
        let (mut offset, mut left) = (run.offset, run.len);
        // A run that an earlier round has begun is cut where that ended, and goes on as it began.
        if left >= LONG && offset < end {
            long(offset, left, *done);
            *done += left;
            return true;
        }
        while left > 0 && offset < end {
            let which = (offset - begin) / part;
            let at = offset - begin - which * part;
            let piece = left.min(part - at);
            let found = Piece {
                aggregator: which as usize,
                at: at as usize,
                len: piece as usize,
            };
            short(found, *done);
            *done += piece;
            offset += piece;
            left -= piece;
        }
        left == 0
    });
}

/// The bytes of a buffer in the order of the stream, packed a stretch at a time where they are scattered.
struct Source<'a> {
    buf: &'a SendBuf,
    packed: Vec<u8>,
    begin: i64,
}

impl<'a> Source<'a> {
    fn new(buf: &'a SendBuf) -> Source<'a> {
        Source {
            buf,
            packed: Vec::new(),
            begin: 0,
        }
    }

    /// Hands out the bytes from `at` on, in pieces.
    fn bytes(&mut self, mut at: i64, mut len: usize, mut each: impl FnMut(&[u8])) {
        if let Some(all) = self.buf.contiguous() {
            each(all.get(at as usize..at as usize + len).unwrap_or(&[]));
            return;
        }
        while len > 0 {
            let inside = at - self.begin;
            if inside < 0 || inside >= self.packed.len() as i64 {
                let room = (self.buf.bytes() - at).clamp(0, PACKED as i64);
                self.packed.resize(room as usize, 0);
                self.buf.pack_at(at, &mut self.packed);
                self.begin = at;
                if room == 0 {
                    return;
                }
            }
            let inside = (at - self.begin) as usize;
            let part = len.min(self.packed.len() - inside);
            each(&self.packed[inside..inside + part]);
            at += part as i64;
            len -= part;
        }
    }
}

/// Writes a rank's part of a collective access; every member calls. The inner error is this rank's own.
pub(super) fn write(
    comm: &Comm,
    (plan, stages): (&Plan, &Stages),
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
        walk(
            plan,
            about,
            round,
            &mut done,
            |piece, at| {
                let stage = stages.stage(piece.aggregator, round);
                let mut to = piece.at;
                source.bytes(at, piece.len, |data| {
                    stage.put(to, data);
                    to += data.len();
                });
                stage.mark(piece.at..piece.at + piece.len);
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
        if outcome.is_ok() {
            outcome = wrote.map(|()| buf.bytes());
        }
        comm.engine().block_on(comm.fence())?;
        if me < plan.aggregators() {
            let stage = stages.stage(me as usize, round);
            let base = plan.part(round, me.into());
            let written = stage.marked(|range| {
                let at = base + range.start as i64;
                write_all(disk, stage.bytes(range), at)
            });
            stage.clear();
            if outcome.is_ok() {
                outcome = written.map(|()| buf.bytes());
            }
        }
    }
    Ok(outcome)
}

/// Puts bytes into a buffer in the order of the stream, many at a time where it is scattered.
struct Sink<'a> {
    buf: &'a mut RecvBuf,
    packed: Vec<u8>,
    begin: i64,
}

impl Sink<'_> {
    fn put(&mut self, at: i64, data: &[u8]) {
        if let Some(room) = self.buf.contiguous() {
            if let Some(room) = room.get_mut(at as usize..at as usize + data.len()) {
                room.copy_from_slice(data);
            }
            return;
        }
        let behind = self.begin + self.packed.len() as i64;
        if behind != at || self.packed.len() + data.len() > PACKED {
            self.flush();
            self.begin = at;
        }
        self.packed.extend_from_slice(data);
    }

    fn flush(&mut self) {
        if !self.packed.is_empty() {
            self.buf.unpack_at(self.begin, &self.packed);
            self.packed.clear();
        }
    }
}

/// Reads a rank's part of a collective access; every member calls. The inner error is this rank's own.
pub(super) fn read(
    comm: &Comm,
    (plan, stages): (&Plan, &Stages),
    disk: &Disk,
    (view, from): (&View, i64),
    buf: &mut RecvBuf,
) -> Result<Result<i64, IoError>, Error> {
    let (len, mut done, mut filled) = (buf.bytes(), 0, 0);
    let mut outcome = Ok(());
    let me = comm.rank();
    let mut sink = Sink {
        buf,
        packed: Vec::new(),
        begin: 0,
    };
    // Bytes of the file that the aggregator has put into its buffer for a round.
    let fetch = |round: i64| -> Result<(), IoError> {
        let base = plan.part(round, me.into());
        let wanted = (plan.high() - base).clamp(0, plan.part_bytes()) as usize;
        let mut stage = stages.stage(me as usize, round);
        let read = read_all(disk, stage.room(wanted), base);
        let end = *read.as_ref().unwrap_or(&0) as i64;
        stage.end().store(base + end, Relaxed);
        read.map(drop)
    };
    let aggregates = me < plan.aggregators();
    if aggregates && plan.rounds() > 0 {
        outcome = fetch(0);
    }
    for round in 0..plan.rounds() {
        comm.engine().block_on(comm.fence())?;
        if aggregates && round + 1 < plan.rounds() && outcome.is_ok() {
            outcome = fetch(round + 1);
        }
        let mut direct: Vec<(i64, i64, i64)> = Vec::new();
        walk(
            plan,
            (view, from, len),
            round,
            &mut done,
            |piece, at| {
                let stage = stages.stage(piece.aggregator, round);
                let base = plan.part(round, piece.aggregator as i64);
                let end = stage.end().load(Relaxed) - base - piece.at as i64;
                let there = end.clamp(0, piece.len as i64) as usize;
                sink.put(at, stage.bytes(piece.at..piece.at + there));
                filled += there as i64;
            },
            |offset, len, at| direct.push((offset, len, at)),
        );
        for (mut offset, mut left, mut at) in direct {
            if let Some(room) = sink.buf.contiguous() {
                match read_all(disk, &mut room[at as usize..(at + left) as usize], offset) {
                    Ok(read) => filled += read as i64,
                    Err(error) => outcome = outcome.and(Err(error)),
                }
                continue;
            }
            let mut room = vec![0; left.min(LONG) as usize];
            while left > 0 && outcome.is_ok() {
                let part = left.min(LONG) as usize;
                match read_all(disk, &mut room[..part], offset) {
                    Ok(read) => {
                        sink.put(at, &room[..read]);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage in memory of the test.
    fn stage(memory: &mut [u64], part: usize) -> Stage<'_> {
        assert!(memory.len() * 8 >= len_of(part));
        Stage {
            base: memory.as_mut_ptr().cast(),
            part,
            stages: std::marker::PhantomData,
        }
    }

    fn marked(stage: &Stage<'_>) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let done = stage.marked(|range| {
            all.push((range.start, range.end));
            Ok(())
        });
        done.expect("nothing fails");
        all
    }

    #[test]
    fn what_is_marked_is_found_again_in_stretches_as_long_as_can_be() {
        let part = 4 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        assert_eq!(marked(&stage), []);
        for range in [3..5, 5..64, 64..70, 100..101, 126..130, 192..256] {
            stage.mark(range);
        }
        assert_eq!(
            marked(&stage),
            [(3, 70), (100, 101), (126, 130), (192, 256)]
        );
        stage.mark(0..256);
        assert_eq!(marked(&stage), [(0, 256)]);
        stage.clear();
        assert_eq!(marked(&stage), []);
    }

    #[test]
    fn every_range_is_found_as_it_was_marked() {
        let part = 3 * BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        for begin in 0..part {
            for end in begin + 1..=part {
                stage.clear();
                stage.mark(begin..end);
                assert_eq!(marked(&stage), [(begin, end)]);
            }
        }
    }

    #[test]
    fn bytes_beyond_the_part_are_not_written() {
        let part = BITS;
        let mut memory = vec![0u64; len_of(part) / 8 + 1];
        let stage = stage(&mut memory, part);
        stage.put(part - 1, &[1, 2]);
        stage.put(usize::MAX, &[1]);
        stage.put(part - 1, &[7]);
        assert_eq!(stage.bytes(part - 2..part + 5), [0, 7]);
        assert_eq!(marked(&stage), []);
    }
}
