//! Short collectives that combine data.

use super::Turn;
use super::data::{Combine, CopyTo, Given, Room};
use super::steps::{await_room, show};
use crate::Error;
use crate::coll::shm::cells::FEW;
use crate::coll::shm::gate::Kind;
use crate::coll::shm::wait::Waits;
use crate::op::DenseOp;
use std::ops::Range;

impl<W: Waits> Turn<'_, W> {
    #[inline]
    pub(super) async fn allreduce<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        match send {
            Some(send) => show!(self, send),
            None => show!(self, recv),
        }
        let concluded = self.meet(|| {
            let outcome = self.fold_all(send, recv, op);
            self.conclude(recv);
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                self.take(self.cells.result(), 0, recv);
                Ok(())
            }
            Ok(false) => self.fold_all(send, recv, op),
            Err(e) => Err(e),
        };
        self.cells.end_together(self.members, self.number);
        outcome
    }

    /// Combines what all ranks show.
    #[inline]
    fn fold_all<G: CopyTo<R>, R: Room>(
        &self,
        own: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        self.fold(self.members.count(), 0, own, recv, op)
    }

    /// Combines what the first ranks show from byte `at` on, from the last of them to the first, into `recv`;
    /// `own` is this rank's operand unless that is in its cell.
    #[inline]
    pub(super) fn fold<G: CopyTo<R>, R: Room>(
        &self,
        ranks: u32,
        at: usize,
        own: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let own = |rank: u32| own.filter(|_| rank == self.me());
        let Some(last) = ranks.checked_sub(1) else {
            return Ok(());
        };
        match own(last) {
            Some(own) => own.copy_to(recv),
            None => self.take(last, at, recv),
        }
        let (bytes, mut spare) = (at..at + recv.bytes(), None);
        for rank in (0..last).rev() {
            match own(rank) {
                Some(own) => op.apply(own, recv)?,
                None => self
                    .cells
                    .inspect(rank, self.number, bytes.clone(), |data| {
                        op.apply_packed(data, recv, &mut spare)
                    })?,
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) async fn reduce<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: Option<&R>,
        op: &impl Combine<G, R>,
        root: u32,
    ) -> Result<(), Error> {
        let outcome = match (recv, send) {
            (Some(recv), send) if self.me() == root => {
                // Nobody reads the root's cell, but in place the fold looks for its operand there.
                if send.is_none() {
                    show!(self, recv);
                }
                self.await_reports().await;
                self.fold_all(send, recv, op)
            }
            (_, Some(send)) => {
                show!(self, send);
                self.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        self.cells.end(self.members, self.number);
        outcome
    }

    /// Combines what the first `ranks` show: all up to this one, or all before it.
    #[inline]
    pub(super) async fn scan<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
        ranks: u32,
    ) -> Result<(), Error> {
        let (me, count) = (self.me(), self.members.count());
        match send {
            // Nobody reads the last rank's cell; but in place the fold looks there, and who counts arrivals shows first.
            Some(_) if me + 1 == count && self.kind == Kind::Flags => {}
            Some(send) => show!(self, send),
            None => show!(self, recv),
        }
        if self.kind == Kind::Counter {
            let is_last = self.cells.arrive(self.number);
            let result = || self.seen(self.cells.result());
            if !is_last {
                let has_own = || (0..me).rev().all(|rank| self.seen(rank));
                let is_enough = || result() || has_own();
                match has_own() {
                    true => {}
                    // Of few, who came back for that alone would only wait for the others in the next call.
                    false if count > FEW => {
                        let wait = self.wait;
                        wait.until_unlike_others(self.engine, is_enough).await;
                    }
                    false => self.wait.until(self.engine, result).await,
                }
                if !result() {
                    let outcome = self.fold(ranks, 0, send, recv, op);
                    self.cells.end(self.members, self.number);
                    return outcome;
                }
            }
            // Who comes last works for all, so that most who had to wait find their result in one place.
            let len = recv.bytes();
            let for_all = self.for_all(len, op.dense(recv));
            let work = || {
                for_all.inspect(|op| self.accumulate(len, op));
                self.conclude_empty();
                Ok(())
            };
            self.meet_having_arrived(is_last, work).await?;
            let outcome = match for_all {
                None => self.fold(ranks, 0, send, recv, op),
                Some(_) => {
                    if let Some(before) = ranks.checked_sub(1) {
                        self.take(self.cells.result(), before as usize * len, recv);
                    }
                    Ok(())
                }
            };
            self.cells.end_together(self.members, self.number);
            return outcome;
        }
        (me + 1..count).for_each(|rank| self.members.ring(rank));
        self.await_cells(0..me).await;
        let outcome = self.fold(ranks, 0, send, recv, op);
        self.cells.end(self.members, self.number);
        outcome
    }

    /// Without `send`, `whole` is all of this rank's operand; the result, which is `mine` of the packed bytes, goes to where it begins.
    #[inline]
    pub(super) async fn reduce_scatter<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        whole: &R,
        mine: Range<usize>,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let all = send.map_or(whole.bytes(), Given::bytes);
        let for_all = match self.kind {
            Kind::Counter => self.for_all(all, op.dense(whole)),
            Kind::Flags => None,
        };
        match send {
            Some(send) if for_all.is_none() => self.show_around(send, mine.clone()).await,
            Some(send) => show!(self, send),
            None => show!(self, whole),
        }
        self.meet(|| {
            for_all.inspect(|op| self.fold_for_all(all, op));
            self.conclude_empty();
            Ok(())
        })
        .await?;
        let result = whole.part(0, mine.len());
        let outcome = match for_all {
            None => {
                let own = send.map(|send| send.part(mine.start, mine.len()));
                let ranks = self.members.count();
                self.fold(ranks, mine.start, own.as_ref(), &result, op)
            }
            Some(_) => {
                self.take(self.cells.result(), mine.start, &result);
                Ok(())
            }
        };
        self.cells.end_together(self.members, self.number);
        outcome
    }

    /// The operator, if who comes last is to work on operands of so many bytes for all:
    /// a rank that is switched in then finds its result in one place, and the work of one takes no longer than that saves.
    fn for_all(&self, bytes: usize, op: Option<DenseOp>) -> Option<DenseOp> {
        let of_all = bytes * self.members.count() as usize;
        op.filter(|_| of_all <= self.cells.capacity())
    }

    /// Writes to the result what the first rank shows, what the first two give together, and so on.
    #[cold]
    fn accumulate(&self, len: usize, op: &DenseOp) {
        let (cells, number, ranks) = (self.cells, self.number, self.members.count());
        let all = 0..len * ranks as usize;
        cells.compose(cells.result(), number, all, |room| {
            for rank in 0..ranks {
                let (before, room) = room.split_at_mut(rank as usize * len);
                let sum = &mut room[..len];
                cells.inspect(rank, number, 0..len, |data| sum.copy_from_slice(data));
                if rank > 0 {
                    op.combine(&before[before.len() - len..], sum);
                }
            }
        });
    }

    /// Writes to the result what all operands give together, each of `len` bytes.
    #[cold]
    fn fold_for_all(&self, len: usize, op: &DenseOp) {
        let (cells, number, ranks) = (self.cells, self.number, self.members.count());
        cells.compose(cells.result(), number, 0..len, |sum| {
            for rank in (0..ranks).rev() {
                cells.inspect(rank, number, 0..len, |data| match rank + 1 == ranks {
                    true => sum.copy_from_slice(data),
                    false => op.combine(data, sum),
                });
            }
        });
    }
}
