//! Reductions and scans of short data through cells.

use super::data::{Combine, CopyTo, Given, Target};
use super::steps::{await_cell, await_room, show};
use super::{OpInCell, SmallOp};
use crate::Error;
use crate::op::DenseOp;
use crate::shm::layout::Flow;
use crate::shm::wait::{Wait, or_leave};
use mpi_base::cells::CellOf;
use mpi_base::occupancy::Occupancy;
use std::ops::Range;

impl<W: Wait> SmallOp<'_, W> {
    #[inline]
    pub(super) async fn allreduce<G: CopyTo<R>, R: Target>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let cell_op = &self.fitting(Flow::CooperativeCopy, recv.bytes());
        match send {
            Some(send) => show!(cell_op, send),
            None => show!(cell_op, recv),
        }
        let concluded = cell_op.meet(|| {
            let outcome = cell_op.fold_all(send, recv, op);
            cell_op.conclude(recv);
            outcome
        });
        let outcome = match concluded.await {
            Ok(true) => {
                cell_op.take(CellOf::Result, 0, recv);
                Ok(())
            }
            Ok(false) => cell_op.fold_all(send, recv, op),
            Err(e) => or_leave(self.comm, Err(e))?,
        };
        cell_op.cells.end_together(cell_op.members, cell_op.number);
        outcome
    }

    #[inline]
    pub(super) async fn reduce<G: CopyTo<R>, R: Target>(
        &self,
        send: Option<&G>,
        recv: Option<&R>,
        op: &impl Combine<G, R>,
        root: u32,
    ) -> Result<(), Error> {
        let bytes = send.map(Given::bytes).or(recv.map(Given::bytes));
        let cell_op = &self.fitting(Flow::OneWay, bytes.unwrap_or(0));
        let outcome = match (recv, send) {
            (Some(recv), send) if cell_op.me() == root => {
                // No rank reads the root's cell, but with MPI_IN_PLACE the root's own `fold` reads its operand from the cell.
                if send.is_none() {
                    show!(cell_op, recv);
                }
                cell_op.await_reports().await?;
                cell_op.fold_all(send, recv, op)
            }
            (_, Some(send)) => {
                show!(cell_op, send);
                cell_op.report(root);
                Ok(())
            }
            _ => Ok(()),
        };
        cell_op.cells.end(cell_op.members, cell_op.number);
        outcome
    }

    /// Inclusive scan if `with_own` is true, otherwise exclusive scan.
    #[inline]
    pub(super) async fn scan<G: CopyTo<R>, R: Target>(
        &self,
        send: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
        with_own: bool,
    ) -> Result<(), Error> {
        let cell_op = &self.fitting(Flow::OneWay, recv.bytes());
        let dense = match cell_op.occupancy {
            Occupancy::Oversubscribed => op.dense(recv),
            Occupancy::Dedicated => None,
        };
        if let Some(op) = dense {
            return cell_op.scan_on(send, recv, &op, with_own).await;
        }
        let (me, count) = (cell_op.me(), cell_op.members.count());
        match send {
            // No rank reads the last rank's cell, but with MPI_IN_PLACE its own `fold` reads its operand from the cell.
            Some(_) if me + 1 == count => {}
            Some(send) => show!(cell_op, send),
            None => show!(cell_op, recv),
        }
        (me + 1..count).for_each(|rank| cell_op.members.ring(rank));
        let outcome = match (me, send) {
            // Rank 0 has no predecessor and combines nothing.
            (0, Some(send)) => {
                if with_own {
                    send.copy_to(recv);
                }
                Ok(())
            }
            (1, _) if !with_own => {
                if !cell_op.is_shown_soon(0) {
                    await_cell!(cell_op, 0);
                }
                cell_op.take(0, 0, recv);
                Ok(())
            }
            _ => {
                cell_op.await_cells(0..me).await?;
                cell_op.fold(me + u32::from(with_own), 0, send, recv, op)
            }
        };
        cell_op.cells.end(cell_op.members, cell_op.number);
        outcome
    }

    /// Reduce-scatter. The result is the byte range `mine` of the packed sum; it is written to the beginning of `whole`.
    /// Without `send`, `whole` also contains this rank's operand.
    #[inline]
    pub(super) async fn reduce_scatter<G: CopyTo<R>, R: Target>(
        &self,
        send: Option<&G>,
        whole: &R,
        mine: Range<usize>,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        let all = send.map_or(whole.bytes(), Given::bytes);
        let for_all = self.for_all(all, || op.dense(whole));
        let cell_op = &self.fitting(Flow::CooperativeCopy, all);
        match send {
            Some(send) if for_all.is_none() => cell_op.show_around(send, mine.clone()).await?,
            Some(send) => show!(cell_op, send),
            None => show!(cell_op, whole),
        }
        cell_op
            .meet(|| {
                for_all.inspect(|op| cell_op.fold_for_all(all, op));
                cell_op.conclude_empty();
                Ok(())
            })
            .await?;
        let result = whole.part(0, mine.len());
        let outcome = match for_all {
            None => {
                let own = send.map(|send| send.part(mine.start, mine.len()));
                let ranks = cell_op.members.count();
                cell_op.fold(ranks, mine.start, own.as_ref(), &result, op)
            }
            Some(_) => {
                cell_op.take(CellOf::Result, mine.start, &result);
                Ok(())
            }
        };
        cell_op.cells.end_together(cell_op.members, cell_op.number);
        outcome
    }

    /// Returns the operator if the rank that arrives last should combine operands of `bytes` bytes
    /// for all ranks. It should if ranks are oversubscribed and the operands are short:
    /// a rank that is scheduled in later finds its result in one cell, which saves more time than the last rank's work takes.
    #[inline(always)]
    fn for_all(&self, bytes: usize, op: impl FnOnce() -> Option<DenseOp>) -> Option<DenseOp> {
        let of_all = bytes * self.members.count() as usize;
        match self.occupancy {
            Occupancy::Oversubscribed if of_all <= self.cells.capacity() => op(),
            _ => None,
        }
    }
}

impl<W: Wait> OpInCell<'_, '_, W> {
    #[inline]
    fn fold_all<G: CopyTo<R>, R: Target>(
        &self,
        own: Option<&G>,
        recv: &R,
        op: &impl Combine<G, R>,
    ) -> Result<(), Error> {
        self.fold(self.members.count(), 0, own, recv, op)
    }

    /// Combines the data of ranks 0 to `ranks` - 1, from byte `at` on, into `recv`, from the last of these ranks to the first;
    /// `own` is this rank's operand, or `None` if the operand is in this rank's cell.
    #[inline]
    pub(super) fn fold<G: CopyTo<R>, R: Target>(
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

    /// Combines all operands, each of `len` bytes, into the result cell.
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
