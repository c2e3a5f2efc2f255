//! Collective accesses through memory that the ranks of a node share, without messages and without lists of pieces.
//!
//! Each aggregator has two buffers ([`Stage`]), each for one [`Plan::part`] of the file, in a window of shared memory.
//! Round r of a write: every rank copies its own pieces straight from user memory to where they belong in the aggregators' buffers
//! r mod 2 and marks the bytes that it has touched; all meet; the aggregators write what is touched and clear the marks, while the
//! others already copy into the other buffers. A read mirrors it: the aggregators read ahead into one buffer while all copy
//! their pieces out of the other.
//!
//! Why a meeting for each round is enough: buffer r mod 2 is used again in round r + 2, whose copying begins after meeting r + 1,
//! and an aggregator comes to that when it has written round r.
//!
//! Where members are on several nodes, the buffers of all aggregators are at the leader of each node, who meets the other leaders
//! between two meetings of the node ([`Across`]). A read then marks what it wants one round ahead.
//!
//! Pieces that are longer than [`LONG`](super::plan::LONG) go between user memory and the file directly: copying them twice costs more than a system call.
//! In a write they are left unmarked, so the aggregators leave these bytes alone.
//!
//! Every rank comes to every meeting, whatever it has and whatever has failed, so no rank waits for another that has given up.
#![allow(unsafe_code)]

use super::access::{read_all, write_all};
use super::across::Across;
use super::disk::Disk;
use super::error::IoError;
use super::plan::{LONG, Plan};
use super::seating::Seating;
use super::stage::{Stage, len_of, rounded};
use super::view::View;
use super::walk::{Sink, Source, walk};
use crate::Error;
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::osc::{Flavor, Hints, Spec, Win, is_direct_allowed};

/// The buffers of all aggregators, in memory that all members of a node share.
pub(super) struct Stages {
    win: Win,
    /// Where each aggregator's two buffers begin.
    bases: Vec<*mut u8>,
    part: usize,
    across: Option<Across>,
}

impl Stages {
    /// Makes them; every member calls. Nothing where windows may not be reached directly, the node's memory is used up,
    /// or the members are on several nodes that have one each.
    pub fn new(comm: &Comm, seating: &Seating, plan: &Plan) -> Result<Option<Stages>, Error> {
        match seating.has_levels() {
            true => Stages::of_leaders(comm, plan),
            false => Stages::of_aggregators(comm, plan),
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
                ..Hints::default()
            },
        };
        Win::new(comm, &spec)
    }

    /// Of one node: each aggregator has its own.
    fn of_aggregators(comm: &Comm, plan: &Plan) -> Result<Option<Stages>, Error> {
        let engine = comm.engine();
        // If one member has all members on its node, all have.
        let all_here = engine.members_here(comm.group()).count() == comm.size() as usize;
        if !all_here || !is_direct_allowed(engine.params()) {
            return Ok(None);
        }
        let part = rounded(plan.part_bytes());
        let aggregates = comm.rank() < plan.aggregators();
        let size = if aggregates { 2 * len_of(part) } else { 0 };
        // All members succeed or none does, and then messages serve.
        let Ok(win) = Stages::window(comm, size) else {
            return Ok(None);
        };
        let base = |rank| win.shared_segment(rank).map(|segment| segment.base);
        let bases = (0..plan.aggregators() as i32).map(base);
        let bases = match bases.collect::<Result<_, _>>() {
            Ok(bases) => bases,
            Err(error) => {
                win.abandon();
                return Err(error);
            }
        };
        let stages = Stages {
            bases,
            win,
            part,
            across: None,
        };
        if aggregates {
            stages.clear(comm.rank() as usize);
        }
        let met = comm.engine().block_on(comm.fence());
        stages.unless_failed(met).map(Some)
    }

    /// These, or the error of a step behind them, when other members may have them all the same.
    fn unless_failed(self, outcome: Result<(), Error>) -> Result<Stages, Error> {
        match outcome {
            Ok(()) => Ok(self),
            Err(error) => {
                self.win.abandon();
                Err(error)
            }
        }
    }

    /// Of several nodes: each leader has those of all aggregators.
    fn of_leaders(comm: &Comm, plan: &Plan) -> Result<Option<Stages>, Error> {
        let engine = comm.engine();
        let nodes = engine.block_on(comm.share(&[engine.node_id()]))?;
        let across = Across::new(comm, &nodes)?;
        let part = rounded(plan.part_bytes());
        let aggregators = plan.aggregators() as usize;
        let made = across.and_then(|across| {
            let leads = across.local().rank() == 0;
            let size = if leads {
                2 * aggregators * len_of(part)
            } else {
                0
            };
            let win = Stages::window(across.local(), size).ok()?;
            let base = win.shared_segment(0).ok()?.base;
            let each = |aggregator| base.wrapping_add(2 * aggregator * len_of(part));
            Some(Stages {
                win,
                bases: (0..aggregators).map(each).collect(),
                part,
                across: Some(across),
            })
        });
        // One node's memory may be used up, and then messages serve all.
        let all = engine.block_on(comm.share(&[made.is_some().into()]));
        let Some(stages) = made else {
            return all.map(|_| None);
        };
        let have = match all {
            Ok(all) => !all.contains(&0),
            Err(error) => return stages.unless_failed(Err(error)).map(Some),
        };
        if !have {
            stages.free()?;
            return Ok(None);
        }
        if stages.meets(comm).rank() == 0 {
            (0..aggregators).for_each(|aggregator| stages.clear(aggregator));
        }
        let met = engine.block_on(stages.meets(comm).fence());
        stages.unless_failed(met).map(Some)
    }

    fn clear(&self, aggregator: usize) {
        (0..2).for_each(|round| self.stage(aggregator, round).clear());
    }

    /// Whether they suit a plan.
    pub fn suit(&self, plan: &Plan) -> bool {
        self.bases.len() == plan.aggregators() as usize && self.part == rounded(plan.part_bytes())
    }

    /// Ends them in the middle of an access, to which a member may not come any more at which an earlier step has failed because of a death.
    pub fn give_back(&self) -> Result<(), Error> {
        match self.win.engine().is_fault_tolerant() {
            true => {
                self.win.clone().abandon();
                Ok(())
            }
            false => self.free(),
        }
    }

    /// Ends them; every member calls.
    pub fn free(&self) -> Result<(), Error> {
        self.win.free()
    }

    /// The ranks that share them.
    fn meets<'a>(&'a self, comm: &'a Comm) -> &'a Comm {
        self.across.as_ref().map_or(comm, Across::local)
    }

    fn meet(&self, comm: &Comm) -> Result<(), Error> {
        comm.engine().block_on(self.meets(comm).fence())
    }

    pub(super) fn stage(&self, aggregator: usize, round: i64) -> Stage<'_> {
        let offset = (round % 2) as usize * len_of(self.part);
        let base = self.bases[aggregator].wrapping_add(offset);
        // SAFETY: an aggregator has two buffers of this length in the window, which is as old as the stages
        // and aligned to more than cache lines; nothing else is there.
        unsafe { Stage::new(base, self.part) }
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
        stages.meet(comm)?;
        let written = match &stages.across {
            Some(across) => {
                across.write_out((plan, &|at, round| stages.stage(at, round)), disk, round)?
            }
            None if me < plan.aggregators() => {
                let stage = stages.stage(me as usize, round);
                stage.write_out(disk, plan.part(round, me.into()))
            }
            None => Ok(()),
        };
        outcome = outcome.and(wrote.and(written).map(|()| buf.bytes()));
    }
    Ok(outcome)
}

/// Brings what is wanted of a round into the buffers. The inner error is this rank's own, which reads nothing more after one.
fn fetch(
    comm: &Comm,
    (plan, stages): (&Plan, &Stages),
    disk: &Disk,
    round: i64,
    has_failed: bool,
) -> Result<Result<(), IoError>, Error> {
    if let Some(across) = &stages.across {
        return across.fetch((plan, &|at, round| stages.stage(at, round)), disk, round);
    }
    let me = comm.rank();
    if me >= plan.aggregators() || has_failed {
        return Ok(Ok(()));
    }
    let base = plan.part(round, me.into());
    let wanted = (plan.high() - base).clamp(0, plan.part_bytes()) as usize;
    let mut stage = stages.stage(me as usize, round);
    let read = read_all(disk, stage.room(wanted), base);
    stage.ends_at(base + *read.as_ref().unwrap_or(&0) as i64);
    Ok(read.map(drop))
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
    let mut sink = Sink::new(buf);
    let about = (view, from, len);
    // Between nodes the marks say what is wanted; on one node the aggregators read all of their parts.
    let mut asked = 0;
    let mut want = |round: i64| {
        let mark = |piece: super::walk::Piece, _: i64| {
            let stage = stages.stage(piece.aggregator, round);
            stage.mark(piece.at..piece.at + piece.len);
        };
        walk(plan, about, round, &mut asked, mark, |_, _, _| {});
    };
    let rounds = plan.rounds();
    if rounds > 0 {
        if stages.across.is_some() {
            want(0);
            stages.meet(comm)?;
        }
        outcome = fetch(comm, (plan, stages), disk, 0, false)?;
    }
    for round in 0..rounds {
        let next = (round + 1 < rounds).then_some(round + 1);
        if let (Some(next), Some(_)) = (next, &stages.across) {
            want(next);
        }
        stages.meet(comm)?;
        if let Some(next) = next {
            let read = fetch(comm, (plan, stages), disk, next, outcome.is_err())?;
            outcome = outcome.and(read);
        }
        let mut direct: Vec<(i64, i64, i64)> = Vec::new();
        walk(
            plan,
            about,
            round,
            &mut done,
            |piece, at| {
                let stage = stages.stage(piece.aggregator, round);
                let base = plan.part(round, piece.aggregator as i64);
                let end = stage.end() - base - piece.at as i64;
                let there = end.clamp(0, piece.len as i64) as usize;
                sink.put(at, stage.bytes(piece.at..piece.at + there));
                filled += there as i64;
            },
            |offset, len, at| direct.push((offset, len, at)),
        );
        for (mut offset, mut left, mut at) in direct {
            if let Some(room) = sink.contiguous() {
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
