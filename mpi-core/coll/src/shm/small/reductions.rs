//! Short collectives that combine data.

use super::data::{Combine, CopyTo, Given, Room};
use super::steps::{await_cell, await_room, show};
use super::{Placed, Turn};
use crate::Error;
use crate::op::DenseOp;
use crate::shm::barrier::Kind;
use crate::shm::cells::Flow;
use crate::shm::wait::Wait;
use mpi_base::cells::CellOf;
use std::ops::Range;

impl<W: Wait> Turn<'_, W> {
    #[inline]
    pub(super) async fn allreduce<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let turn = &self.fitting(Flow::CooperativeCopy, recv.bytes());
        match send {
            Some(send) => show!(turn, send),
            None => show!(turn, recv),
        }
        let concluded = turn.meet(|| {
            let outcome = turn.fold_all(send, recv, op);
            turn.conclude(recv);
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                turn.take(CellOf::Result, 0, recv);
                Ok(())
            }
            Ok(false) => turn.fold_all(send, recv, op),
            Err(e) => Err(e),
        };
        turn.cells.end_together(turn.members, turn.number);
        outcome
    }

    #[inline]
    pub(super) async fn reduce<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: Option<&R>,
        op: &impl Combine<G, R>,
        root: u32,
    ) -> Result<(), Error> {
        let bytes = send.map(Given::bytes).or(recv.map(Given::bytes));
        let turn = &self.fitting(Flow::OneWay, bytes.unwrap_or(0));
        let outcome = match (recv, send) {
            (Some(recv), send) if turn.me() == root => {
                // No rank reads the root's cell, but with MPI_IN_PLACE `fold` reads its operand there.
                if send.is_none() {
                    show!(turn, recv);
                }
                turn.await_reports().await;
                turn.fold_all(send, recv, op)
            }
            (_, Some(send)) => {
                show!(turn, send);
                turn.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        turn.cells.end(turn.members, turn.number);
        outcome
    }

    /// Inclusive scan if `with_own`, otherwise exclusive.
    #[inline]
    pub(super) async fn scan<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
        with_own: bool,
    ) -> Result<(), Error> {
        let turn = &self.fitting(Flow::OneWay, recv.bytes());
        let dense = match turn.kind {
            Kind::Counter => op.dense(recv),
            Kind::Flags => None,
        };
        if let Some(op) = dense {
            turn.scan_on(send, recv, &op, with_own).await;
            return Ok(());
        }
        let (me, count) = (turn.me(), turn.members.count());
        match send {
            // No rank reads the last rank's cell; with MPI_IN_PLACE `fold` reads its operand there.
            Some(_) if me + 1 == count => {}
            Some(send) => show!(turn, send),
            None => show!(turn, recv),
        }
        (me + 1..count).for_each(|rank| turn.members.ring(rank));
        let outcome = match (me, send) {
            // Rank 0 combines nothing.
            (0, Some(send)) => {
                if with_own {
                    send.copy_to(recv);
                }
                Ok(())
            }
            (1, _) if !with_own => {
                if !turn.comes(0) {
                    await_cell!(turn, 0);
                }
                turn.take(0, 0, recv);
                Ok(())
            }
            _ => {
                turn.await_cells(0..me).await;
                turn.fold(me + u32::from(with_own), 0, send, recv, op)
            }
        };
        turn.cells.end(turn.members, turn.number);
        outcome
    }

    /// Without `send`, `whole` is this rank's whole operand; the result, the packed bytes `mine`, is written to its beginning.
    #[inline]
    pub(super) async fn reduce_scatter<G: CopyTo<R>, R: Room>(
        &self,
        send: Option<&G>,
        whole: &R,
        mine: Range<usize>,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let all = send.map_or(whole.bytes(), Given::bytes);
        let for_all = self.for_all(all, || op.dense(whole));
        let turn = &self.fitting(Flow::CooperativeCopy, all);
        match send {
            Some(send) if for_all.is_none() => turn.show_around(send, mine.clone()).await,
            Some(send) => show!(turn, send),
            None => show!(turn, whole),
        }
        turn.meet(|| {
            for_all.inspect(|op| turn.fold_for_all(all, op));
            turn.conclude_empty();
            Ok(())
        })
        .await?;
        let result = whole.part(0, mine.len());
        let outcome = match for_all {
            None => {
                let own = send.map(|send| send.part(mine.start, mine.len()));
                let ranks = turn.members.count();
                turn.fold(ranks, mine.start, own.as_ref(), &result, op)
            }
            Some(_) => {
                turn.take(CellOf::Result, mine.start, &result);
                Ok(())
            }
        };
        turn.cells.end_together(turn.members, turn.number);
        outcome
    }

    /// Returns the operator if the rank that arrives last combines operands of `bytes` bytes for all ranks, which it may when oversubscribed:
    /// a rank that is scheduled in then finds its result in one place, which saves more time than the one rank's work takes.
    #[inline(always)]
    fn for_all(&self, bytes: usize, op: impl FnOnce() -> Option<DenseOp>) -> Option<DenseOp> {
        let of_all = bytes * self.members.count() as usize;
        match self.kind {
            Kind::Counter if of_all <= self.cells.capacity() => op(),
            _ => None,
        }
    }
}

impl<W: Wait> Placed<'_, '_, W> {
    /// Combines the data of all ranks.
    #[inline]
    fn fold_all<G: CopyTo<R>, R: Room>(
        &self,
        own: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        self.fold(self.members.count(), 0, own, recv, op)
    }

    /// Combines the data of the first `ranks` ranks from byte `at` on into `recv`, from the last rank to the first;
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
                    .inspect(rank, self.address, bytes.clone(), |data| {
                        op.apply_packed(data, recv, &mut spare)
                    })?,
            }
        }
        Ok(())
    }

    /// Combines all operands, each of `len` bytes, into the result.
    #[cold]
    fn fold_for_all(&self, len: usize, op: &DenseOp) {
        let (cells, address, ranks) = (self.cells, self.address, self.members.count());
        cells.compose(CellOf::Result, address, 0..len, |sum| {
            for rank in (0..ranks).rev() {
                cells.inspect(rank, address, 0..len, |data| match rank + 1 == ranks {
                    true => sum.copy_from_slice(data),
                    false => op.combine(data, sum),
                });
            }
        });
    }
}
